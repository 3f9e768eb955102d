"""Items on the command line."""

from __future__ import annotations

import csv
import io
import json

import pytest

from tests.unit.client.fakes import JOB, Fakes
from touchstone.v1 import item_result_pb2, results_service_pb2
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]
Verdict = results_service_pb2.Annotation


def test_items_show_ids_scores_and_verdicts(kept: Fakes, capsys: Captured) -> None:
    main(["items", JOB])
    heading, line = capsys.readouterr().out.splitlines()
    assert heading.split() == ["task", "item", "row", "outcome", "score", "verdict", "response", "ms", "tokens"]
    assert line.split() == ["rows", "6", "candidate-7", "answered", "0.2500", "fix", "Lyon?", "0", "0"]
    main(["items", JOB, "--format", "csv"])
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["custom_id"], row["score"], row["verdict"], row["correct"]) == ("candidate-7", "0.25", "fix", "")


def test_a_whole_item_has_its_annotation(kept: Fakes, capsys: Captured) -> None:
    main(["items", JOB, "--item", "6"])
    assert ["corrected_answer", "Paris"] in [line.split() for line in capsys.readouterr().out.splitlines()]
    assert kept.requests("GetItem")[0].task == "rows"


def test_a_whole_item_keeps_its_lines_and_says_nothing_of_a_time_that_was_not_measured(
    fakes: Fakes, capsys: Captured
) -> None:
    result = item_result_pb2.ItemResult(item=3, prompt="one\ntwo", outcome=item_result_pb2.OUTCOME_ANSWERED)
    stored = results_service_pb2.StoredItem(task="rte", result=result)
    fakes.answers["GetItem"] = results_service_pb2.GetItemResponse(item=stored)
    main(["items", JOB, "--task", "rte", "--item", "3"])
    out = capsys.readouterr().out
    assert [line.split() for line in out.splitlines() if "one" in line or "two" in line] == [["prompt", "one"], ["two"]]
    assert "ttft_ms" not in out
    main(["items", JOB, "--task", "rte", "--item", "3", "--format", "json"])
    assert json.loads(capsys.readouterr().out)["result"]["ttft_ms"] is None
