"""The models of the simulated world: they count who asks what, and may fail, hang or be slow."""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter
from collections.abc import Callable
from random import Random

from services.evaluator.items.task import Response
from services.evaluator.providers.protocol.provider import Listing, ProviderError, Request
from touchstone.v1 import endpoint_pb2

MODEL = "simulated"
MODELS, JUDGE = ("simulated-1", "simulated-2", "simulated-3"), "simulated-judge"
"""Those of experiments."""
BEST, SLOW = "simulated-good", "simulated-slow"
SKILLS = {"simulated-fair": 0.55, "simulated-equal": 0.55, BEST: 0.95, SLOW: 0.55}
"""Those of decisions, with the share of items that each has right."""
_SLOW = 8.0
PRICE = 1e-4
"""US dollars of each call."""
TOKENS = 10

CallKey = tuple[int, str, int, int]
"""The job's sampling seed, task with the model, item and repeat."""


def knows(model: str, task: str, index: int) -> bool:
    """Whether the model has an item right: always the same."""
    drawn = zlib.crc32(f"{model}/{task}/{index}".encode()) / 2**32
    return drawn < SKILLS.get(model, 1.0)


class Models:
    """Outside of all processes. `calls` and `failures` count by call."""

    def __init__(self, chance: Random, failing: float, slow: float) -> None:
        self._chance, self._failing, self.slow = chance, failing, slow
        self.refusing = 0.0
        """The share of calls that are refused for good: such items stay without an answer until the job runs again."""
        self.calls: Counter[CallKey] = Counter()
        self.failures: Counter[CallKey] = Counter()
        self.under_way: Counter[str] = Counter()
        self.heard: Callable[[int], None] = lambda seed: None
        """Is told of each call of a job with this seed, when it begins and when it is answered."""

    def provider(self, evaluator: str) -> SimulatedProvider:
        return SimulatedProvider(self, evaluator)

    async def call(self, request: Request) -> Response:
        task = f"{request.task.info.task} of {request.model}"
        key = (request.sampling.seed, task, request.item.index, request.repeat)
        self.calls[key] += 1
        self.heard(request.sampling.seed)
        slow = self._chance.random() < self.slow
        takes = self._chance.uniform(1.0, 6.0) if slow else self._chance.uniform(0.01, 0.3)
        await asyncio.sleep(takes * _SLOW if request.model == SLOW and not slow else takes)
        self.heard(request.sampling.seed)
        if self._chance.random() < self._failing:
            self.failures[key] += 1
            raise ProviderError("The simulated model failed.", retryable=True)
        if self.refusing and self._chance.random() < self.refusing:
            self.failures[key] += 1
            raise ProviderError("The simulated model refuses this item.", retryable=False)
        told = getattr(request.task, "answer", None)
        if not knows(request.model, request.task.info.task, request.item.index):
            told = _wrong
        text = told(request.item.reference) if told is not None else request.item.reference or "An answer."
        return Response(text, input_tokens=TOKENS, output_tokens=TOKENS, latency_ms=10.0, cost_usd=PRICE)


def _wrong(reference: str) -> str:
    return "No idea."


class SimulatedProvider:
    """A provider of the simulated models."""

    def __init__(self, models: Models, evaluator: str) -> None:
        self._models = models
        self.evaluator = evaluator

    async def list_models(self) -> Listing:
        prices = PRICE / TOKENS / 2 * 1e6
        models = (
            endpoint_pb2.Model(model=name, digest="sha256:1", input_price=prices, output_price=prices)
            for name in (MODEL, *MODELS, JUDGE, *SKILLS)
        )
        return Listing(tuple(models), "simulated 1")

    async def generate(self, request: Request) -> Response:
        return await self._models.call(request)

    async def loglikelihoods(self, request: Request) -> Response:
        raise ProviderError("Not simulated.", fatal=True)

    async def close(self) -> None:
        pass


Provide = Callable[[str], SimulatedProvider]
