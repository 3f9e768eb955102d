"""Weekly digests for webhooks: after each Monday's midnight (UTC), what changed since the digest before.

The delivery is stored first, under an id that follows from webhook and week. Then the webhook's record says up to when
it has digests, and only then is the receiver called. So a crash at any moment neither loses a digest nor makes a second
one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from google.protobuf.timestamp_pb2 import Timestamp

from services.bus import heed_cancel
from services.errors import TouchstoneError, UnavailableError
from services.scheduler.jobs.job import seconds, stamp
from services.scheduler.webhooks.courier import Courier
from services.scheduler.webhooks.deliveries import digest_id, of_digest
from services.scheduler.webhooks.ports import Deliveries, Hooks
from services.words.digests import MOST_DAYS
from services.words.jobs import DIGEST_WEEKLY
from touchstone.v1 import digest_pb2, results_service_pb2, webhook_pb2

log = logging.getLogger(__name__)

_LOOK_S = 60.0
_DAY_S, _WEEK_S = 86_400, 7 * 86_400
_FIRST_MONDAY_S = 4 * _DAY_S
"""1970 began on a Thursday."""

Read = Callable[[results_service_pb2.GetDigestRequest, str], Awaitable[digest_pb2.Digest]]


class Digests:
    """Those of one leadership. `read` gives the digest of a request, of what its second argument, a user, may read.
    `wall` gives seconds since 1970."""

    def __init__(
        self, hooks: Hooks, deliveries: Deliveries, courier: Courier, read: Read, wall: Callable[[], float]
    ) -> None:
        self._hooks, self._deliveries, self._courier, self._read, self._wall = hooks, deliveries, courier, read, wall
        self._unsure: set[str] = set()
        """Deliveries of webhooks whose record may say that they are stored, and that nobody makes."""

    async def recover(self) -> None:
        """Notes deliveries that an earlier leadership has stored and not noted: call it before any is made."""
        async for record, revision in self._hooks.all():
            if (end := self._due(record)) is None:
                continue
            found = await self._deliveries.get(digest_id(record.webhook.webhook_id, _stamped(end)))
            if found is not None:
                await self._note(record, revision, end)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            heed_cancel()
            try:
                await self.look()
            except UnavailableError as error:
                log.warning("digests wait: %s", error.message)
            await asyncio.sleep(_LOOK_S)

    async def look(self) -> None:
        """Makes what is due. Raises UnavailableError while the webhooks cannot be read or written."""
        for record, revision in [each async for each in self._hooks.all()]:
            if self._is_ahead(record):
                log.info("webhook %s: the clock was ahead; its next digest is earlier again", record.webhook.webhook_id)
                await self._note(record, revision, self._last_end())
                continue
            if (end := self._due(record)) is None:
                continue
            try:
                await self._make(record, revision, end)
            except UnavailableError:
                raise
            except TouchstoneError as error:
                log.warning("webhook %s: no digest yet: %s", record.webhook.webhook_id, error.message)
        # All that could be noted is noted.
        for delivery_id in list(self._unsure):
            if (found := await self._deliveries.get(delivery_id)) is not None:
                self._courier.take(*found)
            self._unsure.discard(delivery_id)

    def _due(self, record: webhook_pb2.WebhookRecord) -> int | None:
        """The end of the digest that the webhook should have by now and has not, in seconds since 1970."""
        end = self._last_end()
        return end if DIGEST_WEEKLY in record.webhook.events and _known(record) < end else None

    def _is_ahead(self, record: webhook_pb2.WebhookRecord) -> bool:
        """Whether it has digests up to a time that is still to come, and would get none until then. Not after the next
        Monday: the clock of another leader may be ahead by a little."""
        return DIGEST_WEEKLY in record.webhook.events and _known(record) > self._last_end() + _WEEK_S

    def _last_end(self) -> int:
        """The last Monday's midnight, in seconds since 1970."""
        return int(self._wall() - _FIRST_MONDAY_S) // _WEEK_S * _WEEK_S + _FIRST_MONDAY_S

    async def _make(self, record: webhook_pb2.WebhookRecord, revision: int, end: int) -> None:
        hook = record.webhook
        found = await self._deliveries.get(digest_id(hook.webhook_id, _stamped(end)))
        if found is None:
            # After a time without a leader, one digest covers all of it.
            begin = int(seconds(record.digest_end_at)) if record.HasField("digest_end_at") else end - _WEEK_S
            request = results_service_pb2.GetDigestRequest(
                begin_at=_stamped(max(begin, end - MOST_DAYS * _DAY_S)),
                end_at=_stamped(end),
                project_id=hook.project_id,
            )
            digest = await self._read(request, hook.owner)
            if not digest.series:
                await self._note(record, revision, end)
                return
            delivery = of_digest(digest, hook)
            stamp(delivery.next_try_at, self._wall())
            stored = await self._deliveries.add(delivery)
            if stored is None:
                return
            found = delivery, stored
        self._unsure.add(found[0].delivery_id)
        if await self._note(record, revision, end):
            self._courier.take(*found)
        self._unsure.discard(found[0].delivery_id)

    async def _note(self, record: webhook_pb2.WebhookRecord, revision: int, end: int) -> bool:
        """False if the webhook was removed, or another leadership has noted it."""
        stamp(record.digest_end_at, end)
        return await self._hooks.replace(record, revision) is not None


def _known(record: webhook_pb2.WebhookRecord) -> float:
    """From when on its next digest is, in seconds since 1970."""
    return seconds(record.digest_end_at if record.HasField("digest_end_at") else record.webhook.created_at)


def _stamped(at: int) -> Timestamp:
    return Timestamp(seconds=at)
