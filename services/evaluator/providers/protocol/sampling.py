"""A job's sampling parameters in any wire format, and the part of a request that is kept with its answer."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from services import further_fields
from services.evaluator.providers.protocol.provider import ProviderError, Request
from services.evaluator.providers.protocol.transport import encoded
from touchstone.v1 import job_pb2

_MOST_PREPARED = 256


def extra(sampling: job_pb2.Sampling, written: Collection[str]) -> dict[str, Any]:
    """The further fields that are sent, in their order.

    Raises ProviderError when it would replace a field that is written here: the record must equal what was sent.
    """
    fields = further_fields.fields(sampling)
    taken = sorted(set(fields) & set(written))
    if taken:
        raise ProviderError(
            f"sampling.extra_json must not set {', '.join(taken)}, which Touchstone sets.", fatal=True, status=400
        )
    return fields


@dataclass(frozen=True, slots=True)
class Beside:
    """What a request carries apart from model and prompt: its `fields`, the same as JSON that is recorded, and as
    members of a body that are already encoded, as tools take longer to encode than a prompt. Shared between
    requests."""

    fields: Mapping[str, Any]
    json: str
    encoded: bytes


class Preparations:
    """Builds once what thousands of requests share. `make` must depend only on a request's model, sampling, repeat,
    stop sequences and `stream`; it returns the fields.
    """

    def __init__(self, make: Callable[[Request], Awaitable[Mapping[str, Any]]]) -> None:
        self._make = make
        self._made: dict[tuple[Any, ...], Beside] = {}

    async def of(self, request: Request) -> Beside:
        """Raises ProviderError for a parameter that cannot be sent."""
        sampling = request.sampling
        key = (
            request.model,
            sampling.SerializeToString(deterministic=True),
            request.repeat if sampling.HasField("seed") else 0,
            request.repeats > 1,
            request.item.stop,
            request.stream,
        )
        made = self._made.get(key)
        if made is None:
            fields = await self._make(request)
            made = Beside(fields, recorded(fields), encoded(fields))
            if len(self._made) >= _MOST_PREPARED:
                self.forget()
            self._made[key] = made
        return made

    def forget(self) -> None:
        """Call this when the known facts about the models have changed."""
        self._made.clear()


def recorded(beside: Mapping[str, Any]) -> str:
    """JSON of what a request carried apart from model and prompt, in the provider's own names: its fields sorted, and
    within them everything in the order in which it was sent."""
    return json.dumps(dict(sorted(beside.items())), separators=(",", ":"), ensure_ascii=False)
