"""Requests for webhooks."""

from __future__ import annotations

import pytest

from services.errors import InvalidRequestError, LimitReachedError
from tests.unit.scheduler.fakes import ADMIN, ALICE, BOB
from tests.unit.scheduler.webhook_fakes import Calls
from touchstone.v1 import webhook_pb2

URL = "https://hooks.example.com/a"


async def test_secrets_are_in_the_answer_to_the_creation_alone() -> None:
    calls = Calls()
    first, second = await calls.desk.create(ALICE, URL, [], 0), await calls.desk.create(ALICE, URL, [], 0)
    assert first.secret != second.secret
    assert len(first.secret) >= 40
    listed = await calls.desk.all_of(ALICE)
    assert [type(hook) for hook in listed] == [webhook_pb2.Webhook] * 2
    assert first.secret not in str(listed)
    ended = ["job.completed", "job.failed", "job.cancelled"]
    assert list(listed[0].events) == [*ended, "watch.alarm", "decision.ended", "digest.weekly"]
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
