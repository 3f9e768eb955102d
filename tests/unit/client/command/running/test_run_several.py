"""Running several models from the command line."""

from __future__ import annotations

import csv
import io
import json

import pytest

from services import errors
from tests.unit.client.fakes import DATASET, JOB, OTHER, Fakes, dataset_job
from touchstone.v1 import scheduler_service_pb2
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]
RUN = ["run", "--dataset", DATASET, "--model", "one", "--model", "two@right"]


def test_several_models_print_ids_and_then_a_table_each(pair: Fakes, capsys: Captured) -> None:
    assert main([*RUN, "--max-tokens", "9", "--label", "a=1", "--label", "b=x=y", "--budget-usd", "2.5"]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[:2] == [JOB, OTHER]
    assert [line for line in lines if line in ("one", "two")] == ["one", "two"]
    assert captured.err.splitlines() == ["one: Running", "two: Running", "one: Completed", "two: Completed"]
    first, second = pair.specs()
    assert (first.endpoint, first.model, second.endpoint, second.model) == ("left", "one", "right", "two")
    assert (first.dataset.dataset_id, first.sampling.max_tokens, first.budget_usd) == (DATASET, 9, 2.5)
    assert dict(first.labels) == {"a": "1", "b": "x=y"}
    assert not first.dataset.HasField("scoring")


def test_for_programs_there_is_one_document(pair: Fakes, capsys: Captured) -> None:
    assert main([*RUN, "--format", "json"]) == 0
    assert [made["job_id"] for made in json.loads(capsys.readouterr().out)] == [JOB, OTHER]


def test_for_spreadsheets_there_is_one_table(pair: Fakes, capsys: Captured) -> None:
    main([*RUN, "--format", "csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {(row["job_id"], row["model_name"]) for row in rows} == {(JOB, "one"), (OTHER, "two")}
    assert len(rows) == 6


def test_one_that_fails_is_code_one_and_says_why(pair: Fakes, capsys: Captured) -> None:
    failed = dataset_job(OTHER, "two", "FAILED", reason="$2.50 of $2.50 are spent after 812 of 5,000 items.")
    pair.answers["Scheduler.GetJob"] = lambda request: scheduler_service_pb2.GetJobResponse(
        job=failed if request.job_id == OTHER else dataset_job(JOB, "one")
    )
    assert main(RUN) == 1
    captured = capsys.readouterr()
    assert "touchstone: two: $2.50 of $2.50 are spent after 812 of 5,000 items." in captured.err
    assert "rte" in captured.out


@pytest.mark.parametrize("command", [RUN, ["estimate", *RUN[1:]]])
def test_several_models_are_asked_for_at_once_so_that_a_refusal_leaves_nothing(
    pair: Fakes, capsys: Captured, command: list[str]
) -> None:
    pair.answers["CreateJobs"] = errors.LimitReachedError("The queue has room for 1 more of your jobs, not for 2.", 9)
    assert main(command) == 2
    assert len(pair.requests("CreateJobs")) == 1
    assert len(pair.specs()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "touchstone: The queue has room for 1 more of your jobs, not for 2." in captured.err


def test_a_request_id_is_sent_as_it_is(pair: Fakes) -> None:
    for _ in range(2):
        assert main([*RUN, "--request-id", "friday", "--no-watch"]) == 0
    assert main([*RUN, "--no-watch"]) == 0
    first, second, own = (request.request_id for request in pair.requests("CreateJobs"))
    assert (first, second) == ("friday", "friday")
    assert own not in ("", "friday")


def test_the_suite_form_takes_several_models_as_well(pair: Fakes, capsys: Captured) -> None:
    assert main(["run", "--suite", "glue", "--model", "one", "--model", "two", "--shots", "2", "--no-watch"]) == 0
    assert capsys.readouterr().out.splitlines() == [JOB, OTHER]
    assert [(spec.endpoint, spec.suite.suite, spec.suite.shots) for spec in pair.specs()] == [
        ("left", "glue", 2),
        ("right", "glue", 2),
    ]
