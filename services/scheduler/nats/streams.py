"""The WORK and RESULTS streams as the scheduler uses them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial

import nats.errors
import nats.js.errors
from nats.aio.msg import Msg
from nats.js import api

from services import bus
from services.bus import heed_cancel
from services.scheduler.nats.lease import Lease, ends_leadership
from services.scheduler.ports import LeadershipLostError, Told
from touchstone.v1 import unit_pb2

log = logging.getLogger(__name__)

_HEARTBEAT_S = 1.0
_LATE_S = 10.0


class WorkStream:
    """Work over the bus, while the lease is held: WORK cannot check the epoch as the JOBS bucket does, and a leader
    that was paused would release units that are already done under its successor."""

    def __init__(self, connection: bus.Bus, lease: Lease, aside: bus.SettingAside) -> None:
        self._bus = connection
        self._lease = lease
        self._aside = aside

    async def release(self, endpoint: str, priority: int, unit: unit_pb2.Unit) -> bool:
        if not self._lease.held:
            raise LeadershipLostError("the lease ran out before a unit was released")
        with ends_leadership("a unit could not be released"):
            return await self._bus.release(endpoint, priority, unit)

    async def withdraw(self, job_id: str) -> None:
        with ends_leadership("units could not be taken back"):
            await self._bus.js.purge_stream(bus.WORK, subject=bus.job_work_subjects(job_id))

    async def released(self) -> set[tuple[str, int]]:
        with ends_leadership("WORK could not be read"):
            info = await self._bus.js.stream_info(bus.WORK, subjects_filter=">")
            found: set[tuple[str, int]] = set()
            for subject in info.state.subjects or {}:
                try:
                    found.add(bus.parse_work_subject(subject))
                except ValueError as error:
                    await self._remove(subject, error)
        return found

    async def _remove(self, subject: str, error: ValueError) -> None:
        """For a subject that does not belong to a unit."""
        with suppress(nats.js.errors.NotFoundError):
            msg = await self._bus.js.get_last_msg(bus.WORK, subject)
            sequence, data = msg.seq or 0, msg.data or b""
            await self._aside.take(bus.Found(bus.WORK, sequence, subject, data, msg.headers or {}), error)
            await self._bus.js.delete_msg(bus.WORK, sequence)

    async def close(self, job_id: str, attempt: int, units: Sequence[int], after: int) -> Sequence[Told]:
        if not self._lease.held:
            raise LeadershipLostError("the lease ran out before units were closed")
        with ends_leadership("units could not be closed"):
            try:
                closing = (self._bus.publish_returned(job_id, attempt, unit, 0, counted=True) for unit in units)
                last = max(await asyncio.gather(*closing), default=0)
            except bus.StreamFullError:
                return []
            return await self._told(job_id, after, last)

    async def _told(self, job_id: str, after: int, last: int) -> list[Told]:
        config = api.ConsumerConfig(
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=after + 1,
            ack_policy=api.AckPolicy.NONE,
            filter_subject=bus.job_results_subjects(job_id),
            headers_only=True,
            inactive_threshold=10,
            mem_storage=True,
        )
        told: list[Told] = []
        async for msg in self._bus.pulled(bus.RESULTS, config, until=last):
            # The replay of RESULTS sets aside what cannot be read.
            with suppress(ValueError):
                sequence = msg.metadata.sequence.stream
                if sequence <= last:
                    _, unit = bus.parse_results_subject(msg.subject)
                    told.append(Told(unit, bus.ResultHeaders.decode(msg.headers), sequence))
        return told

    async def results_position(self) -> int:
        with ends_leadership("RESULTS could not be read"):
            return (await self._bus.js.stream_info(bus.RESULTS)).state.last_seq


Handler = Callable[[Msg], Awaitable[None]]
"""Called with every RESULTS message, in order, without its body."""


async def tail_results(connection: bus.Bus, after: int, handle: Handler, caught_up: Callable[[], None]) -> None:
    """Follows RESULTS by headers only, without end: every message after position `after`, once and in order.

    Calls `caught_up` when everything that was there at the beginning has been handled.

    The consumer is ephemeral and without acknowledgements; when it falls silent or skips, or the connection broke (the
    server was restarted), another one is made from the last position that was handled.
    """
    position = after
    while True:
        heed_cancel()
        messages: asyncio.Queue[Msg | None] = asyncio.Queue()
        """None for a reconnect: silence of the old consumer would also show it, but only seconds later."""
        with connection.telling_of_reconnects(partial(messages.put_nowait, None)):
            inbox = connection.client.new_inbox()
            subscription = await connection.client.subscribe(inbox, cb=messages.put, pending_msgs_limit=-1)
            config = api.ConsumerConfig(
                deliver_subject=inbox,
                deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=position + 1,
                ack_policy=api.AckPolicy.NONE,
                headers_only=True,
                idle_heartbeat=_HEARTBEAT_S,
                inactive_threshold=30,
                mem_storage=True,
                max_deliver=1,
            )
            try:
                info = await connection.js.add_consumer(bus.RESULTS, config)
                backlog = info.num_pending or 0
                last = await _last(connection) if info.cluster is not None else 0
                late = asyncio.get_running_loop().time() + _LATE_S
                expected = 1
                while True:
                    heed_cancel()
                    if expected > backlog and position >= last:
                        caught_up()
                    elif expected > backlog and asyncio.get_running_loop().time() > late:
                        raise _SkippedError  # The last message may have been purged since.
                    msg = await _next(messages)
                    if not msg.reply:
                        # A heartbeat says how far the server has delivered.
                        if int((msg.headers or {}).get("Nats-Last-Consumer", expected - 1)) >= expected:
                            raise _SkippedError
                        continue
                    if msg.metadata.sequence.consumer != expected:
                        raise _SkippedError
                    expected += 1
                    await handle(msg)
                    position = msg.metadata.sequence.stream
            except (_SkippedError, TimeoutError, nats.errors.Error, nats.js.errors.Error) as error:
                log.info("reading RESULTS again from %d (%s)", position, type(error).__name__)
                await asyncio.sleep(0.2)
            finally:
                await _unsubscribe(subscription)


async def _last(connection: bus.Bus) -> int:
    """The position of the last message. The node of a cluster that has the consumer counts only what it has by now."""
    state = (await connection.js.stream_info(bus.RESULTS)).state
    return state.last_seq if state.messages else 0


async def _next(messages: asyncio.Queue[Msg | None]) -> Msg:
    """Raises _SkippedError after a reconnect, TimeoutError after three heartbeats' silence."""
    async with asyncio.timeout(3 * _HEARTBEAT_S):
        message = await messages.get()
    if message is None:
        raise _SkippedError
    return message


class _SkippedError(Exception):
    """A message was lost on the way."""


async def _unsubscribe(subscription: object) -> None:
    try:
        await subscription.unsubscribe()  # type: ignore[attr-defined]
    except nats.errors.Error:
        log.debug("subscription was gone already")
