"""The queue: what it shows, who may change it, and what is said where nothing can be changed."""

from __future__ import annotations

import re

from tests.gateway import fake_data
from tests.gateway.fake_world import spec
from tests.gateway.gateway_server import Running
from tests.gateway.test_pages import page
from tests.gateway.test_pages_datasets import dataset_of
from touchstone.v1 import job_pb2


async def test_the_queue_shows_what_runs_what_waits_and_about_when_it_starts(gateway: Running) -> None:
    world = gateway.world
    running = world.start(world.add(spec("qwen2.5:7b"), "local").job_id)
    waiting = world.add(spec('<i>"evil'), "a.lind")
    waiting.progress.starts_in_s = 60 * 26
    text = await page(gateway, "/queue")
    assert "1 running, 1 waiting · Queue" in text
    assert "1 of 3 slots in use, 1 waiting" in text
    assert f"/jobs/{running.job_id}" in text
    (start,) = set(re.findall(r"about \d\d:\d\d", text))
    assert start in await page(gateway, "/overview"), "a job's expected start is the same on every page"
    assert "Within a priority, users take turns" in text
    assert 'href="/queue"' in text, "the top bar leads here"
    assert "evaluator-1" in text
    answer = await gateway.client.get("/queue", headers={"HX-Request": "true"})
    assert answer.text.startswith('<div id="queue-page"')
    assert "<i>" not in answer.text


