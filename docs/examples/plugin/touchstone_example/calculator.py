"""A kind of endpoints: a model that adds the numbers of a question. A real one would call a server here."""

import re
import time

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.endpoints.kinds import Kind
from services.evaluator.items.task import Response
from services.evaluator.plugins.contract import ProviderKind
from services.evaluator.providers.protocol.provider import Listing, Request, no_loglikelihood
from touchstone.v1 import endpoint_pb2


class Calculator:
    """Implements `Provider`."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._off_by = int(endpoint.options.get("off_by", 0))

    async def list_models(self) -> Listing:
        return Listing((endpoint_pb2.Model(model="adder"),), "calculator 1.0")

    async def generate(self, request: Request) -> Response:
        began = time.perf_counter()
        numbers = [int(text) for text in re.findall(r"\d+", request.item.question)]
        answer = f"Answer: {sum(numbers) + self._off_by}"
        return Response(answer, finish_reason="stop", latency_ms=(time.perf_counter() - began) * 1000)

    async def loglikelihoods(self, request: Request) -> Response:
        raise no_loglikelihood(self._endpoint.name)

    async def close(self) -> None:
        """Has nothing open."""


KIND = ProviderKind(Kind("calculator", addressed=False), Calculator)
