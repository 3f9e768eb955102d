"""Calls when jobs finish: who is told, how it is signed, what is tried again, what may be called at all."""

from __future__ import annotations

import asyncio

import pytest

from services.errors import ConflictError, NotFoundError, UnavailableError
from services.scheduler.settings import WebhookSettings
from services.scheduler.webhooks.deliveries import Answer
from tests.unit.scheduler.fakes import ADMIN, ALICE, BOB
from tests.unit.scheduler.webhook_fakes import Calls, ended

URL = "https://hooks.example.com/a"


async def test_a_call_that_was_planned_while_the_clock_was_ahead_is_made_once_it_is_right() -> None:
    calls = Calls()
    await calls.desk.create(ALICE, URL, [], 0)
    calls.time += 86_400
    await calls.fanout.take(ended())
    calls.time -= 86_400
    await calls.settle()
    assert len(calls.caller.calls) == 1
    await calls.courier.close()


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
