"""GET /results with every filter, /history, /overview, /trends, the leaderboard's own fields."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests.gateway import fake_data
from tests.gateway.fake_world import busy_world, spec
from tests.gateway.gateway_server import Running
from tests.gateway.test_rest_results import get
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2, suite_pb2


async def test_every_filter_of_the_list_reaches_the_results_service(gateway: Running) -> None:
    await get(
        gateway,
        "/results?model_name=qwen2.5:7b&suite=demo&status=running&project_id=7&query=QWEN&owner=alice&endpoint=ollama&limit=5",
    )
    (asked,) = gateway.world.asked
    assert asked == results_service_pb2.ResultsServiceListJobsRequest(
        page_size=5,
        model="qwen2.5:7b",
        suite="demo",
        states=[job_pb2.Job.STATE_PLANNING, job_pb2.Job.STATE_RUNNING, job_pb2.Job.STATE_FINALIZING],
        owner="alice",
        endpoint="ollama",
        project_id=7,
        model_query="QWEN",
    )


async def test_pages_follow_each_other_by_token(gateway: Running) -> None:
    for _ in range(7):
        gateway.world.add(spec("qwen2.5:7b", "demo"), "local")
    seen, token = [], ""
    while True:
        page = await get(gateway, f"/results?limit=3&page_token={token}")
        assert page["total"] == 7
        seen += [row["job_id"] for row in page["results"]]
        token = page["next_page_token"]
        if not token:
            break
    assert seen == [row["job_id"] for row in (await get(gateway, "/results"))["results"]]


async def test_all_pages_of_the_history_begin_where_the_first_one_did(gateway: Running) -> None:
    for _ in range(7):
        gateway.world.add(spec("qwen2.5:7b", "demo"), "local")
    seen, token = [], ""
    while True:
        page = await get(gateway, f"/history?days=7&limit=3&page_token={token}")
        seen += [row["job_id"] for row in page["history"]]
        if not page["next_page_token"]:
            break
        token = page["next_page_token"]
        await asyncio.sleep(0.002)
    assert len(set(seen)) == 7
    # A list's token fits no other filter, and the start is a part of the filter.
    assert len({asked.created_after.ToNanoseconds() for asked in gateway.world.asked[-3:]}) == 1
    for query in (f"days=8&page_token={token}", "days=7&page_token=0", "days=7&page_token=7.99999999999999.0"):
        assert "belongs to another request" in (await get(gateway, f"/history?{query}", 400))["detail"]


async def test_an_unknown_suite_is_refused_where_a_filter_finds_nothing(gateway: Running) -> None:
    for path in ("/results", "/history", "/overview", "/trends", "/export?kind=jobs", "/export?kind=metrics"):
        path += ("&" if "?" in path else "?") + "suite=nope"
        assert (await get(gateway, path, 400))["detail"] == "Invalid benchmark suite. Supported: glue, demo"
    assert (await get(gateway, "/results?suite=demo"))["total"] == 0


async def test_history_looks_thirty_days_back_and_has_scores(gateway: Running) -> None:
    world = gateway.world
    old = world.add(spec("qwen2.5:7b", "demo"), "local", age_s=40 * 86_400)
    done = world.start(world.add(spec("qwen2.5:7b", "demo"), "local").job_id, ago_s=100)
    world.finish(done.job_id)
    got = await get(gateway, "/history")
    assert (got["total_runs"], got["date_range"]) == (1, "Last 30 days")
    (row,) = got["history"]
    assert (row["job_id"], row["status"], row["score"], row["mode"]) == (done.job_id, "completed", 0.795, "generate")
    assert row["metrics"] == {"accuracy": 0.81}
    assert row["ci95"][0] < 0.795 < row["ci95"][1]
    asked = world.asked[-1]
    assert asked.with_scores
    assert asked.created_after.seconds == pytest.approx(time.time() - 30 * 86_400, abs=300)
    longer = await get(gateway, "/history?days=50&model_name=qwen2.5:7b")
    assert (longer["total_runs"], longer["date_range"]) == (2, "Last 50 days")
    assert longer["history"][1]["job_id"] == old.job_id
    assert longer["history"][1]["score"] is None
    assert (await get(gateway, "/history?days=1"))["date_range"] == "Last 1 day"
    assert (await get(gateway, "/history?model_name=other"))["history"] == []


async def test_history_refuses_what_is_out_of_range(gateway: Running) -> None:
    for query in ["days=0", "days=3651", "days=x", "days=1.5", "limit=1001", "status=done"]:
        name = query.partition("=")[0]
        assert (await get(gateway, f"/history?{query}", 422))["errors"][0]["field"] == name


async def test_the_overview_counts_jobs_and_names_the_newest(gateway: Running) -> None:
    assert (await get(gateway, "/overview"))["mean"] is None
    assert "Suite glue has no metric 'bleu'" in (await get(gateway, "/overview?suite=glue&metric=bleu", 400))["detail"]
    gateway.world.jobs.update(busy_world().jobs)
    got = await get(gateway, "/overview?suite=glue&days=7&project_id=3&metric=f1")
    assert (got["total_jobs"], got["completed_jobs"], got["complete_jobs"], got["failed_jobs"]) == (22, 14, 13, 1)
    assert (got["mean"], got["metric"], got["latest"]["status"]) == (0.8125, "f1", "completed")
    assert got["means"] == [{"suite": "glue", "mode": "loglikelihood", "mean": 0.8125, "runs": 14}]
    asked = gateway.world.asked[-1]
    assert (asked.suite, asked.days, asked.project_id, asked.metric) == ("glue", 7, 3, "f1")


async def test_trends_are_a_series_per_configuration(gateway: Running) -> None:
    world = gateway.world
    job = world.start(world.add(spec("qwen2.5:7b", "demo"), "local").job_id, ago_s=100)
    world.finish(job.job_id)
    got = await get(gateway, "/trends?suite=demo&metric=accuracy&days=9&model_name=a&project_id=2&limit=4")
    (series,) = got["trends"]
    assert (series["model"], series["name"], series["points"][0]["job_id"]) == ("qwen2.5:7b", None, job.job_id)
    assert series["points"][0]["mean"] == 0.795
    asked = world.asked[-1]
    assert (asked.metric, asked.days, asked.model, asked.project_id, asked.limit) == ("accuracy", 9, "a", 2, 4)
    assert asked.mode == suite_pb2.MODE_GENERATE
    assert "Suite glue has no metric 'bleu'" in (await get(gateway, "/trends?metric=bleu", 400))["detail"]


def board(**entry: Any) -> list[metric_pb2.LeaderboardEntry]:
    first = fake_data.leaderboard({})[0]
    for name, value in entry.items():
        setattr(first, name, value)
    return [first]


async def test_a_row_tells_its_places_its_trend_and_its_configuration(gateway: Running) -> None:
    entry = {"rank_low": 1, "rank_high": 3, "name": "prod-7b", "alias": "prod", "shots": 5, "previous_mean": 0.85}
    gateway.world.boards["glue"] = board(**entry, previous_job_id="1f6e0a52-8a27-4a3b-9c6e-0d2f3a4b5c6d")
    got = await get(gateway, "/leaderboard?metric=score")
    (row,) = got["leaderboard"]
    assert (row["rank"], row["rank_range"], row["name"], row["alias"], row["shots"]) == (
        1,
        [1, 3],
        "prod-7b",
        "prod",
        5,
    )
    assert row["trend"] == {
        "previous": 0.85,
        "previous_job_id": "1f6e0a52-8a27-4a3b-9c6e-0d2f3a4b5c6d",
        "change": pytest.approx(0.015),
        "direction": "up",
    }
    assert row["receipt"]["endpoint_kind"] is None


async def test_a_trend_has_a_direction(gateway: Running) -> None:
    for previous, direction in [(0.9, "down"), (0.865, "same"), (0.5, "up")]:
        gateway.world.boards["glue"] = board(previous_mean=previous)
        (row,) = (await get(gateway, "/leaderboard?metric=score"))["leaderboard"]
        assert row["trend"]["direction"] == direction


async def test_a_row_without_an_earlier_run_has_no_trend(gateway: Running) -> None:
    gateway.world.boards["glue"] = board()
    (row,) = (await get(gateway, "/leaderboard?metric=score"))["leaderboard"]
    assert (row["trend"], row["rank_range"], row["name"], row["alias"]) == (None, None, None, None)


async def test_every_choice_of_the_leaderboard_reaches_the_results_service(gateway: Running) -> None:
    gateway.world.boards["glue"] = board()
    asked = "mode=loglikelihood&item_set=7f3ac1d9&endpoint=vllm-a&project_id=4&metric=f1&limit=7"
    await get(gateway, f"/leaderboard?{asked}")
    assert gateway.world.asked[-1] == results_service_pb2.GetLeaderboardRequest(
        suite="glue",
        metric="f1",
        limit=7,
        item_set="7f3ac1d9",
        mode=suite_pb2.MODE_LOGLIKELIHOOD,
        endpoint="vllm-a",
        project_id=4,
    )


async def test_an_unknown_endpoint_is_refused_on_an_empty_leaderboard(gateway: Running) -> None:
    assert (
        "Unknown endpoint 'nope'. Endpoints here: gemini"
        in (await get(gateway, "/leaderboard?endpoint=nope", 400))["detail"]
    )


async def test_lists_show_jobs_as_the_scheduler_has_them(gateway: Running) -> None:
    world = gateway.world
    ended, scoring, changed, accepted = (
        world.start(world.add(spec(model, "demo"), "local").job_id)
        for model in ("qwen2.5:7b", "phi4-mini", "gemma3:4b", "qwen2.5:7b")
    )
    for job in (ended, changed):
        world.stale[job.job_id] = type(job).FromString(job.SerializeToString())
    world.unstored.add(accepted.job_id)
    world.finish(ended.job_id)
    world.advance(changed.job_id, 160)
    world.advance(scoring.job_id, 1600)
    expected = {ended.job_id: "completed", scoring.job_id: "running", changed.job_id: "running"}
    expected[accepted.job_id] = "running"
    for path, name in (("/results", "results"), ("/history", "history")):
        listed = await get(gateway, path)
        assert {row["job_id"]: row["status"] for row in listed[name]} == expected
    assert (await get(gateway, "/results?limit=3"))["total"] == 3, "a full page has no room for another job"
    running = await get(gateway, "/results?status=running")
    assert {row["job_id"] for row in running["results"]} == expected.keys() - {ended.job_id}
    for address in ("/jobs", "/overview"):
        page = (await gateway.client.get(address, headers={"Accept": "text/html"})).text
        for job in (ended, scoring, changed, accepted):
            assert f"/jobs/{job.job_id}" in page
        assert page.count("</i>running</span>") == 2
        assert page.count("</i>scoring</span>") == 1
