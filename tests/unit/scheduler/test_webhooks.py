"""Calls when jobs finish: who is told, how it is signed, what is tried again, what may be called at all."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import random

import pytest

from services.errors import ConflictError, InvalidRequestError, LimitReachedError, NotFoundError, UnavailableError
from services.scheduler.settings import WebhookSettings
from services.scheduler.webhooks import outcome
from services.scheduler.webhooks.address import AddressRule
from services.scheduler.webhooks.outcome import Answer
from tests.unit.scheduler.fakes import ADMIN, ALICE, BOB
from tests.unit.scheduler.webhook_fakes import Calls, ended
from touchstone.v1 import webhook_pb2

URL = "https://hooks.example.com/a"


# -- who is told ---------------------------------------------------------------------------------------------------


async def test_owners_webhooks_of_the_event_and_project_are_called() -> None:
    calls = Calls()
    await calls.desk.create(ALICE, URL, [], 0)
    await calls.desk.create(ALICE, URL + "/failed", ["job.failed"], 0)
    await calls.desk.create(ALICE, URL + "/7", [], 7)
    await calls.desk.create(BOB, URL + "/bob", [], 0)
    await calls.fanout.take(ended())
    await calls.fanout.take(ended("running", event_id="2"))
    await calls.settle()
    assert [url for url, _, _ in calls.caller.calls] == [URL]
    await calls.fanout.take(ended("failed", event_id="3", project_id=7))
    await calls.settle()
    assert sorted(url for url, _, _ in calls.caller.calls[1:]) == [URL, URL + "/7", URL + "/failed"]
    assert calls.deliveries.records == {}


async def test_the_body_tells_of_the_job_and_the_signature_is_over_time_and_body() -> None:
    calls = Calls()
    made = await calls.desk.create(ALICE, URL, [], 0)
    await calls.fanout.take(ended("failed", project_id=3))
    await calls.settle()
    ((_, headers, body),) = calls.caller.calls
    assert json.loads(body) == {
        "event": "job.failed",
        "delivery_id": headers["Touchstone-Delivery"],
        "job": {
            "job_id": "j1",
            "status": "failed",
            "model_name": "m",
            "benchmark_suite": "demo",
            "project_id": 3,
            "owner": "alice",
            "created_at": "2026-11-20T10:00:00.500Z",
            "completed_at": "2026-11-20T10:01:00.000Z",
            "error": "It broke.",
        },
    }
    assert headers["Touchstone-Event"] == "job.failed"
    assert headers["Touchstone-Timestamp"] == "1000000"
    expected = hmac.new(made.secret.encode(), b"1000000." + body, hashlib.sha256).hexdigest()
    assert headers["Touchstone-Signature"] == f"v1={expected}"


async def test_a_jobs_own_url_is_signed_with_the_one_key_of_its_owner() -> None:
    calls = Calls()
    await calls.fanout.take(ended(url=URL))
    await calls.settle()
    ((_, headers, body),) = calls.caller.calls
    secret = await calls.desk.job_secret("alice")
    expected = hmac.new(secret.encode(), b"1000000." + body, hashlib.sha256).hexdigest()
    assert headers["Touchstone-Signature"] == f"v1={expected}"
    assert await calls.desk.job_secret("bob") != secret


async def test_an_event_that_comes_twice_is_one_delivery() -> None:
    calls = Calls()
    calls.caller.answer = lambda url, number: Answer(500)
    calls.settings = WebhookSettings(tries=2)
    calls.lead()
    await calls.desk.create(ALICE, URL, [], 0)
    await calls.fanout.take(ended())
    await calls.settle()
    await calls.fanout.take(ended())
    await calls.settle()
    assert len(calls.caller.calls) == 1
    await calls.courier.close()


async def test_a_call_that_was_planned_while_the_clock_was_ahead_is_made_once_it_is_right() -> None:
    calls = Calls()
    await calls.desk.create(ALICE, URL, [], 0)
    calls.time += 86_400
    await calls.fanout.take(ended())
    calls.time -= 86_400
    await calls.settle()
    assert len(calls.caller.calls) == 1
    await calls.courier.close()


# -- tries ---------------------------------------------------------------------------------------------------------


async def test_a_call_is_tried_eight_times_and_then_kept_as_dead() -> None:
    calls = Calls()
    calls.caller.answer = lambda url, number: Answer(500, "status 500")
    await calls.desk.create(ALICE, URL, [], 0)
    await calls.fanout.take(ended())
    await calls.settle()
    assert len(calls.caller.calls) == 8
    assert len({headers["Touchstone-Delivery"] for _, headers, _ in calls.caller.calls}) == 1
    (dead,) = await calls.desk.dead(ALICE)
    assert (dead.tries, dead.problem, dead.event) == (8, "status 500", "job.completed")
    assert await calls.desk.dead(BOB) == []
    assert len(await calls.desk.dead(ADMIN)) == 1


@pytest.mark.parametrize(("status", "tries"), [(400, 1), (404, 1), (410, 1), (408, 8), (429, 8), (302, 8), (503, 8)])
async def test_refusals_for_good_are_dead_at_once_and_others_are_tried_again(status: int, tries: int) -> None:
    calls = Calls()
    calls.caller.answer = lambda url, number: Answer(status)
    await calls.desk.create(ALICE, URL, [], 0)
    await calls.fanout.take(ended())
    await calls.settle()
    assert len(calls.caller.calls) == tries


async def test_a_call_that_works_at_last_leaves_nothing() -> None:
    calls = Calls()
    calls.caller.answer = lambda url, number: Answer(204) if number == 5 else Answer(problem="no answer in time")
    await calls.desk.create(ALICE, URL, [], 0)
    await calls.fanout.take(ended())
    await calls.settle()
    assert len(calls.caller.calls) == 5
    assert calls.deliveries.records == {}


async def test_a_crash_repeats_a_call_and_loses_none() -> None:
    calls = Calls()
    await calls.desk.create(ALICE, URL + "/slow", [], 0)
    await calls.fanout.take(ended())
    await calls.settle()
    assert calls.caller.under_way == 1
    await calls.courier.close()
    calls.lead()
    calls.caller.hanging.set()
    await calls.courier.resume()
    await calls.settle()
    assert len(calls.caller.calls) == 2
    assert calls.deliveries.records == {}


async def test_what_a_call_came_to_is_stored_however_long_that_takes() -> None:
    calls = Calls()
    await calls.desk.create(ALICE, URL + "/slow", [], 0)
    await calls.fanout.take(ended())
    await calls.settle()
    calls.deliveries.down = True
    calls.caller.hanging.set()
    await calls.settle()
    assert calls.deliveries.records
    calls.deliveries.down = False
    await asyncio.sleep(0.05)
    await calls.settle()
    assert calls.deliveries.records == {}
    assert len(calls.caller.calls) == 1


async def test_a_delivery_whose_first_write_was_not_answered_is_made() -> None:
    calls = Calls()
    await calls.desk.create(ALICE, URL, [], 0)
    calls.deliveries.unheard = 1
    with pytest.raises(UnavailableError):
        await calls.fanout.take(ended())
    await calls.fanout.take(ended())
    await calls.settle()
    assert len(calls.caller.calls) == 1
    assert calls.deliveries.records == {}


async def test_tries_go_on_when_a_write_between_them_was_not_answered() -> None:
    calls = Calls()
    calls.caller.answer = lambda url, number: Answer(204) if number == 3 else Answer(500)
    await calls.desk.create(ALICE, URL, [], 0)
    await calls.fanout.take(ended())
    calls.deliveries.unheard = 1
    await calls.settle()
    await asyncio.sleep(0.05)
    await calls.settle()
    assert len(calls.caller.calls) == 3
    assert calls.deliveries.records == {}


async def test_a_redelivery_whose_write_was_not_answered_is_made_when_asked_again() -> None:
    calls = Calls()
    calls.caller.answer = lambda url, number: Answer(204) if number == 9 else Answer(500)
    await calls.desk.create(ALICE, URL, [], 0)
    await calls.fanout.take(ended())
    await calls.settle()
    (dead,) = await calls.desk.dead(ALICE)
    calls.deliveries.unheard = 1
    with pytest.raises(UnavailableError):
        await calls.desk.redeliver(ALICE, dead.delivery_id)
    with pytest.raises(ConflictError):
        await calls.desk.redeliver(ALICE, dead.delivery_id)
    await calls.settle()
    assert len(calls.caller.calls) == 9
    assert calls.deliveries.records == {}


async def test_a_slow_receiver_holds_up_no_other() -> None:
    calls = Calls()
    await calls.desk.create(ALICE, "https://slow.example.com/", [], 0)
    await calls.desk.create(ALICE, URL, [], 0)
    for number in range(20):
        await calls.fanout.take(ended(event_id=str(number)))
    await calls.settle()
    assert calls.caller.under_way == calls.settings.at_once_per_host
    assert sum(url == URL for url, _, _ in calls.caller.calls) == 20
    await calls.courier.close()


async def test_a_dead_delivery_is_tried_once_more_by_its_owner() -> None:
    calls = Calls()
    calls.caller.answer = lambda url, number: Answer(500)
    await calls.desk.create(ALICE, URL, [], 0)
    await calls.fanout.take(ended())
    await calls.settle()
    (dead,) = await calls.desk.dead(ALICE)
    with pytest.raises(NotFoundError):
        await calls.desk.redeliver(BOB, dead.delivery_id)
    for unknown in ("x", "*", "a.b", ""):
        with pytest.raises(NotFoundError):
            await calls.desk.redeliver(ALICE, unknown)
    await calls.desk.redeliver(ALICE, dead.delivery_id)
    with pytest.raises(ConflictError):
        await calls.desk.redeliver(ALICE, dead.delivery_id)
    await calls.settle()
    assert len(calls.caller.calls) == 9
    calls.caller.answer = lambda url, number: Answer(200)
    await calls.desk.redeliver(ALICE, dead.delivery_id)
    await calls.settle()
    assert await calls.desk.dead(ALICE) == []


async def test_a_deleted_webhook_is_called_no_more() -> None:
    calls = Calls()
    made = await calls.desk.create(ALICE, URL, [], 0)
    calls.caller.answer = lambda url, number: Answer(410)
    await calls.fanout.take(ended())
    await calls.settle()
    (dead,) = await calls.desk.dead(ALICE)
    with pytest.raises(NotFoundError):
        await calls.desk.delete(BOB, made.webhook.webhook_id)
    await calls.desk.delete(ALICE, made.webhook.webhook_id)
    await calls.desk.redeliver(ALICE, dead.delivery_id)
    await calls.settle()
    assert len(calls.caller.calls) == 1
    assert calls.deliveries.records == {}


def test_waits_double_to_about_an_hour_and_heed_retry_after() -> None:
    settings, dice = WebhookSettings(), random.Random(1)
    waits = [outcome.wait_s(tries, Answer(500), settings, dice) for tries in range(1, 8)]
    assert 0.8 * 3600 <= sum(waits) <= 1.2 * 3600
    assert waits == sorted(waits)
    assert outcome.wait_s(1, Answer(429, retry_after_s=120), settings, dice) == 120
    assert outcome.wait_s(1, Answer(429, retry_after_s=10**9), settings, dice) == 3600


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7),
        ("Fri, 20 Nov 2026 10:00:30 GMT", 30),
        ("", 0),
        ("soon", 0),
        ("-5", 0),
        ("٣", 0),
        ("9" * 400, 999_999_999),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str, seconds: float) -> None:
    assert outcome.retry_after_s(header, 1_795_168_800.0) == seconds


# -- requests ------------------------------------------------------------------------------------------------------


async def test_secrets_are_in_the_answer_to_the_creation_alone() -> None:
    calls = Calls()
    first, second = await calls.desk.create(ALICE, URL, [], 0), await calls.desk.create(ALICE, URL, [], 0)
    assert first.secret != second.secret
    assert len(first.secret) >= 40
    listed = await calls.desk.all_of(ALICE)
    assert [type(hook) for hook in listed] == [webhook_pb2.Webhook] * 2
    assert first.secret not in str(listed)
    assert list(listed[0].events) == ["job.completed", "job.failed", "job.cancelled"]
    assert await calls.desk.all_of(BOB) == []
    assert len(await calls.desk.all_of(ADMIN)) == 2


async def test_webhooks_of_one_project_are_listed_alone() -> None:
    calls = Calls()
    for project in (0, 7, 7, 8):
        await calls.desk.create(ALICE, URL, [], project)
    assert [hook.project_id for hook in await calls.desk.all_of(ALICE, 7)] == [7, 7]
    assert len(await calls.desk.all_of(ALICE)) == 4
    with pytest.raises(InvalidRequestError):
        await calls.desk.all_of(ALICE, -1)


async def test_a_user_has_so_many_webhooks() -> None:
    calls = Calls(per_owner=2)
    await calls.desk.create(ALICE, URL, [], 0)
    await calls.desk.create(ALICE, URL, [], 0)
    with pytest.raises(LimitReachedError, match="2 webhooks"):
        await calls.desk.create(ALICE, URL, [], 0)
    await calls.desk.create(BOB, URL, [], 0)


async def test_unknown_events_and_projects_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match=r"job\.cancelled"):
        await Calls().desk.create(ALICE, URL, ["job.created"], 0)
    with pytest.raises(InvalidRequestError, match="project_id"):
        await Calls().desk.create(ALICE, URL, [], -1)


# -- addresses -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "", "x", "ftp://a.example/", "file:///etc/passwd", "javascript:alert(1)", "http://", "http:///a",
        "//a.example/",
        "https://user:pass@a.example/", "https://a.example@b.example/", "https://a.example/#x", "https://a.example:0/",
        "https://a.example:99999/", "https://a.example:x/", "https://[::1/", "https://a b/", "https://a.example/\n",
        "https://ä.example/", "https://a.example/" + "x" * 2000,
        "http://127.0.0.1/", "http://10.1.2.3:8080/", "http://192.168.0.1/", "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/", "http://[fe80::1%25eth0]/", "http://[fd00:ec2::254]/", "http://0.0.0.0/", "http://[::]/",
        "http://224.0.0.1/", "http://[ff02::1]/", "http://168.63.129.16/", "http://100.100.100.200/",
        "http://[::ffff:127.0.0.1]/", "http://[::ffff:a9fe:a9fe]/", "http://[2002:7f00:1::]/", "http://[64:ff9b::a9fe:a9fe]/",
        "http://255.255.255.255/", "http://240.0.0.1/",
    ],
)  # fmt: skip
def test_urls_that_lead_inside_or_nowhere_are_refused(url: str) -> None:
    with pytest.raises(InvalidRequestError, match="cannot be called") as refused:
        AddressRule().check_url(url, "spec.webhook_url")
    assert refused.value.field == "spec.webhook_url"


@pytest.mark.parametrize(
    "url", ["https://hooks.example.com/x?y=1", "http://8.8.8.8:8080/", "http://[2606:4700::1111]/"]
)
def test_public_urls_are_taken(url: str) -> None:
    AddressRule().check_url(url, "url")


def test_an_operator_may_permit_this_machine_or_all_networks() -> None:
    AddressRule(loopback=True).check_url("http://127.0.0.1:8080/", "url")
    with pytest.raises(InvalidRequestError):
        AddressRule(loopback=True).check_url("http://10.0.0.1/", "url")
    AddressRule(private=True).check_url("http://10.0.0.1/", "url")
    assert not AddressRule(loopback=True).permits("169.254.169.254")
