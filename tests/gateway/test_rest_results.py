"""GET /results, GET /results/{id}, POST /cancel/{id}, GET /leaderboard."""

from __future__ import annotations

import re
import time
import uuid
from typing import Any

import pytest

from services.gateway.settings import Settings
from tests.gateway import fake_data
from tests.gateway.fake_world import busy_world, spec
from tests.gateway.gateway_server import Running, running
from touchstone.v1 import job_pb2, metric_pb2

BASE = "/api/v1/benchmarking"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


async def get(gateway: Running, path: str, status: int = 200) -> Any:
    answer = await gateway.client.get(f"{BASE}{path}")
    assert answer.status_code == status, answer.text
    return answer.json()


def finished(gateway: Running, suite: str = "glue", limit: int = 100) -> job_pb2.Job:
    world = gateway.world
    job = world.start(world.add(spec("qwen2.5:7b", suite, limit=limit), "local").job_id, ago_s=120)
    return world.finish(job.job_id)


async def test_a_completed_job_has_the_documents_fields(gateway: Running) -> None:
    job = finished(gateway)
    got = await get(gateway, f"/results/{job.job_id}")
    assert (got["job_id"], got["status"]) == (job.job_id, "completed")
    assert got["summary"]["total_evaluations"] == 9
    assert got["summary"]["benchmarks_run"] == ["glue"]
    assert got["summary"]["models_evaluated"] == 1
    assert got["summary"]["total_time_seconds"] == pytest.approx(120, abs=3)
    glue = got["performance_data"]["glue"]
    assert list(glue) == ["cola", "sst2", "mrpc", "qqp", "stsb", "mnli", "mnli_mismatched", "qnli", "rte", "wnli"]
    assert set(glue["cola"]) == {"matthews_correlation", "accuracy"}
    assert set(glue["mrpc"]) == {"f1", "accuracy"}
    metric = glue["sst2"]["accuracy"]
    assert set(metric) == {"mean", "std", "ci95", "n", "unparsed", "stderr"}
    assert 0 <= metric["ci95"][0] <= metric["mean"] <= metric["ci95"][1] <= 1
    assert metric["std"] == metric["stderr"] > 0
    assert (metric["n"], metric["unparsed"]) == (100, 0.01)
    assert TIME.fullmatch(got["completed_at"])
    assert got["created_at"] <= got["completed_at"]
    assert (got["subset"], got["incomplete"], got["partial"], got["baseline"]) == (True, False, False, False)
    assert 0 < got["items"] == job.progress.items_total < got["published_items"] == job.published_items
    (row,) = (await get(gateway, "/results"))["results"]
    assert {name: row[name] for name in ("subset", "items", "published_items")} == {
        name: got[name] for name in ("subset", "items", "published_items")
    }


async def test_a_running_job_shows_progress_rounded_down_and_no_metrics(gateway: Running) -> None:
    world = gateway.world
    job = world.start(world.add(spec("qwen2.5:7b", "demo"), "local").job_id)
    world.advance(job.job_id, 1599)
    got = await get(gateway, f"/results/{job.job_id}")
    assert got["status"] == "running"
    assert got["progress"]["percent"] == 99
    assert (got["progress"]["items_done"], got["progress"]["items_total"]) == (1599, 1600)
    assert "unit" in got["progress"]["current_step"]
    assert got["progress"]["eta_seconds"] > 0
    assert (got["performance_data"], got["completed_at"]) == ({}, None)


@pytest.mark.parametrize("state", [job_pb2.Job.STATE_PLANNING, job_pb2.Job.STATE_RUNNING, job_pb2.Job.STATE_FINALIZING])
async def test_states_between_start_and_end_are_running(gateway: Running, state: job_pb2.Job.State) -> None:
    job = gateway.world.start(gateway.world.add(spec("qwen2.5:7b", "demo"), "local").job_id)
    job.state = state
    assert (await get(gateway, f"/results/{job.job_id}"))["status"] == "running"


async def test_a_failed_job_gives_its_reason_and_only_its_finished_tasks(gateway: Running) -> None:
    world = gateway.world
    job = world.start(world.add(spec("qwen2.5:7b", "demo"), "local").job_id)
    world.advance(job.job_id, 500)
    world.finish(job.job_id, job_pb2.Job.STATE_FAILED, "AI provider error: API key not configured for Gemini")
    got = await get(gateway, f"/results/{job.job_id}")
    assert (got["status"], got["error"]) == ("failed", "AI provider error: API key not configured for Gemini")
    assert list(got["performance_data"]["demo"]) == ["sentiment"]
    assert got["partial"] is True
    assert "score" not in got


async def test_an_undefined_metric_is_null_with_its_reason(gateway: Running) -> None:
    job = finished(gateway, "demo")
    undefined = metric_pb2.Metric(metric="f1", n=100, undefined_reason="all predictions are equal")
    gateway.world.results[job.job_id].tasks[3].metrics[1].CopyFrom(undefined)
    got = (await get(gateway, f"/results/{job.job_id}"))["performance_data"]["demo"]["paraphrase"]["f1"]
    assert (got["mean"], got["std"], got["ci95"]) == (None, None, None)
    assert got["undefined_reason"] == "all predictions are equal"


