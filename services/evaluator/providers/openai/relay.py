"""A request that a server of OpenAI's protocol gets as its sender wrote it, and what it took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from services.evaluator.items.task import Response
from services.evaluator.providers.openai.wire import Wire
from services.evaluator.providers.protocol.provider import Heard
from services.evaluator.providers.protocol.transport import Reply


@dataclass(frozen=True, slots=True)
class Relay:
    """`body` goes to the path of `wire` unchanged, except for its `model`. `heard` takes the events of a streamed
    answer; None for a whole one."""

    wire: Wire
    model: str
    body: Mapping[str, Any]
    heard: Heard | None = None


@dataclass(frozen=True, slots=True)
class Relayed:
    """`reply` as it came. `response` has its counts and cost; None where it is not an answer. `model` is the name that
    the server was called with."""

    reply: Reply
    response: Response | None
    model: str


@runtime_checkable
class RelayingProvider(Protocol):
    """What a provider offers in addition whose server speaks OpenAI's protocol."""

    async def relay(self, relay: Relay) -> Relayed:
        """One request and its answer, whatever its status. Raises ProviderError where there is none."""
        ...
