"""Wires the gateway and serves it until a signal to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
from collections.abc import Iterator

import uvicorn

from services import bus, rpc
from services.bus.measuring import measure_connection
from services.errors import InvalidRequestError, UnavailableError
from services.gateway.access.auth import ClosedAccess, LocalAccess, Sessions, TokenAccess, TokenCache
from services.gateway.access.limits import SlidingWindow, Streams
from services.gateway.access.oidc import Provider
from services.gateway.app import create_app
from services.gateway.backend import SCHEDULER, Backend
from services.gateway.context import Context
from services.gateway.http.connections import Crowd
from services.gateway.pages.templates import environment
from services.gateway.reads.catalogue import Catalogue
from services.gateway.reads.pulse import Pulse
from services.gateway.settings import Settings
from services.telemetry import metrics, serving

_TICK_S = 1.0
_FILES = 200
"""In addition to connections: libraries, channels, NATS."""

log = logging.getLogger(__name__)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()

    async def main_loop(self) -> None:
        """As in uvicorn, but once a second: ten times a second, it was most of a gateway's work at rest."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_TICK_S):
                    await self._ending.wait()

    def end(self) -> None:
        self.should_exit = True
        self._ending.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals to the process, which ends the event streams first."""
        yield


def build(
    settings: Settings,
    access: LocalAccess | ClosedAccess | TokenAccess,
    service_token: str,
    wrong_tokens: int = rpc.Settings.wrong_tokens,
) -> Context:
    """The gateway's parts. Channels connect when they are first used."""
    tls = rpc.Tls.from_env()
    scheduler, results = rpc.channel(settings.scheduler, tls, SCHEDULER), rpc.channel(settings.results, tls)
    room = bus.Room.from_env(settings.state_dir, "")
    copy = rpc.channel(settings.replica, tls, patient=False) if settings.replica else None
    backend = Backend(scheduler, results, service_token, settings.call_timeout_s, room, copy)
    catalogue = Catalogue(backend)
    context = Context(
        settings=settings,
        backend=backend,
        catalogue=catalogue,
        pulse=Pulse(backend, catalogue, lambda: context.bus),
        access=access,
        window=SlidingWindow(settings.requests_per_minute),
        streams=Streams(settings.streams_per_user),
        waits=Streams(settings.waits_per_user, "waiting reads", "waits"),
        uploads=Streams(settings.uploads_per_user, "uploads", "uploads"),
        calls=Streams(settings.calls_per_user, "calls of models", "calls"),
        templates=environment(),
        provider=Provider(settings.oidc, wrong_tokens) if settings.oidc else None,
    )
    return context


async def main(stop: asyncio.Event) -> None:
    """Serves until `stop` is set. Raises TouchstoneError when it cannot start."""
    settings, identity = Settings.from_env(), rpc.Settings.from_env()
    async with serving.serve(metrics.GATEWAY, settings.metrics) as shown:
        await _run(settings, identity, stop, shown)


async def _run(settings: Settings, identity: rpc.Settings, stop: asyncio.Event, shown: serving.Metrics) -> None:
    if identity.auth == "local":
        settings.require_loopback()
        context = build(settings, LocalAccess(), identity.service_token)
        shown.look(lambda: _measure(context))
        # Without tokens there is nothing to look up: NATS is only needed for calls of models, and may come later.
        reaching = asyncio.create_task(_reach(context, bus.Settings.from_env()))
        try:
            await serve(context, stop)
        finally:
            await bus.end_tasks([reaching])
            if context.bus is not None:
                await context.bus.close()
        return
    context = build(settings, ClosedAccess(), identity.service_token, identity.wrong_tokens)
    shown.look(lambda: _measure(context))
    opening = asyncio.create_task(_open(context, bus.Settings.from_env(), identity, stop))
    try:
        await serve(context, stop)
    finally:
        opening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await (await opening).close()


async def _measure(context: Context) -> None:
    """Sets the gauge of the connection to NATS, which may come later than the gateway."""
    if context.bus is not None:
        await measure_connection(context.bus)


async def _reach(context: Context, nats: bus.Settings) -> None:
    while context.bus is None:
        try:
            context.bus = await bus.connect(nats.url, "gateway", nats.login)
        except UnavailableError as error:
            log.warning("models cannot be called yet: %s", error)


async def _open(context: Context, nats: bus.Settings, identity: rpc.Settings, stop: asyncio.Event) -> bus.Bus:
    """Admits users once NATS is there; on a full disk it waits for that. Raises UnavailableError, with `stop` set."""
    try:
        while True:
            try:
                nats_bus = await bus.open_bus(nats, "gateway")
                break
            except UnavailableError as error:
                if not context.backend.room.is_full():
                    raise
                log.warning("still waiting for NATS: %s", error)
        context.bus = nats_bus
        issuer = context.settings.oidc.issuer if context.settings.oidc else ""
        context.access = TokenAccess(TokenCache(nats_bus.token), identity, Sessions(nats_bus), issuer)
    except Exception:
        stop.set()
        raise
    return nats_bus


async def serve(context: Context, stop: asyncio.Event, listener: socket.socket | None = None) -> None:
    """Serves on the settings' address, or on a listener that is bound already."""
    listener = listener or listen(context.settings.host, context.settings.port)
    settings = context.settings
    crowd = Crowd(most_per_address=settings.connections_per_address, header_s=settings.header_timeout_s)
    _allow_files(_FILES + crowd.most)
    config = uvicorn.Config(
        create_app(context),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
        timeout_keep_alive=30,
        http=crowd.protocol(),
        ws="none",
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    stopping = asyncio.create_task(stop.wait())
    try:
        host, port = listener.getsockname()[:2]
        log.info("serving on http://%s:%s", f"[{host}]" if ":" in host else host, port)
        await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
        # They do not end on their own, or not soon: without this the server would wait for them.
        context.streams.stop()
        context.waits.stop()
        context.uploads.stop()
        context.calls.stop()
        server.end()
        await serving
    finally:
        stopping.cancel()
        await context.backend.close()


def _allow_files(wanted: int) -> None:
    """Each connection is a file, of which many systems let a process open 1,024 unless it asks for more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises UnavailableError for a port in use,
    InvalidRequestError for one that only root may use."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With an explicit protocol, asyncio switches off Nagle's algorithm: otherwise answers on kept connections wait 40
    # ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        if isinstance(error, PermissionError):
            raise InvalidRequestError(
                f"TOUCHSTONE_HTTP_PORT must be a port that this user may use, such as 8080; it is {port}."
            ) from error
        raise UnavailableError(
            f"{host}:{port} cannot be used: {error.strerror}. Stop the process that listens there, or set "
            "TOUCHSTONE_HTTP_PORT."
        ) from error
    return listener