async def test_a_run_that_is_not_ranked_says_why_and_gives_its_bounds(gateway: Running) -> None:
    job = finished(gateway, "demo")
    result = gateway.world.results[job.job_id]
    result.suite_score.CopyFrom(fake_data.bounded_metric("score", 0.144, 0.019, 0.894, 1400))
    result.tasks[0].metrics[0].CopyFrom(fake_data.bounded_metric("accuracy", 0.5, 0.25, 0.75, 400))
    result.not_ranked_reason = "18 items have no answer"
    got = await get(gateway, f"/results/{job.job_id}")
    assert got["not_ranked_reason"] == got["score"]["not_ranked_reason"] == "18 items have no answer"
    assert (got["score"]["mean"], got["score"]["bounds"]) == (0.144, [0.019, 0.894])
    demo = got["performance_data"]["demo"]
    assert demo["sentiment"]["accuracy"]["bounds"] == [0.25, 0.75]
    assert "bounds" not in demo["acceptability"]["accuracy"]
    page = (await gateway.client.get(f"/jobs/{job.job_id}")).text
    strip = page[page.index('id="job-strip"') : page.index('id="job-tabs"')]
    assert '<span class="value">1.9–89.4</span>' in strip
    assert "bounds, not an estimate" in strip
    assert "14.4" not in strip


async def test_unknown_ids_are_404_with_the_documents_text(gateway: Running) -> None:
    for job_id in (str(uuid.uuid4()), "abc", "{" + str(uuid.uuid4()) + "}"):
        for method, path in (("GET", "results"), ("POST", "cancel")):
            answer = await gateway.client.request(method, f"{BASE}/{path}/{job_id}")
            assert answer.status_code == 404
            assert answer.json() == {"detail": f"Benchmark job {job_id} not found"}


async def test_jobs_that_the_scheduler_forgot_come_from_results(gateway: Running) -> None:
    job = finished(gateway)
    gateway.world.forgotten.add(job.job_id)
    assert (await get(gateway, f"/results/{job.job_id}"))["status"] == "completed"
    answer = await gateway.client.post(f"{BASE}/cancel/{job.job_id}")
    assert answer.status_code == 409
    assert "completed" in answer.json()["detail"]


async def test_cancel_answers_with_the_documents_text_and_only_once(gateway: Running) -> None:
    job = gateway.world.start(gateway.world.add(spec("qwen2.5:7b", "demo"), "local").job_id)
    answer = await gateway.client.post(f"{BASE}/cancel/{job.job_id}")
    assert answer.json() == {"message": f"Job {job.job_id} cancelled successfully"}
    assert (await get(gateway, f"/results/{job.job_id}"))["status"] == "cancelled"
    again = await gateway.client.post(f"{BASE}/cancel/{job.job_id}")
    assert again.status_code == 409
    assert "detail" in again.json()


async def test_lists_filter_by_and_count_all_matches_newest_first(gateway: Running) -> None:
    gateway.world.jobs.update(busy_world().jobs)
    got = await get(gateway, "/results?limit=3")
    assert (len(got["results"]), got["total"]) == (3, 22)
    needed = {"job_id", "status", "model_name", "benchmark_suite", "created_at", "completed_at"}
    assert needed <= set(got["results"][0])
    created = [row["created_at"] for row in got["results"]]
    assert created == sorted(created, reverse=True)
    assert (await get(gateway, "/results?status=running"))["total"] == 2
    assert (await get(gateway, "/results?status=pending"))["total"] == 4
    both = await get(gateway, "/results?status=completed&model_name=qwen2.5:7b&suite=glue")
    assert [(row["status"], row["model_name"]) for row in both["results"]] == [("completed", "qwen2.5:7b")]
    assert (await get(gateway, "/results?suite=demo"))["results"] == []


async def test_a_long_list_is_read_in_pages(gateway: Running) -> None:
    for _ in range(230):
        gateway.world.add(spec("qwen2.5:7b", "demo"), "local")
    got = await get(gateway, "/results?limit=225")
    assert (len({row["job_id"] for row in got["results"]}), got["total"]) == (225, 230)


@pytest.mark.parametrize("query", ["status=done", "limit=0", "limit=1001", "limit=x", "limit=-1", "limit=1e2"])
async def test_filters_out_of_range_are_422(gateway: Running, query: str) -> None:
    assert "detail" in await get(gateway, f"/results?{query}", 422)


async def test_the_leaderboard_ranks_baselines_after_models_and_leaves_unranked_apart(gateway: Running) -> None:
    gateway.world.boards = busy_world().boards
    got = await get(gateway, "/leaderboard?metric=score&limit=100")
    rows = got["leaderboard"]
    assert [row["rank"] for row in rows] == [*range(1, 12), None, None]
    assert [row["baseline"] for row in rows] == [False] * 11 + [True] * 2
    assert {"rank", "model", "score", "provider", "benchmark_count", "ci95", "mode", "job_id"} <= set(rows[0])
    assert (rows[0]["model"], rows[0]["score"], rows[0]["benchmark_count"]) == ("gemini-2.5-flash", 0.865, 6)
    assert (got["total_models"], got["places_pending"]) == (11, True)
    assert TIME.fullmatch(got["last_updated"])
    assert [row["model"] for row in got["not_ranked"]] == ["deepseek-r1:8b", "olmo2:13b"]
    short = await get(gateway, "/leaderboard?metric=score&limit=2")
    assert ([row["rank"] for row in short["leaderboard"]], short["total_models"]) == ([1, 2], 11)


