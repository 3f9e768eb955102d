"""An endpoint whose evaluator starts the server itself, for one model at a time.

The provider of its API, "openai" or "vllm", calls the started server. This module adds three things: the model is
resident while it is called, a crash is reported as one, and the models' files say what otherwise only a running server
could.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from services import numbers
from services.evaluator.endpoints import model_files
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.endpoints.engine_options import EngineModel, EngineOptions
from services.evaluator.endpoints.model_files import ModelFiles
from services.evaluator.engine.host import Engine, EngineHost
from services.evaluator.items.task import Response
from services.evaluator.providers.openai.relay import Relay, Relayed, RelayingProvider
from services.evaluator.providers.protocol import capabilities
from services.evaluator.providers.protocol.capabilities import complete
from services.evaluator.providers.protocol.provider import Listing, Provider, ProviderError, Request
from touchstone.v1 import endpoint_pb2

_TELLS_S = 1.0
"""A crash closes connections a moment before the keeper reports it."""

Ask = Callable[[Provider, Request], Coroutine[Any, Any, Response]]


class EngineProvider:
    """One endpoint's engine. `make` creates the provider for the started server. Nothing runs before the first call."""

    def __init__(self, endpoint: Endpoint, make: Callable[[Endpoint], Provider]) -> None:
        if endpoint.engine is None:
            raise ValueError("an endpoint of kind engine has an engine table")
        self._endpoint = endpoint
        self._options: EngineOptions = endpoint.engine
        self._host = EngineHost(endpoint, self._options, make)
        self._files: dict[str, tuple[object, ModelFiles]] = {}

    @property
    def resident_model(self) -> str:
        return self._host.residency.model

    async def ready(self, model: str) -> None:
        await self._refuse_larger(model)
        async with self._host.residency.lease(model):
            return

    async def list_models(self) -> Listing:
        """The configured models. Reads their files and starts nothing."""
        models = [await self._model(model) for model in self._options.models]
        return Listing(tuple(models), self._host.server)

    async def generate(self, request: Request) -> Response:
        return await self._ask(request, lambda provider, inner: provider.generate(inner))

    async def loglikelihoods(self, request: Request) -> Response:
        return await self._ask(request, lambda provider, inner: provider.loglikelihoods(inner))

    async def relay(self, relay: Relay) -> Relayed:
        await self._refuse_larger(relay.model)
        async with self._host.residency.lease(relay.model) as engine:
            if not isinstance(engine.provider, RelayingProvider):
                raise ProviderError(f"{self._endpoint.name} does not speak OpenAI's protocol.", fatal=True)
            try:
                return await engine.provider.relay(replace(relay, model=engine.served_as))
            except ProviderError as error:
                if not error.retryable or not await _crashed(engine):
                    raise
                raise self._host.crash(engine) from error

    async def close(self) -> None:
        await self._host.residency.close()

    async def _ask(self, request: Request, ask: Ask) -> Response:
        await self._refuse_larger(request.model)
        crashes = self._host.crashes
        item = (request.model, request.task.info.task, request.item.hash, request.repeat)
        async with self._host.residency.lease(request.model) as engine:
            try:
                response = await ask(engine.provider, replace(request, model=engine.served_as))
            except ProviderError as error:
                if not error.retryable or not await _crashed(engine):
                    raise
                if crashes.cut_off(item):
                    raise ProviderError(
                        f"{self._endpoint.name}: the engine crashed each time it was sent this item."
                    ) from error
                raise self._host.crash(engine) from error
        crashes.answered(request.model, item)
        return replace(response, served_model=request.model) if response.served_model == engine.served_as else response

    async def _refuse_larger(self, name: str) -> None:
        model = self._options.model(name)
        if self._endpoint.max_model_b and model is not None and self.resident_model != name:
            size = (await self._model(model)).parameters_b
            capabilities.refuse_larger(self._endpoint.name, name, size, self._endpoint.max_model_b)

    async def _model(self, model: EngineModel) -> endpoint_pb2.Model:
        files = await asyncio.to_thread(self._look, model)
        return complete(
            self._endpoint,
            endpoint_pb2.Model(
                model=model.name,
                digest=files.digest,
                parameters_b=files.parameters_b or numbers.parameters_b(f"{model.name} {model.path}"),
                quantization=files.weights,
                disk_bytes=files.disk_bytes,
                memory_bytes=round(model.memory_gb * 1e9),
                context_length=self._host.context_lengths.get(model.name) or files.context_length,
            ),
        )

    def _look(self, model: EngineModel) -> ModelFiles:
        """Reads the model's files once, and again when they have changed."""
        try:
            place = model_files.find(self._options, model)
            if place is None:
                return ModelFiles()
            stamp = (place, model_files.stamp(place))
            if model.name not in self._files or self._files[model.name][0] != stamp:
                self._files[model.name] = (stamp, model_files.look(place))
            return self._files[model.name][1]
        except OSError:
            return ModelFiles()


async def _crashed(engine: Engine) -> bool:
    if not engine.ended.done():
        await asyncio.wait({engine.ended}, timeout=_TELLS_S)
    return engine.ended.done()
