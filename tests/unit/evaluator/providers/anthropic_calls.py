"""Calls of a stub of Anthropic."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Item, Message, Response
from services.evaluator.providers.anthropic import AnthropicProvider
from services.evaluator.providers.protocol.provider import Request
from tests.servers.anthropic_server import AnthropicServer
from tests.servers.stub import Behaviour, Fault
from touchstone.v1 import job_pb2

TASK = Catalogue(None).task("demo", "sentiment")
MODEL = "claude-sonnet-4-5"
LATER = "claude-opus-5-5"
ITEM = Item(0, (Message("system", "Be brief."), Message("user", "one two three")), "positive", "h", "p")


def stub_of(*faults: Fault, models: tuple[str, ...] = (MODEL, LATER)) -> AnthropicServer:
    return AnthropicServer(Behaviour(answer=lambda prompt: "Answer: positive", faults=deque(faults), models=models))


async def call(
    stub: AnthropicServer,
    sampling: job_pb2.Sampling | None = None,
    model: str = MODEL,
    stream: bool = False,
    **changes: Any,
) -> Response:
    item = changes.pop("item", ITEM)
    async with stub:
        provider = AnthropicProvider(replace(Endpoint("anthropic", "anthropic", stub.url), **changes))
        try:
            return await provider.generate(Request(model, sampling or job_pb2.Sampling(), TASK, item, 0, stream))
        finally:
            await provider.close()
