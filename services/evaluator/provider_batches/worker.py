"""Units of one endpoint that use its batch API. They are pulled separately from the endpoint's other units, and wait
for hours without a slot."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nats.aio.msg import Msg

from services.bus import ProviderBatches, batches_endpoint
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.provider_batches.base import BatchApi, Tools
from services.evaluator.provider_batches.gemini import GeminiBatches
from services.evaluator.provider_batches.openai import OpenAIBatches
from services.evaluator.provider_batches.stages import UnitBatch, UnitRecord
from services.evaluator.providers.gemini import GeminiProvider
from services.evaluator.providers.openai.chat import OpenAIProvider
from services.evaluator.providers.protocol.provider import Provider
from services.evaluator.units.puller import Puller
from services.evaluator.units.units_in_hand import Hand, Held


class BatchWorker:
    """One endpoint's batches. `left_over` is called when a unit has ended, as its job may be over."""

    def __init__(
        self, endpoint: Endpoint, tools: Tools, batches: ProviderBatches, hand: Hand, left_over: Callable[[], None]
    ) -> None:
        self.endpoint = endpoint
        self._tools = tools
        self._batches = batches
        self._hand = hand
        self._left_over = left_over
        self._held: set[Held] = set()
        self._room = asyncio.Event()
        self._room.set()
        self._token = batches_endpoint(endpoint.name)
        self._puller = Puller(tools.bus, self._token, tools.settings.ack_wait_s, self._room, self._wanted)

    @property
    def tools(self) -> Tools:
        return self._tools

    async def open(self) -> None:
        await self._puller.open()

    async def run(self) -> None:
        """Pulls units until cancelled; those in hand continue."""
        await self._puller.run(self._receive)

    async def close(self) -> None:
        await self._tools.api.close()

    def _wanted(self) -> int:
        return self.endpoint.batch.at_once - len(self._held)

    def _receive(self, msg: Msg) -> None:
        held = self._hand.take(self._token, msg, self._run, self._ended)
        if held is not None:
            self._held.add(held)
            self._look_for_room()

    def _ended(self, held: Held) -> None:
        self._held.discard(held)
        self._look_for_room()
        self._left_over()

    def _look_for_room(self) -> None:
        if self._wanted() > 0:
            self._room.set()
        else:
            self._room.clear()

    async def _run(self, held: Held) -> None:
        tools = self._tools
        tools.loader.require_plugin(held.unit)
        keeper = await UnitRecord.of(self._batches, held, self.endpoint.name, tools.api.label, tools.settings.name)
        await UnitBatch(tools, held, keeper).run()


def batch_api(endpoint: Endpoint, provider: Provider) -> BatchApi | None:
    """None for kinds without one. Does not connect yet."""
    if endpoint.kind == "openai" and isinstance(provider, OpenAIProvider):
        return OpenAIBatches(endpoint, provider)
    if endpoint.kind == "gemini" and isinstance(provider, GeminiProvider):
        return GeminiBatches(endpoint, provider)
    return None
