"""Weekly digests: when a webhook is called with one, of what time, and that none is lost or comes twice."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from services.errors import UnavailableError
from services.scheduler.webhooks.deliveries import Answer
from services.scheduler.webhooks.digests import Digests
from services.words.jobs import DIGEST_WEEKLY
from tests.unit.scheduler.fakes import ALICE
from tests.unit.scheduler.webhook_fakes import Calls

URL = "https://hooks.example.com/a"
WEEK_S = 7 * 86_400


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.fixture
async def calls() -> Calls:
    """On a Thursday, with a webhook for digests alone."""
    made = Calls()
    made.time = at("2026-11-26T15:00:00")
    await made.desk.create(ALICE, URL, [DIGEST_WEEKLY], 7)
    return made


def bodies(calls: Calls) -> list[dict[str, Any]]:
    return [json.loads(body) for _, _, body in calls.caller.calls]


def times(calls: Calls) -> list[tuple[str, str]]:
    return [(one["digest"]["from"][:16], one["digest"]["to"][:16]) for one in bodies(calls)]


async def look(calls: Calls) -> None:
    await calls.digests.look()
    await calls.settle()


async def test_after_monday_midnight_the_week_before_is_sent_once(calls: Calls) -> None:
    for moment in ("2026-11-26T15:00:00", "2026-11-29T23:59:59"):
        calls.time = at(moment)
        await look(calls)
    assert not calls.caller.calls
    for moment in ("2026-11-30T00:00:30", "2026-11-30T00:01:30", "2026-12-06T23:00:00"):
        calls.time = at(moment)
        await look(calls)
    assert times(calls) == [("2026-11-23T00:00", "2026-11-30T00:00")]
    ((_, headers, _),) = calls.caller.calls
    (body,) = bodies(calls)
    assert headers["Touchstone-Event"] == body["event"] == DIGEST_WEEKLY
    assert headers["Touchstone-Delivery"] == body["delivery_id"]
    assert body["digest"]["series"][0]["model"] == "m"
    ((request, owner),) = calls.asked
    assert (request.project_id, owner) == (7, "alice")
    calls.time += 86_400
    await look(calls)
    assert times(calls)[1:] == [("2026-11-30T00:00", "2026-12-07T00:00")]


async def test_other_webhooks_and_weeks_without_runs_have_no_digest(calls: Calls) -> None:
    await calls.desk.create(ALICE, URL + "/jobs", ["job.completed"], 0)
    calls.time, calls.runs = at("2026-11-30T01:00:00"), False
    await look(calls)
    await look(calls)
    assert len(calls.asked) == 1
    assert not calls.caller.calls


async def test_one_digest_covers_a_time_without_a_leader(calls: Calls) -> None:
    calls.time = at("2026-11-30T01:00:00")
    await look(calls)
    calls.time = at("2026-12-23T12:00:00")
    await look(calls)
    assert times(calls)[1:] == [("2026-11-30T00:00", "2026-12-21T00:00")]


async def test_a_clock_that_was_ahead_for_a_while_stops_no_digests(calls: Calls) -> None:
    calls.time = at("2026-11-30T01:00:00")
    await look(calls)
    calls.time = at("2028-03-01T01:00:00")
    await look(calls)
    assert len(calls.caller.calls) == 2
    for moment in ("2026-12-01T12:00:00", "2026-12-06T23:59:00", "2026-12-07T00:01:00", "2026-12-07T00:02:00"):
        calls.time = at(moment)
        await look(calls)
    assert times(calls)[2:] == [("2026-11-30T00:00", "2026-12-07T00:00")]


async def test_a_webhook_of_a_time_to_come_has_digests(calls: Calls) -> None:
    (record,) = calls.hooks.records.values()
    record.webhook.created_at.FromSeconds(int(at("2031-01-01T00:00:00")))
    await look(calls)
    calls.time = at("2026-11-30T00:01:00")
    await look(calls)
    assert times(calls) == [("2026-11-23T00:00", "2026-11-30T00:00")]


async def test_a_leader_whose_clock_is_a_little_behind_sends_no_second_digest(calls: Calls) -> None:
    for moment in ("2026-11-30T00:00:10", "2026-11-29T23:59:50", "2026-11-30T00:00:20"):
        calls.time = at(moment)
        await look(calls)
    assert len(calls.caller.calls) == 1


async def test_a_silent_results_service_is_asked_again(calls: Calls) -> None:
    async def silent(*_: object) -> Any:
        raise UnavailableError("results is down")

    calls.time = at("2026-11-30T01:00:00")
    down = Digests(calls.hooks, calls.deliveries, calls.courier, silent, calls.now)
    with pytest.raises(UnavailableError):
        await down.look()
    await look(calls)
    assert len(calls.caller.calls) == 1


async def test_a_webhook_that_is_deleted_meanwhile_stays_deleted(calls: Calls) -> None:
    (webhook,) = await calls.desk.all_of(ALICE)

    async def read(request: Any, owner: str) -> Any:
        await calls.desk.delete(ALICE, webhook.webhook_id)
        return await calls.digest(request, owner)

    calls.time = at("2026-11-30T01:00:00")
    await Digests(calls.hooks, calls.deliveries, calls.courier, read, calls.now).look()
    await calls.settle()
    assert not calls.caller.calls
    assert not calls.hooks.records
    calls.lead()
    await calls.courier.resume()
    await calls.settle()
    assert not calls.deliveries.records


@pytest.mark.parametrize("name", ["delivery", "hook"])
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("fails", [False, True])
async def test_a_crash_at_any_write_neither_loses_nor_doubles_a_digest(
    calls: Calls, name: str, stored: bool, fails: bool
) -> None:
    """`name` says at which write, and `stored` whether it was before or after it."""
    calls.time = at("2026-11-30T01:00:00")
    if fails:
        # The first try of the next leadership fails, so that the delivery waits for another one.
        calls.caller.answer = lambda url, number: Answer(500 if number == 1 else 200)
    place = calls.deliveries if name == "delivery" else calls.hooks
    real = place.replace

    async def replace(record: Any, revision: int) -> int | None:
        if stored:
            await real(record, revision)
        raise asyncio.CancelledError

    place.replace = replace  # type: ignore[method-assign]
    with suppress(asyncio.CancelledError):
        await calls.digests.look()
    await calls.courier.close()
    place.replace = real  # type: ignore[method-assign]
    calls.lead()
    await calls.digests.recover()
    await calls.courier.resume()
    await calls.settle()
    for _ in range(3):
        await look(calls)
        await asyncio.sleep(0.02)
    assert len(calls.caller.calls) == 1 + fails
    assert len({headers["Touchstone-Delivery"] for _, headers, _ in calls.caller.calls}) == 1
    assert not calls.deliveries.records


async def test_a_write_whose_answer_was_lost_is_made_good(calls: Calls) -> None:
    for place in (calls.deliveries, calls.hooks):
        calls.time += WEEK_S
        calls.caller.calls.clear()
        place.unheard = 1
        with pytest.raises(UnavailableError):
            await calls.digests.look()
        await calls.settle()
        assert not calls.caller.calls
        await look(calls)
        await look(calls)
        assert len(calls.caller.calls) == 1
