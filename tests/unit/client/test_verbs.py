"""The verbs of the command: what they ask the services, what they print, how they end."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from services import errors
from tests.unit.client.fakes import JOB, OTHER, Fakes, job, metric, result
from touchstone.v1 import (
    comparison_pb2,
    endpoint_pb2,
    item_result_pb2,
    job_pb2,
    queue_pb2,
    results_service_pb2,
    schedule_pb2,
    scheduler_service_pb2,
    webhook_pb2,
)
from touchstone_client.command import main
from touchstone_client.command.output import FORMATS

RUN = ["run", "--project-id", "7", "--suite", "glue", "--provider", "ollama", "--model", "mistral:latest"]
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def told(fakes: Fakes) -> Fakes:
    """Services with one finished job, and an answer to every reading verb."""
    scheduler, results = scheduler_service_pb2, results_service_pb2
    scores = results.JobScores(job_id=JOB, averages=[metric("score", 0.7), metric("accuracy", 0.75)])
    item = item_result_pb2.ItemResult(
        item=3, outcome=item_result_pb2.OUTCOME_ANSWERED, response="Yes.", prediction="yes", statistics={"correct": 1}
    )
    stored = results.StoredItem(task="rte", result=item)
    endpoint = endpoint_pb2.Endpoint(endpoint="local", kind="ollama", state=endpoint_pb2.Endpoint.STATE_REACHABLE)
    entry = results.GetLeaderboardResponse(metrics=["accuracy"], total_models=1, items=20)
    entry.entries.add(rank=1, rank_low=1, rank_high=2, model="m", score=metric(mean=0.8), previous_mean=0.75)
    fakes.answers |= {
        "ListEndpoints": scheduler.ListEndpointsResponse(endpoints=[endpoint]),
        "CreateJobs": scheduler.CreateJobsResponse(jobs=[job(state="PENDING")]),
        "CancelJob": scheduler.CancelJobResponse(job=job(state="CANCELLED")),
        "RetryJob": scheduler.RetryJobResponse(job=job(state="PENDING")),
        "WatchJob": [scheduler.WatchJobResponse(job=job(state=state)) for state in ("RUNNING", "COMPLETED")],
        "Scheduler.GetJob": scheduler.GetJobResponse(job=job()),
        "GetJobResult": results.GetJobResultResponse(result=result()),
        "Results.ListJobs": results.ResultsServiceListJobsResponse(jobs=[job()], scores=[scores], total_size=1),
        "ListItems": results.ListItemsResponse(items=[stored]),
        "GetItem": results.GetItemResponse(item=stored),
        "GetLeaderboard": entry,
        "Compare": comparison(),
        "GetQueue": scheduler.GetQueueResponse(queue=queue_pb2.Queue(running=[job(state="RUNNING")], slots=3)),
        "ListEvaluators": scheduler.ListEvaluatorsResponse(),
        "ListModels": scheduler.ListModelsResponse(models=[endpoint_pb2.Model(model="m", parameters_b=7.2)]),
        "ListSuites": scheduler.ListSuitesResponse(),
        "ListJobLogs": scheduler.ListJobLogsResponse(lines=[scheduler.LogLine(level="error", text="It broke.")]),
        "ListSchedules": scheduler.ListSchedulesResponse(
            schedules=[schedule_pb2.Schedule(schedule_id="s", cron="0 3 * * 1")]
        ),
        "ListWebhooks": scheduler.ListWebhooksResponse(webhooks=[webhook_pb2.Webhook(webhook_id="w", url="http://h/")]),
        "ListDeadDeliveries": scheduler.ListDeadDeliveriesResponse(deliveries=[webhook_pb2.Delivery(delivery_id="d")]),
        "ListConfigurations": results.ListConfigurationsResponse(
            configurations=[results.Configuration(configuration="c")]
        ),
    }
    return fakes


def comparison() -> comparison_pb2.CompareResponse:
    runs = [
        comparison_pb2.ComparedRun(job_id=JOB, model="one", rank_low=1, rank_high=1, scores=[metric("score", 0.8)]),
        comparison_pb2.ComparedRun(job_id=OTHER, model="two", rank_low=2, rank_high=2, scores=[metric("score", 0.7)]),
    ]
    whole = comparison_pb2.Difference(
        a=JOB, b=OTHER, metric="score", difference=0.1, low=0.06, high=0.14, p_value=0.0004, n=2000,
        test="stratified z", verdict=comparison_pb2.VERDICT_BETTER, words="one is better than two by 0.1000.",
    )  # fmt: skip
    task = comparison_pb2.Difference(
        a=JOB, b=OTHER, task="rte", metric="accuracy", difference=0.02, low=-0.03, high=0.07, p_value=0.4, n=277,
        p_adjusted=0.8, correction="holm", test="exact McNemar", verdict=comparison_pb2.VERDICT_NO_DIFFERENCE_SHOWN,
        smallest_difference=0.08,
    )  # fmt: skip
    return comparison_pb2.CompareResponse(
        suite="glue",
        runs=runs,
        differences=[whole, task],
        recommendations=["Use one."],
        items=2277,
        margin=0.01,
        alpha=0.05,
    )


def test_the_documents_spellings_make_the_job(told: Fakes) -> None:
    more = (
        "--ollama-temperature 0.1 --ollama-top-p 0.9 --ollama-top-k 40 --ollama-num-predict 64 --ollama-num-ctx 2048 "
        "--ollama-seed 42 --ollama-repeat-penalty 1.1 --tasks rte,sst2 --no-watch"
    )
    assert main([*RUN, *more.split(), "--custom-config", '{"num_gpu": 1}']) == 0
    spec = told.specs()[0]
    assert (spec.project_id, spec.endpoint, spec.model, spec.suite.suite) == (7, "local", "mistral:latest", "glue")
    assert list(spec.suite.tasks) == ["rte", "sst2"]
    expected = job_pb2.Sampling(
        temperature=0.1, top_p=0.9, top_k=40, max_tokens=64, context_length=2048, seed=42, repeat_penalty=1.1
    )
    expected.extra_json = '{"num_gpu":1}'
    assert spec.sampling == expected


@pytest.mark.parametrize("name", ["--max-tokens", "--num-predict", "--ollama-num-predict"])
def test_the_limit_on_tokens_has_one_meaning(told: Fakes, name: str) -> None:
    assert main([*RUN, name, "9", "--no-watch"]) == 0
    assert told.specs()[0].sampling == job_pb2.Sampling(max_tokens=9)


def test_a_kind_that_two_endpoints_have_names_them(told: Fakes, capsys: Captured) -> None:
    two = [endpoint_pb2.Endpoint(endpoint=name, kind="ollama") for name in ("left", "right")]
    told.answers["ListEndpoints"] = scheduler_service_pb2.ListEndpointsResponse(endpoints=two)
    assert main([*RUN, "--no-watch"]) == 2
    assert "Several endpoints are of kind ollama: left, right" in capsys.readouterr().err
    assert told.specs() == []


def test_a_run_prints_its_id_and_then_its_scores(told: Fakes, capsys: Captured) -> None:
    assert main(RUN) == 0
    captured = capsys.readouterr()
    first, *table = captured.out.splitlines()
    assert first == JOB
    assert ["rte", "accuracy", "0.6000"] in [line.split()[:3] for line in table]
    assert captured.err.splitlines() == ["Running", "Completed"]


def test_a_run_in_json_prints_nothing_else(told: Fakes, capsys: Captured) -> None:
    assert main([*RUN, "--format", "json"]) == 0
    captured = capsys.readouterr()
    made = json.loads(captured.out)
    assert (made["job_id"], made["status"]) == (JOB, "completed")
    assert made["result"]["suite_score"]["mean"] == 0.7
    assert captured.err.splitlines()[0] == JOB


@pytest.mark.parametrize(
    ("last", "code", "said"),
    [
        (job(state="FAILED", reason="The endpoint is down."), 1, "The endpoint is down."),
        (job(state="CANCELLED"), 1, "cancelled"),
        (job(incomplete=True), 1, "Completed"),
    ],
)
def test_a_job_that_did_not_finish_well_is_code_one(
    told: Fakes, capsys: Captured, last: job_pb2.Job, code: int, said: str
) -> None:
    told.answers["WatchJob"] = [scheduler_service_pb2.WatchJobResponse(job=last)]
    assert main(["status", JOB, "--poll"]) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["status", JOB],
        ["results", JOB],
        ["list", "--status", "completed", "--days", "3"],
        ["history", "--days", "7", "--model", "m"],
        ["items", JOB, "--filter", "correct"],
        ["items", JOB, "--task", "rte", "--item", "3"],
        ["compare", JOB, OTHER],
        ["leaderboard"],
        ["queue"],
        ["evaluators"],
        ["endpoints"],
        ["models"],
        ["suites"],
        ["logs", JOB, "--level", "error"],
        ["schedules", "list"],
        ["webhooks", "list"],
        ["webhooks", "dead"],
        ["configurations", "list"],
    ],
)
def test_every_reading_verb_prints_every_format(told: Fakes, capsys: Captured, arguments: list[str]) -> None:
    printed = {}
    for format in FORMATS:
        assert main([*arguments, "--format", format]) == 0
        printed[format] = capsys.readouterr().out
    assert "\x1b" not in "".join(printed.values())
    assert json.loads(printed["json"]) is not None
    header, *rows = csv.reader(io.StringIO(printed["csv"]))
    assert {len(row) for row in rows} <= {len(header)}
    assert "| --- |" in printed["markdown"].replace("---:", "---").replace("| --- | ", "| --- |")
    assert printed["table"].strip()


def test_the_queue_says_what_everybody_should_know(told: Fakes, capsys: Captured) -> None:
    assert main(["queue"]) == 0
    assert "notice" not in capsys.readouterr().out
    full = queue_pb2.Queue(slots=3, notice="The disk is full.")
    told.answers["GetQueue"] = scheduler_service_pb2.GetQueueResponse(queue=full)
    assert main(["queue"]) == 0
    assert "The disk is full." in capsys.readouterr().out


def test_a_list_asks_for_no_more_than_it_shows(told: Fakes, capsys: Captured) -> None:
    told.answers["Results.ListJobs"] = lambda request: results_service_pb2.ResultsServiceListJobsResponse(
        jobs=[job()] * 100, scores=[results_service_pb2.JobScores()] * 100, next_page_token="more"
    )
    assert main(["list", "--limit", "30"]) == 0
    assert len(told.requests("ListJobs")) == 1
    assert len(capsys.readouterr().out.splitlines()) == 31


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


def test_cancel_and_retry_name_the_job(told: Fakes, capsys: Captured) -> None:
    assert main(["cancel", JOB]) == 0
    assert capsys.readouterr().out == f"{JOB} is cancelled.\n"
    assert main(["retry", JOB, "--no-watch"]) == 0
    assert capsys.readouterr().out == f"{JOB}\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConflictError("Job x is finished."), 2),
        (errors.NotFoundError("Job x is not known."), 2),
        (errors.PermissionDeniedError("Only its owner may do this."), 2),
        (errors.UnavailableError("NATS does not answer."), 3),
    ],
)
def test_errors_are_one_line_and_a_code(
    told: Fakes, capsys: Captured, error: errors.TouchstoneError, code: int
) -> None:
    told.answers["CancelJob"] = error
    assert main(["cancel", "x"]) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"touchstone: {error.message}\n")


def test_an_export_goes_to_a_file_or_to_stdout(told: Fakes, tmp_path: Path, capfdbinary: Any) -> None:
    told.answers["Export"] = [results_service_pb2.ExportResponse(data=b"task,item\n")]
    file = tmp_path / "items.csv"
    assert main(["export", "items", "--job", JOB, "--filter", "failures", "--output", str(file)]) == 0
    assert file.read_bytes() == b"task,item\n"
    assert main(["export", "metrics", "--model", "m", "--status", "completed", "--format", "jsonl"]) == 0
    assert capfdbinary.readouterr().out == b"task,item\n"
    items, metrics = told.requests("Export")
    assert (items.items.job_id, items.items.filter) == (JOB, results_service_pb2.ListItemsRequest.FILTER_FAILURES)
    assert (metrics.jobs.model, list(metrics.jobs.states)) == ("m", [job_pb2.Job.STATE_COMPLETED])
    assert metrics.format == results_service_pb2.ExportRequest.FORMAT_JSONL


def test_a_schedule_is_a_run_with_a_time(told: Fakes, capsys: Captured) -> None:
    made = schedule_pb2.Schedule(schedule_id="s1")
    made.next_at.FromJsonString("2026-11-23T02:00:00Z")
    told.answers["CreateSchedule"] = scheduler_service_pb2.CreateScheduleResponse(schedule=made)
    told.answers["DeleteSchedule"] = scheduler_service_pb2.DeleteScheduleResponse()
    what = ["--suite", "glue", "--endpoint", "local", "--model", "m", "--limit", "20"]
    assert main(["schedules", "create", "0 3 * * 1", "--time-zone", "Europe/Zurich", "--label", "weekly", *what]) == 0
    (request,) = told.requests("CreateSchedule")
    assert (request.cron, request.time_zone, request.label) == ("0 3 * * 1", "Europe/Zurich", "weekly")
    assert (request.spec.model, request.spec.suite.limit) == ("m", 20)
    assert request.request_id
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("s1\n", "Next: 2026-11-23 02:00 UTC.\n")
    assert main(["schedules", "delete", "s1"]) == 0


def test_a_webhooks_secret_is_shown_once(told: Fakes, capsys: Captured) -> None:
    made = webhook_pb2.Webhook(webhook_id="w1")
    told.answers["CreateWebhook"] = scheduler_service_pb2.CreateWebhookResponse(webhook=made, secret="whsec")
    told.answers["RedeliverWebhook"] = scheduler_service_pb2.RedeliverWebhookResponse()
    assert main(["webhooks", "create", "https://ci.example/hook", "--event", "job.failed", "--project-id", "7"]) == 0
    assert capsys.readouterr().out == "w1\nwhsec\n"
    (request,) = told.requests("CreateWebhook")
    assert (request.url, list(request.events), request.project_id) == ("https://ci.example/hook", ["job.failed"], 7)
    assert main(["webhooks", "redeliver", "d1"]) == 0


def test_a_mark_has_its_reason(told: Fakes, capsys: Captured) -> None:
    told.answers["MarkRun"] = results_service_pb2.MarkRunResponse(result=result(mark="invalidated"))
    assert main(["mark", JOB, "invalidated", "--reason", "Wrong prompt."]) == 0
    (request,) = told.requests("MarkRun")
    assert (request.mark, request.reason) == (results_service_pb2.RUN_MARK_INVALIDATED, "Wrong prompt.")
    assert capsys.readouterr().out == f"{JOB} is invalidated.\n"


# A shell that runs the tests in the background has told their processes to ignore it. Not by `preexec_fn`: that forks
# this process, and gRPC's threads of it may write to the child's output before the child begins.
_INTERRUPTIBLE = (
    "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "runpy.run_module('touchstone_client', run_name='__main__', alter_sys=True)"
)


def started(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _INTERRUPTIBLE, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_ctrl_c_leaves_the_job_and_says_how_to_go_on(told: Fakes) -> None:
    over = threading.Event()

    def endless(request: Any) -> Any:
        yield scheduler_service_pb2.WatchJobResponse(job=job(state="RUNNING"))
        over.wait(60)

    told.answers["WatchJob"] = endless
    process = started(*RUN)
    assert process.stdout is not None
    assert process.stdout.readline() == f"{JOB}\n"
    assert process.stderr is not None
    assert process.stderr.readline() == "Running\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=50)
    over.set()
    assert process.returncode == 130
    assert f"touchstone status {JOB} --watch" in said
    assert f"touchstone cancel {JOB}" in said
    assert "Traceback" not in said
    assert told.requests("CancelJob") == []


def test_a_reader_that_leaves_is_no_error(told: Fakes) -> None:
    told.answers["Export"] = lambda request: [results_service_pb2.ExportResponse(data=b"x" * 900_000)] * 5
    process = started("export", "jobs")
    assert process.stdout is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(60) == 141
