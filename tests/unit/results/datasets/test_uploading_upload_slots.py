"""Who may upload at the same time."""

from __future__ import annotations

import asyncio

import pytest

from services.errors import LimitReachedError
from services.results.datasets.uploading import UploadSlots


async def upload(places: UploadSlots, owner: str, until: asyncio.Event, log: list[str]) -> None:
    async with places.of(owner):
        log.append(owner)
        await until.wait()


async def ready() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_one_user_keeps_all_places_only_while_nobody_else_waits() -> None:
    places, never, done = UploadSlots(2, wait_s=60, patience_s=0.05), asyncio.Event(), asyncio.Event()
    log: list[str] = []
    slow = [asyncio.create_task(upload(places, "ann", never, log)) for _ in range(2)]
    await asyncio.sleep(0.1)
    assert log == ["ann", "ann"]
    third = asyncio.create_task(upload(places, "ann", never, log))
    await asyncio.sleep(0.1)
    assert not any(task.done() for task in slow), "a user's own upload moves none of hers"
    other = asyncio.create_task(upload(places, "bob", done, log))
    with pytest.raises(LimitReachedError, match="Another user is waiting to upload"):
        await slow[1]
    await ready()
    assert log == ["ann", "ann", "bob"], "who has none comes before who has one and waits longer"
    assert not slow[0].done()
    done.set()
    await other
    await ready()
    assert log[-1] == "ann"
    never.set()
    await asyncio.gather(slow[0], third)


async def test_uploads_of_two_users_move_nobody() -> None:
    places, done = UploadSlots(2, wait_s=0.2, patience_s=0.05), asyncio.Event()
    log: list[str] = []
    first = [asyncio.create_task(upload(places, owner, done, log)) for owner in ("ann", "bob")]
    await ready()
    with pytest.raises(LimitReachedError, match="2 uploads are running, the most allowed"):
        await upload(places, "eve", done, log)
    done.set()
    await asyncio.gather(*first)
    await upload(places, "eve", done, log)
    assert log == ["ann", "bob", "eve"]


async def test_a_wait_that_is_given_up_loses_no_place() -> None:
    places, never, done = UploadSlots(1, wait_s=60), asyncio.Event(), asyncio.Event()
    log: list[str] = []
    first = asyncio.create_task(upload(places, "ann", done, log))
    await ready()
    waiting = [asyncio.create_task(upload(places, owner, never, log)) for owner in ("bob", "eve")]
    await ready()
    waiting[0].cancel()
    done.set()
    await first
    await ready()
    assert log == ["ann", "eve"]
    # One that was given its place and is cancelled before it takes it.
    last = asyncio.create_task(upload(places, "dan", done, log))
    await ready()
    waiting[1].cancel()
    await asyncio.wait(waiting)
    last.cancel()
    await asyncio.wait([last])
    await asyncio.wait_for(upload(places, "ann", done, log), 60)
    never.set()


async def test_an_uploads_own_timeout_is_no_matter_of_places() -> None:
    places = UploadSlots(1, wait_s=1)
    with pytest.raises(TimeoutError, match="mine"):
        async with places.of("ann"):
            raise TimeoutError("mine")
    async with places.of("ann"):
        pass
