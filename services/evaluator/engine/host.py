"""An endpoint's engine as its provider uses it: the model asked for is resident while a call runs.

After a crash the engine is started again, until a model or an item is given up.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, replace

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.endpoints.engine_options import HOST, EngineModel, EngineOptions
from services.evaluator.engine import memory
from services.evaluator.engine.model_residency import Residency
from services.evaluator.engine.process import EngineError, EngineProcess
from services.evaluator.providers.protocol.provider import Provider, ProviderError
from services.evaluator.providers.protocol.transport import Transport
from services.words.refusals import OVER_LIMIT

MOST_IN_A_ROW = 3
"""The job fails after this many ends in a row without an answer."""
MOST_PER_ITEM = 3
"""An item whose calls were cut off this often is given up: it may be what crashes the engine."""
_FIRST_WAIT_S = 0.2
_ITEMS_REMEMBERED = 4096

log = logging.getLogger(__name__)

_HEALTH_TIMEOUT_S = 5.0
_SAID = 200
"""Characters of the log's last line in the error's sentence; the detail has more of it."""


class Crashes:
    """Counts over one endpoint. A crash is an end that nobody requested, before or after the engine was healthy."""

    def __init__(self) -> None:
        self._in_a_row: dict[str, int] = {}
        self._items: OrderedDict[Hashable, int] = OrderedDict()

    def crashed(self, model: str) -> bool:
        """Counts a crash; True when the model is given up; the next job may try it again."""
        count = self._in_a_row.get(model, 0) + 1
        if count >= MOST_IN_A_ROW:
            self._in_a_row.pop(model, None)
            return True
        self._in_a_row[model] = count
        return False

    def wait_s(self, model: str) -> float:
        """Seconds to wait before the model's next start."""
        count = self._in_a_row.get(model, 0)
        return _FIRST_WAIT_S * 4 ** (count - 1) if count else 0.0

    def cut_off(self, item: Hashable) -> bool:
        """Counts a call that a crash cut off; True when the item is given up."""
        count = self._items.pop(item, 0) + 1
        self._items[item] = count
        while len(self._items) > _ITEMS_REMEMBERED:
            self._items.popitem(last=False)
        return count >= MOST_PER_ITEM

    def answered(self, model: str, item: Hashable) -> None:
        self._in_a_row.pop(model, None)
        self._items.pop(item, None)


@dataclass(eq=False)
class Engine:
    """A resident model: its process and the provider that speaks to it. `served_as` is its name there."""

    process: EngineProcess
    provider: Provider
    served_as: str
    gave_up: bool = False

    @property
    def ended(self) -> asyncio.Future[str]:
        return self.process.ended

    async def stop(self) -> None:
        await self.provider.close()
        await self.process.stop()


class EngineHost:
    """Starts, switches and stops the engine of one endpoint. `make` creates the provider for the started server.

    `server` and `context_lengths`, by model, are what started engines have reported.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        options: EngineOptions,
        make: Callable[[Endpoint], Provider],
    ) -> None:
        self.crashes = Crashes()
        self.server = ""
        self.context_lengths: dict[str, int] = {}
        self._endpoint = endpoint
        self._options = options
        self._make = make
        self._used = False
        self.residency: Residency[Engine] = Residency(self._start, idle_stop_s=options.idle_stop_s)

    async def _start(self, name: str) -> Engine:
        model = self._options.model(name)
        if model is None:
            known = ", ".join(model.name for model in self._options.models)
            raise ProviderError(f"{self._endpoint.name} does not have model {name}. Choose one of {known}.", fatal=True)
        await asyncio.sleep(self.crashes.wait_s(name))
        try:
            await memory.require(self._options, model, settle_s=memory.SETTLE_S if self._used else 0.0)
            self._used = True
            process = await EngineProcess.start(self._endpoint.name, self._options, model)
        except EngineError as error:
            over_limit = isinstance(error, memory.NoRoomError)
            raise self._failure(error.message, given_up=False, final=error.final, over_limit=over_limit) from error
        try:
            await self._until_healthy(process)
        except EngineError as error:
            given_up = not error.final and self.crashes.crashed(name)
            raise self._failure(error.message, given_up=given_up, final=error.final, detail=process.tail()) from error
        except asyncio.CancelledError:
            await process.stop()
            raise
        engine = Engine(process, self._make(self._inner(model, process.port)), self._options.request_name(model))
        await self._introduce(engine)
        process.ended.add_done_callback(lambda _: self._ended(engine))
        return engine

    async def _until_healthy(self, process: EngineProcess) -> None:
        transport = Transport(self._endpoint.name, f"http://{HOST}:{process.port}", f"{HOST}:{process.port}", "")

        async def healthy(_: int) -> bool:
            with suppress(ProviderError):
                return (await transport.get(self._options.health, timeout_s=_HEALTH_TIMEOUT_S)).status == 200
            return False

        try:
            await process.until_healthy(healthy, self._options.start_timeout_s)
        finally:
            await transport.close()

    def _inner(self, model: EngineModel, port: int) -> Endpoint:
        """The started server as an endpoint. What the file says about the model applies to the model's name there."""
        served_as = self._options.request_name(model)
        entry = self._endpoint.entry(model.name)
        return replace(
            self._endpoint,
            kind=self._options.api,
            base_url=f"http://{HOST}:{port}/v1",
            models=(served_as,),
            max_model_b=0.0,
            model_entries=(replace(entry, pattern=served_as),) if entry is not None else (),
            engine=None,
        )

    async def _introduce(self, engine: Engine) -> None:
        """Reads what the server reports about itself. Not every server lists models, and calls need none of it."""
        with suppress(ProviderError):
            listing = await engine.provider.list_models()
            self.server = listing.server or self.server
            self.context_lengths[engine.process.model] = max(
                (model.context_length for model in listing.models), default=0
            )

    def _ended(self, engine: Engine) -> None:
        process = engine.process
        if not process.stopping:
            log.warning("%s: the engine for %s %s", self._endpoint.name, process.model, process.ended.result())
            engine.gave_up = self.crashes.crashed(process.model)

    def crash(self, engine: Engine) -> ProviderError:
        """The error of a call that a crash cut off."""
        process = engine.process
        message = f"The engine for {process.model} {process.ended.result()}."
        return self._failure(message, given_up=engine.gave_up, detail=process.tail())

    def _failure(
        self, message: str, *, given_up: bool, detail: str = "", final: bool = False, over_limit: bool = False
    ) -> ProviderError:
        said = next((line.strip() for line in reversed(detail.splitlines()) if line.strip()), "")
        if said:
            message = f"{message} Its log ends with: {said[:_SAID]}"
        if given_up:
            message = f"{message.rstrip('.')}. It was started {MOST_IN_A_ROW} times. Fix the cause, then retry the job."
        fatal = final or given_up
        limit = f"{OVER_LIMIT} " if over_limit else ""
        return ProviderError(
            f"{limit}{self._endpoint.name}: {message}",
            retryable=not fatal,
            fatal=fatal,
            unreachable=True,
            detail=detail,
        )
