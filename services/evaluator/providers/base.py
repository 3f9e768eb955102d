"""What a provider is: one wire protocol, spoken to one configured endpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from services.evaluator.tasks.base import Item, Response, Task
from touchstone.v1 import endpoint_pb2, job_pb2


class ProviderError(Exception):
    """A call failed. It is never scored.

    `message` is the sentence that a user reads, with what to do. `retryable`: the same call may work later.
    `fatal`: no call of this job can work (wrong key, unknown model), so the job should fail now.
    `unreachable`: the endpoint as a whole does not answer. `retry_after_s`: what the provider asked for, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        fatal: bool = False,
        unreachable: bool = False,
        rate_limited: bool = False,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.retryable = retryable
        self.fatal = fatal
        self.unreachable = unreachable
        self.rate_limited = rate_limited
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Listing:
    """What an endpoint offers. `server` is its product and version when it tells."""

    models: tuple[endpoint_pb2.Model, ...]
    server: str = ""


class Provider(Protocol):
    """One endpoint. Safe for concurrent calls; makes one attempt a call and leaves retrying to the worker."""

    async def list_models(self) -> Listing:
        """Raises ProviderError when the endpoint does not answer or refuses the key."""
        ...

    async def generate(self, model: str, sampling: job_pb2.Sampling, task: Task, item: Item) -> Response:
        """One answer to the item's messages. Raises ProviderError; cancelling it closes the connection."""
        ...

    async def close(self) -> None: ...