def cautioned() -> list[metric_pb2.LeaderboardEntry]:
    """A board whose first run has many unread answers."""
    entries = fake_data.leaderboard({})
    first = entries[0]
    first.caution = "answers could not be read: CoLA 12.4%"
    first.unread.add(task="cola", title="CoLA", unparsed=0.124, cut=0.002, unparsed_answers=129, lenient_would_read=100)
    first.score.bound_low, first.score.bound_high, first.score.answered_mean = first.score.mean, 0.9, 0.88
    return entries


async def test_a_run_with_many_unread_answers_ranks_with_what_they_leave_open(gateway: Running) -> None:
    gateway.world.boards["glue"] = cautioned()
    first, second, *_ = (await get(gateway, "/leaderboard?metric=score"))["leaderboard"]
    assert (first["rank"], first["caution"]) == (1, "answers could not be read: CoLA 12.4%")
    counted = {"unparsed_answers": 129, "marked_would_read": 0, "lenient_would_read": 100}
    assert first["unread"] == [{"task": "cola", "unparsed": 0.124, "cut": 0.002, **counted}]
    assert (first["bounds"], first["answered_score"]) == ([first["score"], 0.9], 0.88)
    assert (second["caution"], second["unread"]) == (None, [])
    assert "answered_score" not in second


async def test_baselines_alone_rank_among_themselves(gateway: Running) -> None:
    alone = [entry for entry in fake_data.leaderboard({}) if entry.baseline]
    for place, entry in enumerate(alone, 1):
        entry.rank, entry.rank_low, entry.rank_high = place, 1, len(alone)
    gateway.world.boards["glue"] = alone
    got = await get(gateway, "/leaderboard?metric=score")
    assert ([row["rank"] for row in got["leaderboard"]], got["total_models"]) == ([1, 2], 2)
    assert (got["places_pending"], got["leaderboard"][0]["rank_range"]) == (False, [1, 2])


async def test_a_run_that_was_taken_out_tells_its_mark_and_its_reason(gateway: Running) -> None:
    entries = fake_data.leaderboard({})
    entries[-1].mark, entries[-1].not_ranked_reason = "invalidated", "the run was invalidated: a wrong prompt"
    gateway.world.boards["glue"] = entries
    last = (await get(gateway, "/leaderboard?metric=score"))["not_ranked"][-1]
    assert (last["mark"], last["reason"]) == ("invalidated", "the run was invalidated: a wrong prompt")


async def test_a_suite_without_runs_has_an_empty_leaderboard(gateway: Running) -> None:
    got = await get(gateway, "/leaderboard")
    assert (got["leaderboard"], got["total_models"], got["last_updated"]) == ([], 0, None)


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("suite=nope", 400, "Invalid benchmark suite. Supported: glue, demo"),
        ("metric=bleu", 400, "Suite glue has no metric 'bleu'"),
        ("item_set=zz", 400, "No finished run of glue uses the item set 'zz'"),
        ("limit=0", 422, "limit must be"),
    ],
)
async def test_unknown_suites_and_metrics_are_refused(gateway: Running, query: str, status: int, words: str) -> None:
    assert words in (await get(gateway, f"/leaderboard?{query}", status))["detail"]


async def test_errors_of_routing_have_a_detail_too(gateway: Running) -> None:
    assert (await get(gateway, "/nope", 404))["detail"]
    assert (await get(gateway, "/run", 405))["detail"]


async def test_silent_services_are_503_within_the_deadline() -> None:
    async with running(settings=Settings(call_timeout_s=1)) as gateway:
        await refuse_when_silent(gateway)


async def refuse_when_silent(gateway: Running) -> None:
    job = finished(gateway)
    await gateway.stop_service("scheduler")
    began = time.monotonic()
    answer = await gateway.client.post(f"{BASE}/cancel/{job.job_id}")
    assert (answer.status_code, answer.json()["detail"][:13]) == (503, "The scheduler")
    assert (await get(gateway, f"/results/{job.job_id}"))["status"] == "completed"
    await gateway.stop_service("results")
    answer = await gateway.client.get(f"{BASE}/results")
    assert (answer.status_code, answer.json()["detail"][:19]) == (503, "The results service")
    assert time.monotonic() - began < 60
    ready = await gateway.client.get("/readyz")
    assert (ready.status_code, ready.json()["ready"]) == (503, False)
    assert (await gateway.client.get("/healthz")).status_code == 200


async def test_readiness_follows_both_services(gateway: Running) -> None:
    ready = await gateway.client.get("/readyz")
    assert ready.json() == {"ready": True, "scheduler": "serving", "results": "serving"}