async def test_an_admin_gives_a_waiting_job_another_priority_and_cancels_it(gateway: Running) -> None:
    job = gateway.world.add(spec(), "a.lind")
    job.spec.priority = job_pb2.PRIORITY_NORMAL
    post = gateway.client.post
    answer = await post(f"/queue/{job.job_id}/priority", data={"priority": "high"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/queue")
    assert job.spec.priority == job_pb2.PRIORITY_HIGH
    wrong = await post(f"/queue/{job.job_id}/priority", data={"priority": "urgent"})
    assert wrong.status_code == 400
    assert "Use one of: low, normal, high." in wrong.text
    answer = await post(f"/queue/{job.job_id}/cancel")
    assert (answer.status_code, answer.headers["location"]) == (303, "/queue")
    assert job.state == job_pb2.Job.STATE_CANCELLED
    again = await post(f"/queue/{job.job_id}/priority", data={"priority": "low"})
    assert again.status_code == 409


async def test_an_empty_queue_says_so(gateway: Running) -> None:
    text = await page(gateway, "/queue")
    assert "No job is running." in text
    assert "No job waits. A new one starts at once if a slot is free." in text


async def test_settings_count_the_models_that_each_endpoint_lists(gateway: Running) -> None:
    told = await page(gateway, "/settings")
    for name, listed in fake_data.models().items():
        row = told.partition(f'<td class="user-name">{name}</td>')[2].partition("</tr>")[0]
        assert f'<td class="num">{len(listed)}</td>' in row, name


async def test_settings_manage_webhooks_and_schedules(gateway: Running) -> None:
    world, post = gateway.world, gateway.client.post
    job = world.add(spec('<i>"evil'), "local")
    text = await page(gateway, "/settings")
    assert "It has no users" in text
    assert "set XAI_API_KEY" in text
    refused = await post("/settings/tokens", data={"user": "a", "role": "user"})
    assert (refused.status_code, "Set TOUCHSTONE_AUTH=token" in refused.text) == (400, True)
    made = await post("/settings/webhooks", data={"url": "https://example.com/hook", "events": ["job.failed"]})
    assert "shown-once" in made.text
    (webhook,) = world.webhooks.values()
    assert (webhook.url, list(webhook.events)) == ("https://example.com/hook", ["job.failed"])
    wrong = await post("/settings/webhooks", data={"url": "ftp://x"})
    assert (wrong.status_code, 'value="ftp://x"' in wrong.text, "webhooks-problem" in wrong.text) == (400, True, True)
    assert 'name="label"' in text.partition('action="/settings/schedules"')[2].partition("</form>")[0]
    asked = {"job": job.job_id, "cron": "0 2 * * 1", "time_zone": "Europe/Zurich", "label": "weekly"}
    assert (await post("/settings/schedules", data=asked)).headers["location"] == "/settings#schedules"
    (schedule,) = world.schedules.values()
    assert (schedule.spec.model, schedule.spec.priority) == (job.spec.model, job_pb2.PRIORITY_LOW)
    assert schedule.label == "weekly"
    for sent, status in ((asked | {"cron": "never"}, 400), (asked | {"job": "nonsense"}, 404)):
        answer = await post("/settings/schedules", data=sent)
        assert (answer.status_code, "schedules-problem" in answer.text) == (status, True)
    assert (await post(f"/settings/schedules/{schedule.schedule_id}/pause")).status_code == 303
    text = await page(gateway, "/settings")
    assert ("paused</span>" in text, f"{schedule.schedule_id}/resume" in text) == (True, True)
    assert (await post(f"/settings/schedules/{schedule.schedule_id}/resume")).status_code == 303
    assert not schedule.HasField("paused_at")
    text = await page(gateway, "/settings")
    assert "example.com/hook" in text
    assert "shown-once" not in text
    assert "<i>" not in (await gateway.client.get("/settings")).text
    assert (await post(f"/settings/webhooks/{webhook.webhook_id}/delete")).status_code == 303
    assert (await post(f"/settings/schedules/{schedule.schedule_id}/delete")).status_code == 303
    assert (len(world.webhooks), len(world.schedules)) == (0, 0)
    assert (await post(f"/settings/webhooks/{webhook.webhook_id}/delete")).status_code == 404
    await gateway.stop_service("scheduler")
    assert "The scheduler does not answer." in await page(gateway, "/settings")


async def test_the_palette_lists_each_kind_and_stays_short(gateway: Running) -> None:
    world, part = gateway.world, {"HX-Request": "true"}
    hostile = '<img src=x onerror="window.pwned=1">'
    made = await dataset_of(gateway, name=f"demo {hostile}.jsonl")
    for _ in range(6):
        world.add(spec("qwen2.5:7b", "demo"), "local")
    odd = world.add(spec(hostile, "demo"), "local")

    async def found(text: str) -> dict[str, list[str]]:
        answer = await gateway.client.get("/jump", params={"q": text}, headers=part)
        assert "<img" not in answer.text
        whole = (await gateway.client.get("/jump", params={"q": text}, follow_redirects=False)).text
        groups = {}
        for group in answer.text.split('role="group"')[1:]:
            addresses = re.findall(r'role="option"[^>]* href="([^"]+)"', group)
            groups[re.search(r'id="found-(\w+)"', group)[1]] = addresses  # type: ignore[index]
            assert not whole or all(f'href="{address}"' in whole for address in addresses)
        return groups

    start = await found("")
    assert (list(start), len(start["jobs"])) == (["jobs", "actions"], 4)
    demo = await found("demo")
    assert len(demo["jobs"]) == 4
    assert demo["suites"] == ["/leaderboard?suite=demo"]
    assert demo["datasets"] == [f"/datasets/{made.dataset_id}"]
    models = await found("qwen2.5:7b")
    assert models["models"] == ["/jobs?endpoint=ollama&amp;model=qwen2.5%3A7b"]
    assert (await found(f"DEMO {hostile[:4]}"))["jobs"] == [f"/jobs/{odd.job_id}"]
    assert await found(odd.job_id) == {"jobs": [f"/jobs/{odd.job_id}"]}
    assert (await gateway.client.get(f"/jump?q={odd.job_id}")).headers["location"] == f"/jobs/{odd.job_id}"
    assert await found("start run") == {"actions": ["/run"]}
    assert await found("experiment") == {"actions": ["/experiments", "/experiments/new"]}
    everything = await found("o")
    assert sum(map(len, everything.values())) <= 12
    assert await found("x" * 5000) == {}
    assert "Nothing fits" in (await gateway.client.get("/jump?q=zzzz")).text
    await gateway.stop_service("results")
    assert "jobs" not in await found("demo")
