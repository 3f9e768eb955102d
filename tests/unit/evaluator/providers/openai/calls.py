"""Calls of a stub of OpenAI's API."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

import pytest

from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Item, Message, Response
from services.evaluator.providers.openai.chat import OpenAIProvider
from services.evaluator.providers.protocol.provider import ProviderError, Request
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault
from touchstone.v1 import job_pb2

TASK = Catalogue(None).task("demo", "sentiment")
ITEM = Item(0, (Message("system", "Be brief."), Message("user", "one two three")), "positive", "h", "p")


async def call(
    stub: OpenAIServer,
    sampling: job_pb2.Sampling | None = None,
    model: str = "stub",
    item: Item = ITEM,
    repeat: int = 0,
    repeats: int = 1,
    stream: bool = False,
    **changes: Any,
) -> Response:
    """One call to the stub through a provider of its own."""
    async with stub:
        provider = OpenAIProvider(replace(Endpoint("vllm-a", "openai", stub.url), **changes))
        request = Request(model, sampling or job_pb2.Sampling(), TASK, item, repeat, stream, repeats)
        try:
            return await provider.generate(request)
        finally:
            await provider.close()


async def refusal(fault: Fault, **changes: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await call(OpenAIServer(Behaviour(faults=deque([fault]))), **changes)
    return caught.value
