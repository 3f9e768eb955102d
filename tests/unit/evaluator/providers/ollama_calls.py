"""Calls of a stub of Ollama."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Item, Message, Response
from services.evaluator.providers.ollama import OllamaProvider
from services.evaluator.providers.protocol.provider import Request
from tests.servers.ollama_server import OllamaServer
from touchstone.v1 import job_pb2

TASK = Catalogue(None).task("demo", "sentiment")
ITEM = Item(0, (Message("user", "one two three"),), "positive", "h", "p")


async def call(
    stub: OllamaServer,
    sampling: job_pb2.Sampling | None = None,
    item: Item = ITEM,
    stream: bool = False,
    model: str = "stub",
    **changes: Any,
) -> Response:
    async with stub:
        provider = OllamaProvider(replace(Endpoint("ollama", "ollama", stub.url), **changes))
        try:
            return await provider.generate(Request(model, sampling or job_pb2.Sampling(), TASK, item, stream=stream))
        finally:
            await provider.close()
