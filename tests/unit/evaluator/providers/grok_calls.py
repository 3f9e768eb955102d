"""Calls of a stub of Grok."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

import pytest

from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Item, Message, Response
from services.evaluator.providers.grok import GrokProvider
from services.evaluator.providers.protocol.provider import ProviderError, Request
from tests.servers.grok_server import GrokServer
from tests.servers.stub import Behaviour, Fault
from touchstone.v1 import job_pb2

TASK = Catalogue(None).task("demo", "sentiment")
ITEM = Item(0, (Message("system", "Be brief."), Message("user", "one two three")), "positive", "h", "p", stop=("\n",))
PLAIN = "grok-4-fast-non-reasoning"
THINKING = "grok-4.7"
APIS = pytest.mark.parametrize("api", ["responses", "chat"])


def stub_of(*faults: Fault) -> GrokServer:
    return GrokServer(Behaviour(lambda prompt: "Answer: positive", faults=deque(faults), models=(PLAIN, THINKING)))


async def call(
    stub: GrokServer,
    sampling: job_pb2.Sampling | None = None,
    model: str = PLAIN,
    stream: bool = False,
    **changes: Any,
) -> Response:
    async with stub:
        provider = GrokProvider(replace(Endpoint("grok", "grok", stub.url), **changes))
        try:
            return await provider.generate(Request(model, sampling or job_pb2.Sampling(), TASK, ITEM, stream=stream))
        finally:
            await provider.close()


async def refusal(fault: Fault, objects: bool = False, **changes: Any) -> ProviderError:
    stub = stub_of(fault)
    stub.objects = objects
    with pytest.raises(ProviderError) as caught:
        await call(stub, **changes)
    return caught.value
