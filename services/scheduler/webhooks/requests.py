"""Callers' requests about webhooks."""

from __future__ import annotations

import asyncio
import secrets
import uuid
from collections.abc import Callable, Sequence

from services.errors import ConflictError, InvalidRequestError, LimitReachedError, NotFoundError
from services.rpc import Identity
from services.scheduler.jobs.job import stamp
from services.scheduler.settings import WebhookSettings
from services.scheduler.webhooks.address import AddressRule
from services.scheduler.webhooks.courier import Courier
from services.scheduler.webhooks.deliveries import job_secret
from services.scheduler.webhooks.ports import Deliveries, Hooks
from services.telemetry import metrics
from services.words import refusals
from services.words.jobs import WEBHOOK_EVENTS, require_project
from touchstone.v1 import webhook_pb2

_LATER_S = 3600


class WebhookDesk:
    """Everybody sees and changes their own; an admin everybody's. Raises UnavailableError while NATS is silent."""

    def __init__(
        self,
        hooks: Hooks,
        deliveries: Deliveries,
        courier: Courier,
        settings: WebhookSettings,
        wall: Callable[[], float],
    ) -> None:
        self._hooks, self._deliveries, self._courier = hooks, deliveries, courier
        self._settings, self._wall = settings, wall
        self._rule = AddressRule(settings.private, settings.loopback)
        self._lock = asyncio.Lock()

    async def create(
        self, caller: Identity, url: str, events: Sequence[str], project_id: int
    ) -> webhook_pb2.WebhookRecord:
        """Raises InvalidRequestError, LimitReachedError."""
        self._rule.check_url(url, "url")
        unknown = sorted(set(events) - set(WEBHOOK_EVENTS))
        if unknown:
            raise InvalidRequestError(refusals.not_valid(unknown[0], "event", WEBHOOK_EVENTS), "events")
        require_project(project_id)
        hook = webhook_pb2.Webhook(
            webhook_id=str(uuid.uuid4()),
            owner=caller.user,
            url=url,
            events=[event for event in WEBHOOK_EVENTS if not events or event in events],
            project_id=project_id,
        )
        stamp(hook.created_at, self._wall())
        record = webhook_pb2.WebhookRecord(webhook=hook, secret=secrets.token_urlsafe(32))
        async with self._lock:
            most = self._settings.per_owner
            if len(await self._hooks.of(caller.user)) >= most:
                metrics.REFUSALS.add("webhooks")
                raise LimitReachedError(refusals.quota(most, "webhooks"), _LATER_S)
            await self._hooks.add(record)
        return record

    async def all_of(self, caller: Identity, project_id: int = 0) -> list[webhook_pb2.Webhook]:
        """Oldest first; those for the jobs of one project, or all for 0."""
        require_project(project_id)
        known = await self._hooks.of("" if caller.is_admin else caller.user)
        found = [hook for hook in known if project_id in (0, hook.project_id)]
        return sorted(found, key=lambda hook: (hook.created_at.ToNanoseconds(), hook.webhook_id))

    async def delete(self, caller: Identity, webhook_id: str) -> None:
        """Calls that wait for another try are dropped with it."""
        for hook in await self.all_of(caller):
            if hook.webhook_id == webhook_id:
                await self._hooks.remove(hook)
                return
        raise NotFoundError(refusals.not_found("Webhook", webhook_id))

    async def dead(self, caller: Identity) -> list[webhook_pb2.Delivery]:
        """Given up, newest first."""
        found = [
            delivery
            async for delivery, _ in self._deliveries.all()
            if not delivery.HasField("next_try_at") and _sees(caller, delivery)
        ]
        return sorted(found, key=lambda one: (-one.last_try_at.ToNanoseconds(), one.delivery_id))

    async def redeliver(self, caller: Identity, delivery_id: str) -> webhook_pb2.Delivery:
        """Calls at once, and once more when it had all of its tries. Raises ConflictError for one not given up."""
        found = await self._deliveries.get(delivery_id) if _is_uuid(delivery_id) else None
        if found is None or not _sees(caller, found[0]):
            raise NotFoundError(refusals.not_found("Delivery", delivery_id))
        delivery, revision = found
        if delivery.HasField("next_try_at"):
            # Perhaps the answer to that write was lost, and no task handles it.
            self._courier.take(delivery, revision)
            raise ConflictError(f"Delivery {delivery_id} is still being tried. Wait for it.")
        stamp(delivery.next_try_at, self._wall())
        stored = await self._deliveries.replace(delivery, revision)
        if stored is None:
            raise ConflictError(f"Delivery {delivery_id} is already being tried again. Wait for it.")
        self._courier.take(delivery, stored)
        return delivery

    # -- jobs' own URLs ----------------------------------------------------------------------------------------

    def check_job_url(self, url: str) -> None:
        """Raises InvalidRequestError."""
        self._rule.check_url(url, "spec.webhook_url")

    async def job_secret(self, owner: str) -> str:
        """Signs the calls of the URLs that a user's jobs name."""
        return job_secret(await self._hooks.installation_key(), owner)


def _sees(caller: Identity, delivery: webhook_pb2.Delivery) -> bool:
    return caller.is_admin or caller.user == delivery.owner


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False
