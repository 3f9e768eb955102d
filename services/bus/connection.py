"""Connecting to NATS, and staying connected through its restarts."""

from __future__ import annotations

import asyncio
import logging
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from services import environment
from services.bus.operations import Bus
from services.errors import UnavailableError

log = logging.getLogger(__name__)

_AFTER_RECONNECT_S = 1.0
_LEAST_RESULTS_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Settings:
    """How to reach NATS. RESULTS holds at most `results_max_bytes`, which must be below the disk's size."""

    url: str
    monitor_url: str
    results_max_bytes: int
    replicas: int

    @classmethod
    def from_env(cls) -> Settings:
        """Raises InvalidRequestError naming the invalid variable."""
        usual = _launched() or "nats://127.0.0.1:4222"
        least, most = _LEAST_RESULTS_BYTES, environment.MOST_BYTES
        return cls(
            url=environment.url("TOUCHSTONE_NATS_URL", usual, ("nats", "tls", "ws", "wss")),
            monitor_url=environment.url("TOUCHSTONE_NATS_MONITOR_URL", "", ("http", "https")),
            results_max_bytes=environment.whole("TOUCHSTONE_RESULTS_MAX_BYTES", 2 * 1024**3, least, most),
            replicas=environment.whole("TOUCHSTONE_NATS_REPLICAS", 1, 1, 5),
        )

    @property
    def secrets(self) -> list[str]:
        """The part of the URL that must not appear in logs: a token, or a user and a password."""
        user, at, _ = urlsplit(self.url).netloc.rpartition("@")
        return user.split(":") if at else []


def _launched() -> str:
    """Where the launcher runs NATS for this state directory, so that other commands find it; else empty."""
    with suppress(OSError):
        return (Path(environment.text("TOUCHSTONE_STATE_DIR", "var")) / "nats-url").read_text().strip()
    return ""


class _Client(Client):
    """Ends requests that were on their way when the connection broke: their answers went down with it."""

    def __init__(self) -> None:
        super().__init__()
        self.leaving = True
        self._waits: set[asyncio.Timeout] = set()

    async def request(
        self,
        subject: str,
        payload: bytes = b"",
        timeout: float = 0.5,  # noqa: ASYNC109 - the overridden method's signature
        old_style: bool = False,
        headers: dict[str, Any] | None = None,
    ) -> Msg:
        """As in nats-py, but a reconnect leaves `_AFTER_RECONNECT_S` for the answer, however long `timeout` is."""
        try:
            async with asyncio.timeout(None) as wait:
                self._waits.add(wait)
                try:
                    return await super().request(subject, payload, timeout, old_style, headers)
                finally:
                    self._waits.discard(wait)
        except TimeoutError as error:
            if isinstance(error, nats.errors.Error):
                raise
            raise nats.errors.TimeoutError from error

    async def _process_headers(self, headers: Any) -> dict[str, str] | None:
        """As in nats-py, but unreadable headers are ignored. An error here would end the connection, and each later one
        that receives the same stored message."""
        try:
            return await super()._process_headers(headers)
        except (ValueError, LookupError) as error:
            log.error("nats: cannot read the headers of a message: %s", error)
            return None

    async def close(self) -> None:
        self.leaving = True
        await super().close()

    def hurry(self) -> None:
        """Call it after a reconnect."""
        # Not at once: what was sent while the connection was down is sent now, and will be answered.
        end = asyncio.get_running_loop().time() + _AFTER_RECONNECT_S
        for wait in self._waits:
            if not wait.expired():
                wait.reschedule(end)


async def connect(url: str, name: str, *, timeout_s: float = 30) -> Bus:
    """Connects and stays connected; raises UnavailableError when NATS does not answer in `timeout_s`."""

    async def on_error(error: Exception) -> None:
        # Permission denials look like timeouts to the caller; their real text comes only here.
        level = logging.DEBUG if client.leaving else logging.WARNING
        log.log(level, "nats: %s", error or type(error).__name__)

    async def on_disconnect() -> None:
        # Also called by an orderly close.
        log.info("nats: disconnected")

    async def on_closed() -> None:
        if not client.leaving:
            # The server refused us permanently. Nothing here can continue; the supervisor starts a new process.
            log.error("nats: the connection is closed for good; ending this process")
            signal.raise_signal(signal.SIGTERM)

    async def on_reconnect() -> None:
        log.info("nats: connected again")
        client.hurry()

    options: dict[str, Any] = {
        "name": name,
        "allow_reconnect": True,
        "max_reconnect_attempts": -1,
        "reconnect_time_wait": 0.25,
        "connect_timeout": 2,
        "ping_interval": 10,
        "max_outstanding_pings": 3,
        "pending_size": 64 * 1024 * 1024,
        "error_cb": on_error,
        "disconnected_cb": on_disconnect,
        "reconnected_cb": on_reconnect,
        "closed_cb": on_closed,
    }
    deadline = asyncio.get_running_loop().time() + timeout_s
    while True:
        client = _Client()
        try:
            # Otherwise, a client that may reconnect for ever also tries its first connection for ever.
            async with asyncio.timeout_at(deadline):
                await client.connect(url, **options)
        except (OSError, nats.errors.Error, TimeoutError) as error:
            if asyncio.get_running_loop().time() >= deadline:
                place = urlsplit(url).netloc.rpartition("@")[2]  # Without the token that may stand before it.
                raise UnavailableError(
                    f"NATS does not answer at {place}, or refuses the token. Start it, for example with `make run`, "
                    "or set TOUCHSTONE_NATS_URL."
                ) from error
            await asyncio.sleep(0.2)
        else:
            client.leaving = False
            return Bus(client)


async def open_bus(settings: Settings, name: str) -> Bus:
    """Connects, checks that the server syncs every write, and creates what is missing. What services start with."""
    bus = await connect(settings.url, name)
    if settings.monitor_url:
        await _require_sync(settings.monitor_url)
    else:
        log.warning("TOUCHSTONE_NATS_MONITOR_URL is not set: cannot check that NATS syncs every write")
    await bus.ensure(settings.results_max_bytes, settings.replicas)
    return bus


async def _require_sync(monitor_url: str) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
        try:
            answer = (await client.get(f"{monitor_url}/varz")).json()
        except (httpx.HTTPError, ValueError) as error:
            raise UnavailableError(f"NATS does not answer at its monitoring address {monitor_url}.") from error
    if not answer.get("jetstream", {}).get("config", {}).get("sync_always"):
        raise UnavailableError(
            "NATS does not sync every write: a power loss would lose acknowledged results. "
            "Set `sync_interval: always` in the jetstream block of its configuration."
        )
