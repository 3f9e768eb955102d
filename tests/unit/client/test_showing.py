"""What the command shows of ranks, runs, items and refusals."""

from __future__ import annotations

import csv
import io
import json

import pytest

from services import errors
from tests.unit.client.fakes import JOB, OTHER, Fakes, job, metric
from touchstone.v1 import comparison_pb2, item_result_pb2, results_service_pb2, scheduler_service_pb2, suite_pb2
from touchstone_client.command import main

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


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (errors.InvalidRequestError("Set baseline_job_id.", "baseline_job_id"), "Set --baseline."),
        (errors.InvalidRequestError("Run without reuse.any_job.", "spec.reuse.any_job"), "Run without --reuse."),
        (
            errors.InvalidRequestError("temperature is 3; it may be 0 to 2.", "spec.sampling.temperature"),
            "--temperature is 3; it may be 0 to 2.",
        ),
        (
            errors.InvalidRequestError("config.params.temperature ends at 2.", "config.params.temperature"),
            "--temperature ends at 2.",
        ),
        (
            errors.InvalidRequestError("max_tokens is 5, less than the 9 of job x.", "spec.sampling.max_tokens"),
            "--max-tokens is 5, less than the 9 of job x.",
        ),
        (errors.InvalidRequestError("limit is -1.", "limit"), "--limit is -1."),
        (
            errors.InvalidRequestError("Set max_tokens, or max_tokens in every row.", "spec.budget_usd"),
            "Set --max-tokens, or max_tokens in every row.",
        ),
        (errors.ConflictError("The mode of model x is not the limit."), "The mode of model x is not the limit."),
    ],
)
def test_a_refusal_names_arguments_and_not_fields(
    fakes: Fakes, capsys: Captured, error: errors.TouchstoneError, said: str
) -> None:
    fakes.answers["CancelJob"] = error
    assert main(["cancel", JOB]) == 2
    assert capsys.readouterr().err == f"touchstone: {said}\n"


def test_runs_to_compare_may_stand_around_options(fakes: Fakes, capsys: Captured) -> None:
    fakes.answers["Compare"] = comparison_pb2.CompareResponse(alpha=0.05)
    assert main(["compare", "one", "--suite", "glue", "two", "--alpha", "0.1", "three"]) == 0
    assert list(fakes.requests("Compare")[0].subjects) == ["one", "two", "three"]
    with pytest.raises(SystemExit):
        main(["compare", "one", "two", "--suite", "glue", "--bogus", "three"])
    assert "unrecognized arguments: --bogus three" in capsys.readouterr().err
