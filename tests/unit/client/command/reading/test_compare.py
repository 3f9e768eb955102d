"""Comparisons on the command line."""

from __future__ import annotations

import csv
import io
import json

import pytest

from tests.unit.client.fakes import JOB, OTHER, Fakes
from touchstone.v1 import comparison_pb2
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]


def test_runs_to_compare_may_stand_around_options(fakes: Fakes, capsys: Captured) -> None:
    fakes.answers["Compare"] = comparison_pb2.CompareResponse(alpha=0.05)
    assert main(["compare", "one", "--suite", "glue", "two", "--alpha", "0.1", "three"]) == 0
    assert list(fakes.requests("Compare")[0].subjects) == ["one", "two", "three"]
    with pytest.raises(SystemExit):
        main(["compare", "one", "two", "--suite", "glue", "--bogus", "three"])
    assert "unrecognized arguments: --bogus three" in capsys.readouterr().err


def test_a_comparison_has_verdicts_intervals_and_adjusted_p(told: Fakes, capsys: Captured) -> None:
    assert (
        main(["compare", "one", "two", "--suite", "glue", "--metric", "score", "--margin", "0.02", "--alpha", "0.1"])
        == 0
    )
    (request,) = told.requests("Compare")
    assert (list(request.subjects), request.suite, request.margin, request.alpha) == (["one", "two"], "glue", 0.02, 0.1)
    lines = capsys.readouterr().out.splitlines()
    (suite,) = [line for line in lines if line.startswith("suite")]
    (task,) = [line for line in lines if line.startswith("rte")]
    assert suite.split()[2:6] == ["one", "/", "two", "better"]
    assert "+0.0600 to +0.1400" in suite
    assert "no difference shown" in task
    assert task.split("exact McNemar")[0].split()[-2:] == ["0.4000", "0.8000"]
    assert "Use one." in lines
    assert "one is better than two by 0.1000." in lines


def test_a_comparison_in_markdown_and_json_is_the_whole_report(told: Fakes, capsys: Captured) -> None:
    main(["compare", JOB, OTHER, "--format", "markdown"])
    report = capsys.readouterr().out
    assert report.startswith("# glue: one, two\n")
    assert [line for line in report.splitlines() if line.startswith("## ")] == [
        "## Suite",
        "## Runs",
        "## Task by task",
    ]
    main(["compare", JOB, OTHER, "--format", "json"])
    made = json.loads(capsys.readouterr().out)
    assert made["differences"][1]["verdict"] == "no_difference_shown"
    assert made["differences"][1]["p_adjusted"] == 0.8
    main(["compare", JOB, OTHER, "--format", "csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["task"], row["difference"], row["p_value"]) for row in rows] == [
        ("", "0.1", "0.0004"),
        ("rte", "0.02", "0.4"),
    ]
