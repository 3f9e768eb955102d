"""Annotating an answer from the command line."""

from __future__ import annotations

import pytest

from tests.unit.client.fakes import JOB, Fakes, job
from touchstone.v1 import results_service_pb2, scheduler_service_pb2
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]
Verdict = results_service_pb2.Annotation


def test_a_row_is_annotated_by_its_id_or_its_number(kept: Fakes, capsys: Captured) -> None:
    assert main(["annotate", JOB, "candidate-7", "fix", "--answer", "Paris", "--note", "Not Lyon."]) == 0
    assert main(["annotate", JOB, "6", "golden"]) == 0
    assert main(["annotate", JOB, "6", "none"]) == 0
    by_id, by_number, taken_back = kept.requests("AnnotateItem")
    assert (by_id.task, by_id.item, by_id.verdict) == ("rows", 6, Verdict.VERDICT_FIX)
    assert (by_id.corrected_answer, by_id.note) == ("Paris", "Not Lyon.")
    assert (by_number.task, by_number.item, by_number.verdict) == ("rows", 6, Verdict.VERDICT_GOLDEN)
    assert taken_back.verdict == Verdict.VERDICT_UNSPECIFIED
    assert capsys.readouterr().out.splitlines() == [
        f"rows 6 (candidate-7) of job {JOB} is annotated fix.",
        f"rows 6 (candidate-7) of job {JOB} is annotated golden.",
        f"rows 6 (candidate-7) of job {JOB} is not annotated.",
    ]


def test_an_id_that_may_be_a_number_must_be_told_apart(kept: Fakes, capsys: Captured) -> None:
    """Row "7" is item 6 here, and item 7 is another row."""
    assert main(["annotate", JOB, "7", "wrong"]) == 2
    assert "7 is the id of item 6 and may be the number of another one. Say which" in capsys.readouterr().err
    assert main(["annotate", JOB, "7", "wrong", "--by", "id"]) == 0
    assert main(["annotate", JOB, "7", "wrong", "--by", "number"]) == 0
    assert [request.item for request in kept.requests("AnnotateItem")] == [6, 7]


def test_a_row_that_is_not_there_is_not_annotated(kept: Fakes, capsys: Captured) -> None:
    assert main(["annotate", JOB, "candidate-9", "wrong"]) == 2
    assert f"No item of job {JOB} has the id candidate-9." in capsys.readouterr().err


def test_a_number_in_a_job_of_several_tasks_needs_its_task(kept: Fakes, capsys: Captured) -> None:
    suite = job()
    suite.plan.add(task="rte")
    suite.plan.add(task="sst2")
    kept.answers["Scheduler.GetJob"] = scheduler_service_pb2.GetJobResponse(job=suite)
    for arguments in (["annotate", JOB, "3", "golden"], ["items", JOB, "--item", "3"]):
        assert main(arguments) == 2
        assert f"--task is required: job {JOB} has rte, sst2." in capsys.readouterr().err
    assert main(["annotate", JOB, "3", "golden", "--task", "rte"]) == 0
    assert kept.requests("AnnotateItem")[0].task == "rte"
