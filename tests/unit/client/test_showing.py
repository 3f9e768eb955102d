"""What the command shows of ranks, runs, items and refusals."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from services import errors
from tests.unit.client.fakes import JOB, OTHER, Fakes, job, metric
from touchstone.v1 import (
    comparison_pb2,
    dataset_service_pb2,
    item_result_pb2,
    job_pb2,
    results_service_pb2,
    scheduler_service_pb2,
    suite_pb2,
)
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


def test_a_board_whose_places_are_still_computed_says_so(fakes: Fakes, capsys: Captured) -> None:
    board = results_service_pb2.GetLeaderboardResponse(metrics=["accuracy"], total_models=1, items=20)
    board.entries.add(rank=1, model="m", score=metric())
    board.entries.add(model="n", score=metric(), not_ranked_reason="the run was invalidated: why", mark="invalidated")
    fakes.answers["GetLeaderboard"] = board
    main(["leaderboard"])
    assert "being worked out" not in (out := capsys.readouterr().out)
    assert "the run was invalidated: why" in out
    board.places_pending = True
    main(["leaderboard"])
    assert "Which places the data leave open is being worked out; ask again in a moment." in capsys.readouterr().out


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
            errors.InvalidRequestError('The row has "custom_id", not "max_tokens".', "template"),
            'The row has "custom_id", not "max_tokens".',
        ),
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


@pytest.mark.parametrize(
    ("command", "method", "answer", "said"),
    [
        (["items", JOB, "--query", "x"], "ListItems", results_service_pb2.ListItemsResponse(), "No item fits."),
        (
            ["leaderboard", "--suite", "mmlu"],
            "GetLeaderboard",
            results_service_pb2.GetLeaderboardResponse(),
            "No finished run of mmlu fits. Start one: touchstone run --suite mmlu --model MODEL",
        ),
        (["schedules", "list"], "ListSchedules", scheduler_service_pb2.ListSchedulesResponse(), "No schedule is here."),
        (["webhooks", "list"], "ListWebhooks", scheduler_service_pb2.ListWebhooksResponse(), "No webhook of yours"),
        (["dataset", "list"], "ListDatasets", dataset_service_pb2.ListDatasetsResponse(), "No dataset is here."),
        (
            ["dataset", "list", "--query", "x"],
            "ListDatasets",
            dataset_service_pb2.ListDatasetsResponse(),
            "No dataset fits.",
        ),
    ],
)
def test_an_empty_table_says_so(
    fakes: Fakes, capsys: Captured, command: list[str], method: str, answer: Any, said: str
) -> None:
    fakes.answers[method] = answer
    assert main(command) == 0
    assert said in capsys.readouterr().out


def test_runs_to_compare_may_stand_around_options(fakes: Fakes, capsys: Captured) -> None:
    fakes.answers["Compare"] = comparison_pb2.CompareResponse(alpha=0.05)
    assert main(["compare", "one", "--suite", "glue", "two", "--alpha", "0.1", "three"]) == 0
    assert list(fakes.requests("Compare")[0].subjects) == ["one", "two", "three"]
    with pytest.raises(SystemExit):
        main(["compare", "one", "two", "--suite", "glue", "--bogus", "three"])
    assert "unrecognized arguments: --bogus three" in capsys.readouterr().err
