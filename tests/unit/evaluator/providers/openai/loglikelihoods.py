"""Log-likelihoods of a stub."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from services.evaluator import make_provider
from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Item, Response
from services.evaluator.providers.protocol.provider import ProviderError, Request
from tests.servers.vllm_server import VLLMServer
from touchstone.v1 import job_pb2

TASK = Catalogue(None).task("demo", "sentiment")
CONTEXT = "Review: a fine film.\nAnswer:"
ITEM = Item(0, (), "positive", "h", "p", context=CONTEXT, choices=(" positive", " not positive at all"))
PROOF_CALLS = 3


async def score(stub: VLLMServer, *items: Item, sampling: job_pb2.Sampling | None = None, **changes: Any) -> Response:
    """The items one after another through a provider of its own; the last response."""
    async with stub:
        provider = make_provider.provider(replace(Endpoint("vllm-a", "vllm", stub.url), **changes))
        try:
            for item in items or (ITEM,):
                response = await provider.loglikelihoods(Request("stub", sampling or job_pb2.Sampling(), TASK, item))
            return response
        finally:
            await provider.close()


async def refusal(stub: VLLMServer, **changes: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await score(stub, **changes)
    return caught.value
