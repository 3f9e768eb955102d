"""Watches over REST."""

from __future__ import annotations

from typing import Any

from tests.gateway.gateway_server import Running
from tests.gateway.test_rest_changes import UNKNOWN, send
from tests.gateway.test_rest_results import finished, get
from touchstone.v1 import watch_pb2


async def test_a_watch_is_a_schedule_that_says_what_it_asks(gateway: Running) -> None:
    job = finished(gateway, "demo")
    made = await send(gateway, "POST", "/watches", {"reference": job.job_id, "label": "api", "seed": 3})
    assert (made["cron"], made["label"], made["job"]["model"]) == ("0 6 * * *", "api", job.spec.model)
    assert made["watch"] == {
        "reference_job_id": job.job_id,
        "again_job_id": None,
        "items": 30,
        "canaries": 300,
        "known_runs": 4,
        "error": 0.01,
        "seed": 3,
    }
    (listed,) = (await get(gateway, "/schedules"))["schedules"]
    assert listed["watch"] == made["watch"]


async def test_what_cannot_be_watched_is_said(gateway: Running) -> None:
    job_id = finished(gateway, "demo").job_id
    wrong: list[tuple[dict[str, Any], int, str]] = [
        ({"reference": None}, 422, "reference is required."),
        ({"reference": "x"}, 422, "a job's id"),
        ({"reference": UNKNOWN}, 404, "not found"),
        ({"again": UNKNOWN}, 404, "not found"),
        ({"again": job_id}, 400, "another job than the reference"),
        ({"items": 0}, 422, "items must be between 1 and 100."),
        ({"error": 0}, 422, "error must be above 0"),
        ({"error": 0.5}, 422, "0.2"),
        ({"cron": "daily"}, 400, "cron must have five fields"),
        ({"suite": "demo"}, 422, "suite is not known."),
    ]
    for change, status, words in wrong:
        assert words in (await send(gateway, "POST", "/watches", {"reference": job_id} | change, status))["detail"]
    assert gateway.world.schedules == {}


async def test_an_alarm_says_since_when_and_with_which_items(gateway: Running) -> None:
    job_id = finished(gateway, "demo").job_id
    watch = watch_pb2.Watch(
        schedule_id=UNKNOWN,
        reference_job_id=job_id,
        error=0.01,
        asked=60,
        raised_by=watch_pb2.WATCH_SIGNAL_ANSWERS,
        raised_after=52,
        raised_job_id=job_id,
        since_job_id=job_id,
        threshold=4.6,
        answers_differ=0.4,
        runs=[watch_pb2.WatchRun(job_id=job_id, asked=30, changed=12, score=0.1, answers=5.0, text=-1000)],
        changes=[watch_pb2.WatchChange(job_id=job_id, task="rte", item=3, answer_before="yes", answer_now="no")],
        served=[watch_pb2.WatchServed(model="m-2")],
    )
    watch.since_at.FromJsonString("2026-11-20T06:00:00Z")
    gateway.world.watches[UNKNOWN] = watch
    found = await get(gateway, f"/watches/{UNKNOWN}")
    assert found["said"] == (
        "This is not the model of the reference any more: its answers differ from the reference more often than chance "
        "explains."
    )
    assert (found["raised_by"], found["raised_after"], found["since"]) == ("answers", 52, "2026-11-20T06:00:00.000Z")
    assert (found["answers_differ"], found["texts_differ"], found["mean"]) == (0.4, None, None)
    assert found["changes"] == [
        {
            "job_id": job_id,
            "task": "rte",
            "item": 3,
            "answer_before": "yes",
            "answer_now": "no",
            "score_before": None,
            "score_now": None,
        }
    ]


async def test_before_its_first_run_a_watch_has_nothing_to_show(gateway: Running) -> None:
    detail = (await send(gateway, "GET", f"/watches/{UNKNOWN}", status=404))["detail"]
    assert detail == f"Watch {UNKNOWN} not found. If it is new, wait for its first run."
