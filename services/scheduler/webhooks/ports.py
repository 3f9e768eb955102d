"""The ports of webhooks. Each has an adapter and a fake in the tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from services.scheduler.webhooks.deliveries import Answer
from touchstone.v1 import webhook_pb2


class Hooks(Protocol):
    """Registered webhooks. Raises UnavailableError while they cannot be read or written."""

    async def add(self, record: webhook_pb2.WebhookRecord) -> None: ...

    async def remove(self, webhook: webhook_pb2.Webhook) -> None: ...

    async def get(self, owner: str, webhook_id: str) -> webhook_pb2.WebhookRecord | None: ...

    async def of(self, owner: str) -> list[webhook_pb2.Webhook]:
        """Those of one owner, or of all for an empty one."""
        ...

    def all(self) -> AsyncIterator[tuple[webhook_pb2.WebhookRecord, int]]:
        """Each with its revision."""
        ...

    async def replace(self, record: webhook_pb2.WebhookRecord, revision: int) -> int | None:
        """None if the record was changed or removed since."""
        ...

    async def installation_key(self) -> bytes:
        """Created at the first call, and the same from then on."""
        ...


class Deliveries(Protocol):
    """Calls that are not done. Every write names the revision that it replaces; None means that there was another write
    since.

    Raises UnavailableError while they cannot be read or written.
    """

    async def add(self, delivery: webhook_pb2.Delivery) -> int | None:
        """The first revision; None if it already exists, or did a moment ago."""
        ...

    async def replace(self, delivery: webhook_pb2.Delivery, revision: int) -> int | None: ...

    async def remove(self, delivery: webhook_pb2.Delivery, revision: int) -> None: ...

    async def get(self, delivery_id: str) -> tuple[webhook_pb2.Delivery, int] | None: ...

    def all(self) -> AsyncIterator[tuple[webhook_pb2.Delivery, int]]: ...


class Caller(Protocol):
    """HTTP to receivers."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Never raises: errors are in the answer."""
        ...
