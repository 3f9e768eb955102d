"""What changes something beside a new job: retry, mark, names, schedules, webhooks."""

from __future__ import annotations

import uuid
from typing import Any

from tests.gateway.fake_world import spec
from tests.gateway.gateway_server import Running
from tests.gateway.test_rest_results import BASE, finished, get
from tests.gateway.test_rest_run import DOCUMENT
from touchstone.v1 import job_pb2, results_service_pb2, suite_pb2, webhook_pb2

UNKNOWN = "a967f363-ee96-4bac-9f52-4d169bbc4851"
HOOK = "https://hooks.example/touchstone"


async def send(gateway: Running, method: str, path: str, body: Any = None, status: int = 200) -> Any:
    answer = await gateway.client.request(method, f"{BASE}{path}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


async def test_a_retry_is_the_jobs_next_attempt(gateway: Running) -> None:
    world = gateway.world
    job = world.start(world.add(spec("qwen2.5:7b", "demo"), "local").job_id)
    assert (
        "is running and cannot be retried"
        in (await send(gateway, "POST", f"/retry/{job.job_id}", status=409))["detail"]
    )
    world.finish(job.job_id, job_pb2.Job.STATE_FAILED, "no answer")
    got = await send(gateway, "POST", f"/retry/{job.job_id}")
    assert got == {"job_id": job.job_id, "attempt": 2, "message": f"Job {job.job_id} runs again, attempt 2"}
    assert (await get(gateway, f"/results/{job.job_id}"))["status"] == "pending"


async def test_an_old_job_is_not_retried_but_run_again(gateway: Running) -> None:
    job = finished(gateway, "demo")
    gateway.world.forgotten.add(job.job_id)
    detail = (await send(gateway, "POST", f"/retry/{job.job_id}", status=409))["detail"]
    assert f"POST /rerun/{job.job_id}" in detail
    assert (await send(gateway, "POST", f"/retry/{UNKNOWN}", status=404))[
        "detail"
    ] == f"Benchmark job {UNKNOWN} not found"


async def test_a_rerun_of_outcomes_that_no_item_has_is_refused_with_what_there_is(gateway: Running) -> None:
    job = finished(gateway, "demo")
    counts = gateway.world.results[job.job_id].outcomes
    counts.infrastructure_error, counts.unparsed = 0, 7
    body = {"outcomes": ["refused", "output_truncated"]}
    detail = (await send(gateway, "POST", f"/rerun/{job.job_id}", body, 400))["detail"]
    assert f"No item of job {job.job_id} ended as refused or output_truncated" in detail
    assert detail.endswith("Its other outcomes: unparsed (7).")
    await send(gateway, "POST", f"/rerun/{job.job_id}", {"outcomes": ["unparsed"]})


async def test_a_rerun_without_the_outcome_goes_on_where_items_have_no_answer(gateway: Running) -> None:
    job = finished(gateway, "demo")
    result = gateway.world.results[job.job_id]
    result.outcomes.infrastructure_error = 0
    result.tasks[0].items -= 1
    await send(gateway, "POST", f"/rerun/{job.job_id}", {"outcomes": ["refused"]})
    assert gateway.world.specs[-1].reuse.job_id == job.job_id


async def test_a_copy_does_not_announce_itself_where_its_source_did(gateway: Running) -> None:
    job = finished(gateway, "demo")
    job.spec.webhook_url, job.spec.schedule_id = HOOK, UNKNOWN
    await send(gateway, "POST", f"/rescore/{job.job_id}", {"priority": "low"})
    made = gateway.world.specs[-1]
    assert (made.webhook_url, made.schedule_id, made.priority) == ("", "", job_pb2.PRIORITY_LOW)


async def test_a_run_is_taken_out_of_rankings_with_a_reason_and_back_in(gateway: Running) -> None:
    job, other = finished(gateway, "demo"), finished(gateway, "demo")
    path = f"/results/{job.job_id}/mark"
    marked = await send(gateway, "POST", path, {"mark": "invalidated", "reason": "The prompt was wrong."})
    assert (marked["mark"], marked["reason"]) == ("invalidated", "The prompt was wrong.")
    shown = await get(gateway, f"/results/{job.job_id}")
    assert (shown["mark"], shown["mark_reason"], shown["superseded_by"]) == (
        "invalidated",
        "The prompt was wrong.",
        None,
    )
    body = {"mark": "superseded", "reason": "Ran again.", "superseded_by": other.job_id.upper()}
    assert (await send(gateway, "POST", path, body))["superseded_by"] == other.job_id
    for back in ({"mark": "valid"}, {"mark": "valid", "reason": ""}):
        assert (await send(gateway, "POST", path, back))["mark"] == "valid"


async def test_a_wrong_mark_is_refused(gateway: Running) -> None:
    for body, words in [
        ({}, "mark is required."),
        ({"mark": "bad"}, "bad is not a valid mark. Use one of: valid, invalidated, superseded."),
        ({"mark": "invalidated"}, "reason is required for invalidated."),
        ({"mark": "invalidated", "reason": " "}, "reason is required for invalidated."),
        ({"mark": "superseded", "reason": "x"}, "superseded_by, the run that replaces it, is required for superseded"),
        (
            {"mark": "invalidated", "reason": "x", "superseded_by": UNKNOWN},
            "superseded_by, the run that replaces it, is required for superseded",
        ),
        (
            {"mark": "superseded", "reason": "x", "superseded_by": "abc"},
            "superseded_by must be a job's id, a UUID or bm_ and 32 digits.",
        ),
        ({"mark": "invalidated", "reason": "x" * 501}, "reason has 501 characters; at most 500 are allowed."),
    ]:
        job = finished(gateway, "demo")
        assert words in (await send(gateway, "POST", f"/results/{job.job_id}/mark", body, 422))["detail"]


async def test_a_configuration_takes_a_name_and_an_alias(gateway: Running) -> None:
    for configuration in ("c0ffee", "decaf"):
        gateway.world.names[configuration] = results_service_pb2.Configuration(
            configuration=configuration,
            model="qwen2.5:7b",
            endpoint="ollama",
            alias="prod" * (configuration == "decaf"),
        )
    named = await send(gateway, "PUT", "/configurations/c0ffee", {"name": "qwen-7b", "alias": "prod"})
    assert (named["name"], named["alias"], named["provider"]) == ("qwen-7b", "prod", "ollama")
    listed = (await get(gateway, "/configurations?named=true&model_name=qwen2.5:7b&limit=5"))["configurations"]
    assert [one["alias"] for one in listed] == ["prod"]
    asked = gateway.world.asked[-1]
    assert (asked.named, asked.model, asked.page_size) == (True, "qwen2.5:7b", 5)
    without = await send(gateway, "PUT", "/configurations/c0ffee", {"alias": ""})
    assert (without["name"], without["alias"]) == ("qwen-7b", None)
    assert (await send(gateway, "PUT", "/configurations/nope", {"name": "x"}, 404))["detail"]


async def test_a_wrong_name_is_refused(gateway: Running) -> None:
    for body, words in [
        ({}, "Give name, alias or both."),
        ({"name": "a b"}, 'name must be of letters, digits, ".", "_" and "-".'),
        ({"alias": "x" * 65}, "alias has 65 characters; at most 64 are allowed."),
        ({"name": None}, "Give name, alias or both."),
        ({"title": "x"}, "title is not known. Allowed: name, alias."),
    ]:
        assert words in (await send(gateway, "PUT", "/configurations/c0ffee", body, 422))["detail"]


async def test_a_schedule_creates_the_documents_job_at_low_priority(gateway: Running) -> None:
    body = {"cron": "0 3 * * 1", "time_zone": "Europe/Zurich", "label": "nightly", "job": DOCUMENT, "request_id": "one"}
    made = await send(gateway, "POST", "/schedules", body)
    assert (made["cron"], made["time_zone"], made["label"], made["owner"]) == (
        "0 3 * * 1",
        "Europe/Zurich",
        "nightly",
        "local",
    )
    assert (made["job"]["provider"], made["job"]["model"], made["job"]["suite"]) == ("ollama", "mistral:latest", "glue")
    stored = gateway.world.schedules[made["schedule_id"]]
    assert stored.spec.priority == job_pb2.PRIORITY_LOW
    assert (stored.spec.sampling.temperature, stored.spec.mode) == (0.1, suite_pb2.MODE_GENERATE)
    raised = await send(
        gateway, "POST", "/schedules", body | {"job": DOCUMENT | {"priority": "normal"}, "request_id": "two"}
    )
    assert gateway.world.schedules[raised["schedule_id"]].spec.priority == job_pb2.PRIORITY_NORMAL
    listed = (await get(gateway, "/schedules?owner=local"))["schedules"]
    assert [one["schedule_id"] for one in listed] == [made["schedule_id"], raised["schedule_id"]]
    gone = await send(gateway, "DELETE", f"/schedules/{made['schedule_id']}")
    assert gone["message"] == f"Schedule {made['schedule_id']} deleted"
    await send(gateway, "DELETE", f"/schedules/{made['schedule_id']}", status=404)


async def test_a_wrong_schedule_is_refused(gateway: Running) -> None:
    wrong: list[tuple[dict[str, Any], int, str]] = [
        ({"cron": "every day"}, 400, "cron must have five fields"),
        ({"cron": "61 * * * *"}, 400, "bad minute"),
        ({"job": DOCUMENT | {"shots": 33}}, 400, "shots"),
        ({"cron": ""}, 422, "cron must not be empty."),
        ({"cron": None}, 422, "cron is required."),
        ({"job": {}}, 422, "job.project_id is required. job.config is required."),
        ({"job": DOCUMENT | {"tasks": ["nope"]}}, 422, "glue has no task 'nope'."),
        ({"job": DOCUMENT | {"suite": "nope"}}, 400, "Invalid benchmark suite."),
        ({"job": DOCUMENT | {"request_id": "x"}}, 422, "job.request_id is not known."),
        ({"label": "x" * 81}, 422, "label has 81 characters"),
    ]
    for change, status, words in wrong:
        body = {"cron": "0 3 * * 1", "job": DOCUMENT} | change
        assert words in (await send(gateway, "POST", "/schedules", body, status))["detail"]
        assert gateway.world.schedules == {}


async def test_a_webhooks_secret_is_shown_once(gateway: Running) -> None:
    made = await send(gateway, "POST", "/webhooks", {"url": HOOK, "events": ["job.failed"], "project_id": 3})
    assert (made["secret"], made["events"], made["project_id"]) == ("shown-once", ["job.failed"], 3)
    (listed,) = (await get(gateway, "/webhooks"))["webhooks"]
    assert listed == {name: value for name, value in made.items() if name != "secret"}
    await send(gateway, "DELETE", f"/webhooks/{made['webhook_id']}")
    await send(gateway, "DELETE", f"/webhooks/{made['webhook_id']}", status=404)


async def test_a_wrong_webhook_is_refused(gateway: Running) -> None:
    for body, status, words in [
        ({"url": "http://10.0.0.1/x"}, 400, "url cannot be called: 10.0.0.1 is not a public address."),
        ({"url": "ftp://hooks.example/x"}, 422, "url must be an http or https address."),
        ({"url": "https://"}, 422, "url must be an http or https address."),
        ({"url": HOOK, "events": []}, 422, "events must hold 1 to 6 entries."),
        (
            {"url": HOOK, "events": ["job.started"]},
            422,
            "job.started is not a valid events[0]. Use one of: job.completed",
        ),
        ({}, 422, "url is required."),
    ]:
        assert words in (await send(gateway, "POST", "/webhooks", body, status))["detail"]


async def test_a_jobs_own_address_reaches_the_scheduler(gateway: Running) -> None:
    await send(gateway, "POST", "/run", DOCUMENT | {"webhook_url": HOOK})
    assert gateway.world.specs[-1].webhook_url == HOOK
    await send(gateway, "POST", "/run", DOCUMENT | {"webhook_url": "javascript:1"}, 422)


async def test_a_delivery_that_was_given_up_is_tried_again(gateway: Running) -> None:
    dead = webhook_pb2.Delivery(
        delivery_id="d-1", owner="local", url=HOOK, event="job.failed", job_id=str(uuid.uuid4())
    )
    dead.tries, dead.problem = 8, "status 500"
    gateway.world.dead["d-1"] = dead
    (listed,) = (await get(gateway, "/webhooks/dead"))["deliveries"]
    assert (listed["webhook_id"], listed["tries"], listed["problem"]) == (None, 8, "status 500")
    assert (await send(gateway, "POST", "/webhooks/dead/d-1/redeliver"))["delivery_id"] == "d-1"
    await send(gateway, "POST", "/webhooks/dead/d-1/redeliver", status=404)
