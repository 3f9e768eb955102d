"""Calls of a stub of Gemini."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Item, Message, Response
from services.evaluator.providers.gemini import GeminiProvider
from services.evaluator.providers.protocol.provider import Request
from tests.servers.gemini_server import GeminiServer
from tests.servers.stub import Behaviour, Fault
from touchstone.v1 import job_pb2

TASK = Catalogue(None).task("demo", "sentiment")
MODEL = "gemini-2.0-flash"
TURNS = (
    Message("system", "Be brief."),
    Message("user", "one two three"),
    Message("assistant", "four"),
    Message("user", "five"),
)
ITEM = Item(0, TURNS, "positive", "h", "p")


def stub_of(*faults: Fault, models: tuple[str, ...] = (MODEL, "gemini-2.5-flash", "gemini-3.1-pro")) -> GeminiServer:
    return GeminiServer(Behaviour(answer=lambda prompt: "Answer: positive", faults=deque(faults), models=models))


async def call(
    stub: GeminiServer,
    sampling: job_pb2.Sampling | None = None,
    model: str = MODEL,
    stream: bool = False,
    **changes: Any,
) -> Response:
    item = changes.pop("item", ITEM)
    async with stub:
        provider = GeminiProvider(replace(Endpoint("gemini", "gemini", stub.url), **changes))
        try:
            return await provider.generate(Request(model, sampling or job_pb2.Sampling(), TASK, item, 0, stream))
        finally:
            await provider.close()
