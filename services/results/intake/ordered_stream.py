"""A JetStream stream read in order and without gaps from a position that the database keeps.

The position in the database is authoritative; the durable consumer only delivers the messages. It is recreated from
that position at every start, after every reconnect and at any sign that a delivery was lost, so that nothing waits for
`ack_wait` and nothing is skipped.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging

import nats.errors
import nats.js.errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import api

from services.bus import Bus, pull_subject
from services.results.intake.writes import Mark

log = logging.getLogger(__name__)

BATCH = 128
"""Messages handed over in one batch: at most 64 MB of item results."""
_IDLE_S = 2.0
_SILENT_ROUNDS = 2
_REQUEST_S = 5.0
_ACK_WAIT_S = 30.0
_RETRY_S = 0.5
_TIMED_OUT, _COMPLETED = "408", "409"

NATS_TROUBLE = (nats.errors.Error, OSError)


class OrderedStream:
    """Delivery: each message once, in order, per process; again after a restart unless the mark was stored.

    Pull requests are written here, not by nats-py's `fetch`, which holds the first messages back until its batch is
    full or its time is over: that would cost every seal up to a second.
    """

    def __init__(self, bus: Bus, stream: str, durable: str) -> None:
        self.name = stream
        self._bus = bus
        self._durable = durable
        self._subscription: Subscription | None = None
        self._inbox = ""
        self._connects = -1
        self._delivered = 0
        self._asked = 0
        self._asked_until = 0.0
        self._silent = 0

    async def fetch(self, mark: Mark) -> tuple[Mark, list[Msg]]:
        """Messages after the mark, with the mark to store with them; none when none came within two seconds.

        The mark given must be the one last returned. Without messages it changes only when the mark turns out to belong
        to another stream.
        """
        if self._subscription is None or self._connects != self._bus.client.stats["reconnects"]:
            return await self._resume(mark), []
        try:
            fetched = await self._receive()
        except NATS_TROUBLE as error:
            log.warning("%s: reading failed, starting again after %d: %s", self.name, mark.sequence, error)
            await self._drop()
            return mark, []
        if not fetched:
            await self._check()
            return mark, []
        self._silent = 0
        return await self._in_order(mark, fetched)

    async def _receive(self) -> list[Msg]:
        """The messages that are there, at most a batch; waits for the first one only."""
        assert self._subscription is not None
        await self._ask()
        received: list[Msg] = []
        with contextlib.suppress(asyncio.TimeoutError):
            while len(received) < BATCH:
                waiting = self._subscription.pending_msgs > 0
                if received and not waiting:
                    break
                msg = await self._subscription.next_msg(timeout=_IDLE_S)
                status = (msg.headers or {}).get("Status")
                # A stored message may have any headers; messages from the server itself have no reply subject.
                if msg.reply:
                    self._asked -= 1
                    received.append(msg)
                elif status in (_TIMED_OUT, _COMPLETED) and "Nats-Pending-Messages" in (msg.headers or {}):
                    self._asked = 0
                    await self._ask()
                else:
                    raise nats.errors.Error(f"status {status} {(msg.headers or {}).get('Description', '')}")
        return received

    async def _ask(self) -> None:
        """Keeps a pull request open, so that messages come when they are stored and never more than two batches."""
        now = asyncio.get_running_loop().time()
        if now > self._asked_until + _IDLE_S:
            self._asked = 0  # The message that ends the request was lost.
        if self._asked >= BATCH // 2:
            return
        request = {"batch": BATCH, "expires": int(_REQUEST_S * 1e9)}
        subject = pull_subject(self.name, self._durable)
        await self._bus.client.publish(subject, json.dumps(request).encode(), reply=self._inbox)
        self._asked += BATCH
        self._asked_until = now + _REQUEST_S

    async def acknowledge(self, messages: list[Msg]) -> None:
        """Tells JetStream that these are stored. Losing this is harmless: the mark decides."""
        with contextlib.suppress(*NATS_TROUBLE):
            await messages[-1].ack()

    async def _in_order(self, mark: Mark, fetched: list[Msg]) -> tuple[Mark, list[Msg]]:
        messages: list[Msg] = []
        sequence = mark.sequence
        for msg in fetched:
            numbers = msg.metadata.sequence
            if numbers.consumer != self._delivered + 1:
                log.warning("%s: a delivery was lost, starting again after %d", self.name, sequence)
                await self._drop()
                break
            self._delivered += 1
            if numbers.stream > sequence:
                sequence = numbers.stream
                messages.append(msg)
        return Mark(mark.stream, mark.created, sequence), messages

    async def _resume(self, mark: Mark) -> Mark:
        """Continues after the mark, as soon as NATS allows it."""
        while True:
            self._connects = self._bus.client.stats["reconnects"]
            try:
                return await self._restart(mark)
            except NATS_TROUBLE as error:
                log.warning("%s: cannot continue reading, trying again: %s", self.name, error or type(error).__name__)
                await asyncio.sleep(_RETRY_S)

    async def _restart(self, mark: Mark) -> Mark:
        await self._drop()
        info = await self._bus.js.stream_info(self.name)
        created = info.created.isoformat() if info.created is not None else ""
        if mark.created != created or mark.sequence > info.state.last_seq:
            if mark.created:
                log.warning(
                    "%s is not the stream that was stored up to %d: reading all of it", self.name, mark.sequence
                )
            mark = Mark(mark.stream, created, 0)
        elif mark.sequence + 1 < info.state.first_seq:
            log.error(
                "%s no longer has %d to %d, which are not stored. Restore a backup, or run `touchstone repair`: it "
                "restores them from the files of finished jobs",
                self.name,
                mark.sequence + 1,
                info.state.first_seq - 1,
            )
        # Purged messages never arrive: nobody may wait for them.
        mark = Mark(mark.stream, mark.created, max(mark.sequence, info.state.first_seq - 1))
        with contextlib.suppress(nats.js.errors.NotFoundError):
            await self._bus.js.delete_consumer(self.name, self._durable)
        await self._bus.js.add_consumer(
            self.name,
            api.ConsumerConfig(
                durable_name=self._durable,
                deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=mark.sequence + 1,
                # Deliveries are checked for gaps, so acknowledging the last one covers all before it.
                ack_policy=api.AckPolicy.ALL,
                ack_wait=_ACK_WAIT_S,
                max_ack_pending=10 * BATCH,
            ),
        )
        self._inbox = self._bus.client.new_inbox()
        self._subscription = await self._bus.client.subscribe(self._inbox)
        self._delivered = self._asked = 0
        return mark

    async def _check(self) -> None:
        """After some silence: a consumer that is gone, or a lost last delivery, would never be noticed otherwise."""
        self._silent += 1
        if self._silent % _SILENT_ROUNDS:
            return
        try:
            info = await self._bus.js.consumer_info(self.name, self._durable)
            lost = info.delivered is not None and info.delivered.consumer_seq > self._delivered
        except nats.js.errors.NotFoundError:
            lost = True
        except NATS_TROUBLE:
            return
        if lost:
            log.warning("%s: the consumer is gone or a delivery was lost, starting again", self.name)
            await self._drop()

    async def _drop(self) -> None:
        old, self._subscription = self._subscription, None
        if old is not None:
            with contextlib.suppress(*NATS_TROUBLE):
                await old.unsubscribe()
