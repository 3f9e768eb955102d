"""Results on the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.client.fakes import JOB, OTHER, Fakes, job, result
from touchstone.v1 import dataset_service_pb2, queue_pb2, results_service_pb2, scheduler_service_pb2
from touchstone_client.command import main

Verdict = results_service_pb2.Annotation


@pytest.mark.parametrize(
    ("arguments", "method"),
    [
        (["queue"], "GetQueue"),
        (["schedules", "list"], "ListSchedules"),
        (["webhooks", "list"], "ListWebhooks"),
        (["configurations", "list"], "ListConfigurations"),
        (["dataset", "list"], "ListDatasets"),
    ],
)
def test_lists_take_a_project(kept: Fakes, arguments: list[str], method: str) -> None:
    kept.answers |= {
        "GetQueue": scheduler_service_pb2.GetQueueResponse(),
        "ListSchedules": scheduler_service_pb2.ListSchedulesResponse(),
        "ListWebhooks": scheduler_service_pb2.ListWebhooksResponse(),
        "ListConfigurations": results_service_pb2.ListConfigurationsResponse(),
    }
    assert main([*arguments, "--project-id", "7"]) == 0
    assert kept.requests(method)[0].project_id == 7


Captured = pytest.CaptureFixture[str]


def test_a_list_tells_pilots_from_other_runs(fakes: Fakes, capsys: Captured) -> None:
    pilot = job()
    pilot.spec.labels["pilot"] = "1"
    fakes.answers["Results.ListJobs"] = results_service_pb2.ResultsServiceListJobsResponse(
        jobs=[pilot], scores=[results_service_pb2.JobScores(job_id=JOB)]
    )
    main(["list"])
    assert "pilot" in capsys.readouterr().out
    main(["list", "--format", "json"])
    assert json.loads(capsys.readouterr().out)[0]["labels"] == {"pilot": "1"}


def test_a_job_whose_items_are_done_is_scoring(fakes: Fakes, capsys: Captured) -> None:
    ending = job(state="FINALIZING")
    fakes.answers |= {
        "Results.ListJobs": results_service_pb2.ResultsServiceListJobsResponse(
            jobs=[ending], scores=[results_service_pb2.JobScores(job_id=JOB)]
        ),
        "GetQueue": scheduler_service_pb2.GetQueueResponse(queue=queue_pb2.Queue(scoring=[ending])),
        "Scheduler.GetJob": scheduler_service_pb2.GetJobResponse(job=ending),
    }
    for asked in (["list"], ["queue"]):
        main(asked)
        assert f"{JOB}  scoring" in capsys.readouterr().out
    main(["status", JOB])
    assert "status  scoring" in capsys.readouterr().out
    for asked in (["list"], ["status", JOB]):
        main([*asked, "--format", "json"])
        told = json.loads(capsys.readouterr().out)
        one = told[0] if isinstance(told, list) else told
        assert (one["status"], one["phase"]) == ("running", "scoring")


def test_a_history_tells_how_many_runs_there_are_beyond_its_rows(fakes: Fakes, capsys: Captured) -> None:
    fakes.answers["Results.ListJobs"] = results_service_pb2.ResultsServiceListJobsResponse(
        jobs=[job(), job(OTHER)],
        scores=[results_service_pb2.JobScores(job_id=name) for name in (JOB, OTHER)],
        total_size=26,
    )
    main(["history", "--limit", "2", "--model", "m", "--format", "json"])
    told = json.loads(capsys.readouterr().out)
    assert (len(told["history"]), told["total_runs"]) == (2, 26)
    *_, counting = fakes.requests("ListJobs")
    assert (counting.model, counting.page_size, counting.HasField("created_after")) == ("m", 1, True)
    main(["history", "--limit", "2"])
    assert "26 runs, the newest 2 here. Last 30 days" in capsys.readouterr().out
    main(["history"])
    assert "2 runs. Last 30 days" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "method", "answer", "said"),
    [
        (["items", JOB, "--query", "x"], "ListItems", results_service_pb2.ListItemsResponse(), "No items match."),
        (
            ["leaderboard", "--suite", "mmlu"],
            "GetLeaderboard",
            results_service_pb2.GetLeaderboardResponse(),
            "No finished run of mmlu matches. Start one: touchstone run --suite mmlu --model MODEL",
        ),
        (
            ["schedules", "list"],
            "ListSchedules",
            scheduler_service_pb2.ListSchedulesResponse(),
            "There are no schedules.",
        ),
        (["webhooks", "list"], "ListWebhooks", scheduler_service_pb2.ListWebhooksResponse(), "You have no webhooks"),
        (["dataset", "list"], "ListDatasets", dataset_service_pb2.ListDatasetsResponse(), "There are no datasets."),
        (
            ["dataset", "list", "--query", "x"],
            "ListDatasets",
            dataset_service_pb2.ListDatasetsResponse(),
            "No datasets match.",
        ),
    ],
)
def test_an_empty_table_says_so(
    fakes: Fakes, capsys: Captured, command: list[str], method: str, answer: Any, said: str
) -> None:
    fakes.answers[method] = answer
    assert main(command) == 0
    assert said in capsys.readouterr().out


def test_a_list_asks_for_no_more_than_it_shows(told: Fakes, capsys: Captured) -> None:
    told.answers["Results.ListJobs"] = lambda request: results_service_pb2.ResultsServiceListJobsResponse(
        jobs=[job()] * 100, scores=[results_service_pb2.JobScores()] * 100, next_page_token="more"
    )
    assert main(["list", "--limit", "30"]) == 0
    assert len(told.requests("ListJobs")) == 1
    assert len(capsys.readouterr().out.splitlines()) == 31


def test_a_mark_has_its_reason(told: Fakes, capsys: Captured) -> None:
    told.answers["MarkRun"] = results_service_pb2.MarkRunResponse(result=result(mark="invalidated"))
    assert main(["mark", JOB, "invalidated", "--reason", "Wrong prompt."]) == 0
    (request,) = told.requests("MarkRun")
    assert (request.mark, request.reason) == (results_service_pb2.RUN_MARK_INVALIDATED, "Wrong prompt.")
    assert capsys.readouterr().out == f"{JOB} is invalidated.\n"
