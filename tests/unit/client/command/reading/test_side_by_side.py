"""Rows of two jobs side by side, as the command prints them."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest

from tests.unit.client.fakes import JOB, OTHER, Fakes, dataset_job
from touchstone.v1 import item_result_pb2, results_service_pb2
from touchstone.v1.endpoint_pb2 import Prices
from touchstone_client.command import main
from touchstone_client.command.printing.output import FORMATS

Captured = pytest.CaptureFixture[str]
Kind = results_service_pb2.WordDiff.Part


def stored(model: str, response: str, correct: int) -> results_service_pb2.StoredItem:
    result = item_result_pb2.ItemResult(
        item=3, custom_id="a", outcome=item_result_pb2.OUTCOME_ANSWERED, response=response, latency_ms=50,
        output_tokens=4, statistics={"correct": correct},
    )  # fmt: skip
    return results_service_pb2.StoredItem(task="rows", result=result, score=correct, evaluator=model)


@pytest.fixture
def pair(fakes: Fakes) -> Fakes:
    """Two jobs over one row: the first is right, the second wrong."""
    diff = results_service_pb2.WordDiff(
        parts=[
            Kind(kind=Kind.KIND_SAME, text="The capital is "),
            Kind(kind=Kind.KIND_REMOVED, text="Paris."),
            Kind(kind=Kind.KIND_ADDED, text="Lyon."),
        ]
    )
    row = results_service_pb2.SideBySideRow(
        custom_id="a", task="rows", item=3, diffs=[results_service_pb2.WordDiff(), diff],
        items=[stored("one", "The capital is Paris.", 1), stored("two", "The capital is Lyon.", 0)],
    )  # fmt: skip
    runs = [
        results_service_pb2.SideBySideRun(
            job=dataset_job(JOB, "one"),
            rows=1,
            mean_score=1,
            score_ci95_low=0.207,
            score_ci95_high=1,
            only_right=1,
            cost_usd=0.002,
        ),
        results_service_pb2.SideBySideRun(job=dataset_job(OTHER, "two"), rows=1, mean_score=0, only_wrong=1),
    ]

    def page(request: Any) -> Any:
        after = int(request.page_token or 0) + request.page_size
        return results_service_pb2.ListSideBySideResponse(
            rows=[row] * request.page_size, next_page_token=str(after) if after < 250 else "",
            total_size=250, count_all=300, count_agree=50, runs=runs,
        )  # fmt: skip

    fakes.answers["ListSideBySide"] = page
    return fakes


def test_a_row_stands_beside_itself_with_who_is_right(pair: Fakes, capsys: Captured) -> None:
    assert main(["side-by-side", JOB, OTHER, "--limit", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.split(r"  +", lines[2])[4:6] == ["1.0000", "0.2070 to 1.0000"]
    assert ["row", "agree", "one", "two"] in [line.split() for line in lines]
    assert "right: The capital is Paris." in lines[-4]
    assert "wrong: The capital is Lyon." in lines[-4]
    assert lines[-2:] == [
        "300 rows: 50 agree, 0 all right, 0 all wrong.",
        "1 of 250 rows that match. 249 more: --limit 250.",
    ]
    (request,) = pair.requests("ListSideBySide")
    assert (request.with_diffs, request.only_job_id) == (False, "")


def test_a_word_diff_is_marked_in_text(pair: Fakes, capsys: Captured) -> None:
    assert main(["side-by-side", JOB, OTHER, "--diff", "--limit", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(None, 4)[-1] for line in lines if line.startswith(("one  right", "two  wrong"))] == [
        "The capital is Paris.",
        "The capital is [-Paris.-]{+Lyon.+}",
    ]
    assert "a, not agreed" in lines


def test_the_only_one_is_the_first_unless_said(pair: Fakes) -> None:
    main(["side-by-side", JOB, OTHER, "--filter", "only-right", "--limit", "1"])
    main(["side-by-side", JOB, "--filter", "only-wrong", OTHER, "--only", OTHER, "--query", "Lyon", "--limit", "1"])
    first, second = pair.requests("ListSideBySide")
    assert (list(first.job_ids), first.only_job_id) == ([JOB, OTHER], JOB)
    assert (list(second.job_ids), second.only_job_id, second.query) == ([JOB, OTHER], OTHER, "Lyon")


def test_as_many_rows_as_asked_for_come_from_several_pages(pair: Fakes, capsys: Captured) -> None:
    main(["side-by-side", JOB, OTHER, "--limit", "120", "--format", "csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(pair.requests("ListSideBySide")) == 3
    assert len(rows) == 240
    assert [(row["job_id"], row["model_name"], row["score"], row["agree"]) for row in rows[:2]] == [
        (JOB, "one", "1.0", "false"),
        (OTHER, "two", "0.0", "false"),
    ]


def test_programs_get_all_rows_and_a_terminal_says_how_many_more_there_are(
    pair: Fakes, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    for format in ("csv", "jsonl"):
        assert main(["side-by-side", JOB, OTHER, "--format", format]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) - (format == "csv") == 2 * 250
    assert (json.loads(lines[0])["custom_id"], json.loads(lines[1])["agree"]) == ("a", False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["side-by-side", JOB, OTHER]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "20 of 250 rows that match. 230 more: --limit 250."


def test_side_by_side_prints_every_format(pair: Fakes, capsys: Captured) -> None:
    for format in FORMATS:
        assert main(["side-by-side", JOB, OTHER, "--diff", "--format", format]) == 0
        out = capsys.readouterr().out
        if format == "markdown":
            assert "~~Paris.~~**Lyon.**" in out
        if format == "json":
            made = json.loads(out)
            assert (made["runs"][0]["only_right"], made["rows"][0]["diffs"][1]["parts"][1]["kind"]) == (1, "removed")


def test_costs_side_by_side_say_where_they_are_at_list_prices(pair: Fakes, capsys: Captured) -> None:
    runs = [
        results_service_pb2.SideBySideRun(job=dataset_job(i, m), cost_usd=0.5)
        for i, m in ((JOB, "one"), (OTHER, "two"))
    ]
    runs[0].job.receipt.prices.CopyFrom(Prices(input=1, output=2, source="SOURCE_LIST", as_of="2026-10-03"))
    pair.answers["ListSideBySide"] = results_service_pb2.ListSideBySideResponse(runs=runs)
    assert main(["side-by-side", JOB, OTHER]) == 0
    shown = capsys.readouterr().out
    assert "one: cost at the list price as of 2026-10-03." in shown
    assert "two: cost at" not in shown


def test_a_job_without_an_answer_leaves_its_place_empty(pair: Fakes, capsys: Captured) -> None:
    runs = [results_service_pb2.SideBySideRun(job=dataset_job(i, m)) for i, m in ((JOB, "one"), (OTHER, "two"))]
    row = results_service_pb2.SideBySideRow(
        custom_id="a", items=[stored("one", "Paris.", 1), results_service_pb2.StoredItem()]
    )
    pair.answers["ListSideBySide"] = results_service_pb2.ListSideBySideResponse(rows=[row], runs=runs, total_size=1)
    for more in ([], ["--diff"], ["--format", "csv"]):
        assert main(["side-by-side", JOB, OTHER, *more]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"a,,0,0,false,{OTHER},two,,")
