"""From a job's end in the audit trail to a delivery for everyone who is told of it."""

from __future__ import annotations

from collections.abc import Callable

from services.scheduler.job import stamp
from services.scheduler.webhooks import message
from services.scheduler.webhooks.courier import Courier
from services.scheduler.webhooks.ports import Deliveries, Hooks
from touchstone.v1 import job_pb2


class Fanout:
    """Takes events as often as they come: the deliveries of one are the same each time."""

    def __init__(self, hooks: Hooks, deliveries: Deliveries, courier: Courier, wall: Callable[[], float]) -> None:
        self._hooks, self._deliveries, self._courier, self._wall = hooks, deliveries, courier, wall

    async def take(self, event: job_pb2.JobEvent) -> None:
        """Returns once every delivery is stored. Raises UnavailableError."""
        name = message.event_name(event)
        if not name:
            return
        job = event.job
        targets = [(job.spec.webhook_url, "")] if job.spec.webhook_url else []
        for hook in await self._hooks.of(job.owner):
            if name in hook.events and hook.project_id in (0, job.spec.project_id):
                targets.append((hook.url, hook.webhook_id))
        for url, webhook_id in targets:
            delivery = message.delivery(event, url, webhook_id)
            stamp(delivery.next_try_at, self._wall())
            revision = await self._deliveries.add(delivery)
            if revision is None:
                # It is there already. Perhaps the answer to that write was lost, and nobody has it in hand.
                found = await self._deliveries.get(delivery.delivery_id)
                if found is None or not found[0].HasField("next_try_at"):
                    continue
                delivery, revision = found
            self._courier.take(delivery, revision)
