"""Shows a process's metrics to Prometheus, over HTTP on a separate port, and begins its traces."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder

import services
from services import environment
from services.errors import InvalidRequestError, UnavailableError
from services.telemetry import traces
from services.telemetry.instruments import Gauge
from services.telemetry.metrics import BUILD, METRICS

log = logging.getLogger(__name__)

PATH = "/metrics"
_LOOK_S = 3.0
_VARIABLE = "TOUCHSTONE_METRICS_LISTEN"


@dataclass(frozen=True, slots=True)
class Settings:
    """`listen` is the host:port at which the process shows its metrics; empty if it keeps none."""

    listen: str = ""
    traces: traces.Settings = field(default_factory=traces.Settings)

    @classmethod
    def from_env(cls) -> Settings:
        """Raises InvalidRequestError for an invalid address, and for one that others reach in local mode."""
        listen = environment.listen(_VARIABLE, "")
        local = environment.choice("TOUCHSTONE_AUTH", "local", ("local", "token")) == "local"
        if listen and local and not environment.is_loopback(listen):
            raise InvalidRequestError(
                f"{_VARIABLE} must be an address of loopback in local mode, such as 127.0.0.1:9464. Set "
                "TOUCHSTONE_AUTH=token to show metrics to other machines."
            )
        return cls(listen, traces.Settings.from_env())


Look = Callable[[], Awaitable[None]]


class Metrics:
    """What a process shows. Gauges are set when somebody looks, by what `look` was given."""

    def __init__(self, service: str) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.instruments = [metric for metric in METRICS if service in metric.services]
        for instrument in self.instruments:
            self.registry.register(instrument.metric)
        self._looks: list[tuple[Look, Sequence[Gauge]]] = []
        self._lock = asyncio.Lock()

    def look(self, look: Look, *gauges: Gauge) -> None:
        """Calls `look` before each answer. If it fails, the gauges have no values rather than old ones."""
        self._looks.append((look, gauges))

    async def text(self, accept: str) -> tuple[bytes, str]:
        """All metrics in a format of Prometheus that a header `Accept` names, and its content type."""
        async with self._lock:
            await asyncio.gather(*(self._look(look, gauges) for look, gauges in self._looks))
            encode, content_type = choose_encoder(accept)
            return encode(self.registry), content_type

    async def _look(self, look: Look, gauges: Sequence[Gauge]) -> None:
        try:
            async with asyncio.timeout(_LOOK_S):
                await look()
        except Exception as error:
            log.warning("metrics are incomplete: %s", str(error) or type(error).__name__)
            for gauge in gauges:
                gauge.replace({})


@asynccontextmanager
async def serve(service: str, settings: Settings) -> AsyncIterator[Metrics]:
    """Records and shows the metrics of a service inside the context, and sends its traces, as the settings say. Enter
    it before anything is counted. Raises UnavailableError for an address in use."""
    async with traces.sending(service, settings.traces):
        metrics = Metrics(service)
        if settings.listen:
            async with _shown(service, settings.listen, metrics):
                yield metrics
        else:
            yield metrics


@asynccontextmanager
async def _shown(service: str, listen: str, metrics: Metrics) -> AsyncIterator[None]:
    # The server is imported only where it is needed.
    from aiohttp import web

    for instrument in metrics.instruments:
        instrument.switch(True)
    BUILD.set(1, service, services.__version__)
    application = web.Application()

    async def answer(request: web.Request) -> web.Response:
        body, content_type = await metrics.text(request.headers.get("Accept", ""))
        response = web.Response(body=body, headers={"Content-Type": content_type})
        response.enable_compression()
        return response

    application.router.add_get(PATH, answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
    await runner.setup()
    host, _, port = listen.rpartition(":")
    try:
        try:
            await web.TCPSite(runner, host.strip("[]"), int(port)).start()
        except OSError as error:
            raise UnavailableError(
                f"{listen} cannot be used: {error.strerror}. Stop the process that listens there, or set {_VARIABLE}."
            ) from error
        log.info("metrics on http://%s%s", listen, PATH)
        yield
    finally:
        await runner.cleanup()
        for instrument in metrics.instruments:
            instrument.switch(False)
