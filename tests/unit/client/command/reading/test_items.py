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


def test_classes_are_counted_by_right_answer(fakes: Fakes, capsys: Captured) -> None:
    count = results_service_pb2.ClassCount
    counts = [count(reference="a", prediction="b", items=3), count(reference="a", prediction="", items=2)]
    counts.append(count(reference="b", items=1))
    fakes.answers["ListItems"] = results_service_pb2.ListItemsResponse(classes=counts)
    assert main(["items", JOB, "--task", "rte", "--classes"]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [
        ["a", "b", "3"],
        ["a", "nothing", "was", "read", "2"],
        ["b", "another", "text", "1"],
    ]
    assert main(["items", JOB, "--task", "rte", "--classes", "--format", "json"]) == 0
    assert [row["prediction"] for row in json.loads(capsys.readouterr().out)] == ["b", "", None]
    (request, _) = fakes.requests("ListItems")
    assert (request.task, request.with_classes) == ("rte", True)
    fakes.answers["ListItems"] = results_service_pb2.ListItemsResponse()
    assert main(["items", JOB, "--task", "rte", "--classes"]) == 0
    assert "no classes" in capsys.readouterr().out
