"""A leaderboard on the command line."""

from __future__ import annotations

import csv
import io
import json

import pytest

from services import errors
from tests.unit.client.fakes import JOB, OTHER, Fakes, job, metric
from touchstone.v1 import job_pb2, results_service_pb2, scheduler_service_pb2, suite_pb2
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]


def test_a_leaderboard_leaves_ranks_that_are_not_known_empty(fakes: Fakes, capsys: Captured) -> None:
    board = results_service_pb2.GetLeaderboardResponse(metrics=["accuracy"], total_models=2, items=20)
    board.entries.add(rank=1, model="m", configuration="0123456789abcdef", score=metric(), run_count=3, task_count=9)
    board.entries.add(rank=2, model="m", configuration="f" * 16, name="mine", alias="prod", score=metric())
    board.entries.add(model="floor", baseline=True, score=metric())
    fakes.answers["GetLeaderboard"] = board
    main(["leaderboard", "--format", "csv"])
    first, _, floor = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (first["rank"], first["rank_range"], first["benchmark_count"], first["task_count"]) == ("1", "", "3", "9")
    assert (floor["rank"], floor["rank_range"]) == ("", "")
    main(["leaderboard", "--format", "json"])
    entries = json.loads(capsys.readouterr().out)["entries"]
    assert [(e["rank"], e["rank_low"], e["rank_high"]) for e in entries] == [
        (1, None, None),
        (2, None, None),
        (None,) * 3,
    ]
    for format in ("table", "markdown"):
        main(["leaderboard", "--format", format])
        out = capsys.readouterr().out
        assert ("0123456789ab " in out, "0123456789abc" in out, "mine, prod" in out, "[0" in out) == (
            True,
            False,
            True,
            False,
        )


def test_a_list_shows_what_does_not_compare(fakes: Fakes, capsys: Captured) -> None:
    part, other = job(), job(OTHER)
    part.spec.suite.tasks.extend(["rte", "sst2"])
    part.spec.suite.limit, other.spec.suite.shots = 40, 5
    other.spec.mode = suite_pb2.MODE_LOGLIKELIHOOD
    scores = [
        results_service_pb2.JobScores(job_id=JOB),
        results_service_pb2.JobScores(job_id=OTHER, not_ranked_reason="invalidated: wrong prompt"),
    ]
    fakes.answers["Results.ListJobs"] = results_service_pb2.ResultsServiceListJobsResponse(
        jobs=[part, other], scores=scores
    )
    glue = suite_pb2.Suite(suite="glue", tasks=[suite_pb2.TaskInfo(task=str(n)) for n in range(9)])
    fakes.answers["ListSuites"] = scheduler_service_pb2.ListSuitesResponse(suites=[glue])
    for verb in ("list", "history"):
        main([verb])
        lines = capsys.readouterr().out.splitlines()
        assert "2 of 9 tasks, limit 40" in lines[1]
        assert ("loglikelihood" in lines[2], "invalidated: wrong prompt" in lines[2]) == (True, True)
    main(["list", "--format", "csv"])
    first, second = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (first["mode"], first["tasks"], first["limit"], first["shots"]) == ("generate", '["rte", "sst2"]', "40", "0")
    assert (second["mode"], second["shots"], second["not_ranked_reason"]) == (
        "loglikelihood",
        "5",
        "invalidated: wrong prompt",
    )
    fakes.answers["ListSuites"] = errors.UnavailableError("The scheduler is restarting.")
    assert main(["list"]) == 0
    assert "2 tasks, limit 40" in capsys.readouterr().out


def subset(job_id: str = JOB) -> job_pb2.Job:
    made = job(job_id, subset=True, published_items=14042)
    made.plan.add(task="rte", items=11000)
    made.plan.add(task="sst2", items=673)
    return made


def test_a_subset_says_how_many_items_of_how_many_it_has(fakes: Fakes, capsys: Captured) -> None:
    whole = job(OTHER, published_items=20)
    whole.plan.add(task="rte", items=20)
    fakes.answers |= {
        "Results.ListJobs": results_service_pb2.ResultsServiceListJobsResponse(
            jobs=[subset(), whole], scores=[results_service_pb2.JobScores(job_id=name) for name in (JOB, OTHER)]
        ),
        "Scheduler.GetJob": scheduler_service_pb2.GetJobResponse(job=subset()),
        "GetJobResult": results_service_pb2.GetJobResultResponse(),
    }
    for verb in ("list", "history"):
        main([verb])
        lines = capsys.readouterr().out.splitlines()
        assert ("subset, 11,673 of 14,042 items" in lines[1], "subset" in lines[2]) == (True, False)
    main(["list", "--format", "json"])
    assert [(row["subset"], row["items"], row["published_items"]) for row in json.loads(capsys.readouterr().out)] == [
        (True, 11673, 14042),
        (False, 20, 20),
    ]
    for verb in ("results", "status"):
        main([verb, JOB])
        assert "glue, subset, 11,673 of 14,042 items" in capsys.readouterr().out


def test_a_board_whose_places_are_still_computed_says_so(fakes: Fakes, capsys: Captured) -> None:
    board = results_service_pb2.GetLeaderboardResponse(metrics=["accuracy"], total_models=1, items=20)
    board.entries.add(rank=1, model="m", score=metric())
    board.entries.add(model="n", score=metric(), not_ranked_reason="the run was invalidated: why", mark="invalidated")
    fakes.answers["GetLeaderboard"] = board
    main(["leaderboard"])
    assert "still being computed" not in (out := capsys.readouterr().out)
    assert "the run was invalidated: why" in out
    board.places_pending = True
    main(["leaderboard"])
    assert "Rank ranges are still being computed. Try again in a moment." in capsys.readouterr().out


def test_a_leaderboard_shows_places_and_trend(told: Fakes, capsys: Captured) -> None:
    assert main(["leaderboard", "--suite", "mmlu", "--metric", "accuracy", "--limit", "3"]) == 0
    (request,) = told.requests("GetLeaderboard")
    assert (request.suite, request.metric, request.limit) == ("mmlu", "accuracy", 3)
    out = capsys.readouterr().out
    assert "1–2" in out
    assert "+0.0500" in out


def test_a_leaderboard_without_accuracy_shows_the_score(told: Fakes, capsys: Captured) -> None:
    board = results_service_pb2.GetLeaderboardResponse(metrics=["contains"], total_models=1, items=1)
    board.entries.add(rank=1, model="m", score=metric())
    none = errors.NotFoundError("Suite mine has no metric 'accuracy'.")
    told.answers["GetLeaderboard"] = lambda request: board if request.metric == "score" else none
    assert main(["leaderboard", "--suite", "mine"]) == 0
    assert [request.metric for request in told.requests("GetLeaderboard")] == ["accuracy", "score"]
    out = capsys.readouterr().out
    assert "1 configuration ranked on 1 item." in out
    assert "score" in out.splitlines()[0]
    assert main(["leaderboard", "--metric", "f1"]) == 2
    assert told.requests("GetLeaderboard")[-1].metric == "f1"


def test_an_empty_leaderboard_says_what_to_do(told: Fakes, capsys: Captured) -> None:
    told.answers["GetLeaderboard"] = results_service_pb2.GetLeaderboardResponse()
    assert main(["leaderboard"]) == 0
    assert "touchstone run" in capsys.readouterr().out
