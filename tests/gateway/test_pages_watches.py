"""The page of a watch, and the form that starts one."""

from __future__ import annotations

from tests.gateway.gateway_server import Running
from tests.gateway.test_pages import page
from tests.gateway.test_rest_changes import UNKNOWN
from tests.gateway.test_rest_results import finished
from touchstone.v1 import watch_pb2


def alarm(schedule_id: str, job_id: str) -> watch_pb2.Watch:
    """A watch that has raised the alarm in its second run."""
    made = watch_pb2.Watch(
        schedule_id=schedule_id,
        reference_job_id=job_id,
        error=0.01,
        asked=60,
        left_out=3,
        raised_by=watch_pb2.WATCH_SIGNAL_SCORE,
        raised_after=52,
        raised_job_id=job_id,
        since_job_id=job_id,
        threshold=4.6,
        reference_mean=0.84,
        mean=0.5,
        answers_differ=0.41,
        answers_differ_usually=0.04,
        texts_differ=0.97,
        runs=[
            watch_pb2.WatchRun(job_id=UNKNOWN, asked=30, changed=1, score=-0.4, answers=-1000, text=-1000),
            watch_pb2.WatchRun(job_id=job_id, asked=30, changed=22, score=5.1, answers=2.3, text=-1000),
        ],
        changes=[
            watch_pb2.WatchChange(
                job_id=job_id,
                task="rte",
                item=item,
                answer_before="<i>yes",
                answer_now="no",
                score_before=1,
                score_now=0,
            )
            for item in range(22)
        ],
        served=[watch_pb2.WatchServed(model="m-0613")],
    )
    for stamp in (made.since_at, made.raised_at, made.runs[0].created_at, made.runs[1].created_at):
        stamp.FromJsonString("2026-11-20T06:00:00Z")
    return made


async def test_a_watch_is_started_in_the_settings_and_has_a_page(gateway: Running) -> None:
    job = finished(gateway, "demo")
    sent = {"reference": job.job_id, "items": "20", "label": "prod"}
    form = await page(gateway, "/settings")
    assert 'id="watch-items" name="items"' in form
    assert 'id="items"' not in form, "phones hide what is called so"
    made = await gateway.client.post("/settings/watches", data=sent)
    (schedule,) = gateway.world.schedules.values()
    assert made.headers["location"] == f"/watches/{schedule.schedule_id}"
    assert (schedule.spec.watching.items, schedule.cron) == (20, "0 6 * * *")
    text = await page(gateway, f"/watches/{schedule.schedule_id}")
    assert "No canary is answered yet." in text
    assert "The first run starts at" in text
    assert "200, 20 each time; on which 4 runs of other models differ most" in text
    listed = await page(gateway, "/settings")
    assert f'<a href="/watches/{schedule.schedule_id}">prod</a>' in listed


async def test_a_wrong_watch_is_said_in_its_form(gateway: Running) -> None:
    job_id = finished(gateway, "demo").job_id
    for change, status, words in (
        ({"reference": ""}, 400, "Name the job whose answers are the reference."),
        ({"reference": "x"}, 404, "not found"),
        ({"items": "many"}, 400, "items must be between 1 and 100."),
        ({"items": "0"}, 400, "items must be between 1 and 100."),
        ({"cron": "daily"}, 400, "cron must have five fields"),
        ({"again": job_id}, 400, "must be another job than the reference"),
    ):
        answer = await gateway.client.post("/settings/watches", data={"reference": job_id} | change)
        told = answer.text.partition('id="watches-problem">')[2].partition("</p>")[0]
        assert (answer.status_code, words in told) == (status, True), told
    assert gateway.world.schedules == {}


async def test_an_alarm_is_shown_with_its_time_and_items(gateway: Running) -> None:
    job = finished(gateway, "demo")
    await gateway.client.post("/settings/watches", data={"reference": job.job_id})
    (schedule,) = gateway.world.schedules.values()
    gateway.world.watches[schedule.schedule_id] = alarm(schedule.schedule_id, job.job_id)
    text = await page(gateway, f"/watches/{schedule.schedule_id}")
    assert "This is not the model of the reference any more: its answers are worse than those of the reference." in text
    assert "Since about 20 Nov" in text
    assert "50.0, reference 84.0" in text
    assert "41.0 %, of the same model asked twice 4.0 %" in text
    assert f'href="/jobs/{job.job_id}/items/rte/3"' in text
    assert "m-0613" in text
    assert "<i>yes" not in (await gateway.client.get(f"/watches/{schedule.schedule_id}")).text
    assert 'aria-label="Evidence: 100 % of the way to an alarm"' in text


async def test_an_unknown_watch_is_404_and_a_silent_service_says_so(gateway: Running) -> None:
    answer = await gateway.client.get(f"/watches/{UNKNOWN}")
    assert answer.status_code == 404
    job = finished(gateway, "demo")
    await gateway.client.post("/settings/watches", data={"reference": job.job_id})
    (schedule,) = gateway.world.schedules.values()
    await gateway.stop_service("results")
    answer = await gateway.client.get(f"/watches/{schedule.schedule_id}")
    assert answer.status_code == 200
    assert 'role="alert"' in answer.text
