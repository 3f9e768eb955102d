"""Connecting to NATS, and staying connected through its restarts."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import ssl
from collections.abc import Awaitable, Callable, Coroutine
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
from services.bus.login import PLAIN, Login
from services.bus.operations import Bus, Listeners
from services.errors import InvalidRequestError, UnavailableError

log = logging.getLogger(__name__)

_AFTER_RECONNECT_S = 1.0
_LEAST_RESULTS_BYTES = 2**20
_UNHEARD_MS = 10_000
_ANSWER_S = 3.0
_CANCEL_AGAIN_S = 0.1
_LOOK_S, _LOST_LOOK_S = 5.0, 0.5


@dataclass(frozen=True, slots=True)
class Settings:
    """How to reach NATS: `url` and `monitor_url` have the URLs of one node or of several, separated by commas.

    RESULTS holds at most `results_max_bytes`, which must be below the disk's size. New streams have `replicas` copies.
    The `login` is the same for every node.
    """

    url: str
    monitor_url: str
    results_max_bytes: int
    replicas: int
    login: Login = PLAIN

    @classmethod
    def from_env(cls) -> Settings:
        """Raises InvalidRequestError naming the invalid variable."""
        usual = _launched() or "nats://127.0.0.1:4222"
        least, most = _LEAST_RESULTS_BYTES, environment.MOST_BYTES
        made = cls(
            url=environment.url("TOUCHSTONE_NATS_URL", usual, ("nats", "tls", "ws", "wss")),
            monitor_url=environment.url("TOUCHSTONE_NATS_MONITOR_URL", "", ("http", "https")),
            results_max_bytes=environment.whole("TOUCHSTONE_RESULTS_MAX_BYTES", 2 * 1024**3, least, most),
            replicas=environment.whole("TOUCHSTONE_NATS_REPLICAS", 1, 1, 5),
            login=Login.from_env(),
        )
        if _credentials(made.url) and made.login.seed:
            raise InvalidRequestError(
                "TOUCHSTONE_NATS_URL has a token or a user, and TOUCHSTONE_NATS_NKEY_SEED_FILE is set. Use one of them."
            )
        return made

    @property
    def secrets(self) -> list[str]:
        """What must not appear in logs: an nkey's seed, and what the URLs have of a token, or a user and a password."""
        return [*_credentials(self.url).values(), *([self.login.seed] if self.login.seed else [])]


def _credentials(urls: str) -> dict[str, str]:
    """Options of nats-py with what stands before the @ of the URLs: given this way, they also reach the nodes that the
    cluster names, and those whose URL has none. Raises InvalidRequestError if the URLs differ."""
    found = {user for url in urls.split(",") if (user := urlsplit(url.strip()).netloc.rpartition("@")[0])}
    if len(found) > 1:
        raise InvalidRequestError(
            "TOUCHSTONE_NATS_URL must have the same token, or the same user and password, in each of its URLs."
        )
    for one in found:
        user, colon, password = one.partition(":")
        return {"user": user, "password": password} if colon else {"token": user}
    return {}


def _launched() -> str:
    """Where the launcher runs NATS for this state directory, so that other commands find it; else empty."""
    with suppress(OSError):
        return (Path(environment.text("TOUCHSTONE_STATE_DIR", "var")) / "nats-url").read_text().strip()
    return ""


class _Client(Client):
    """Ends requests that were on their way when the connection broke: their answers went down with it."""

    def __init__(self, login: Login) -> None:
        super().__init__()
        self.leaving = True
        self._login = login
        self._context: ssl.SSLContext | None = None
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

    async def _process_connect_init(self) -> None:
        """As in nats-py, but the kernel gives up a connection on which sent bytes are not acknowledged. Where a host is
        cut off, nats-py would first wait until they have left this machine, for a quarter of an hour."""
        writer = getattr(self._transport, "_io_writer", None)  # None over WebSocket.
        if writer is not None and (sock := writer.get_extra_info("socket")) is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNHEARD_MS)
        await super()._process_connect_init()

    @property
    def ssl_context(self) -> ssl.SSLContext:
        """As in nats-py, but each connection reads the files again, which may have been renewed."""
        if not self._login.ca:
            return super().ssl_context
        try:
            self._context = self._login.context()
        except (InvalidRequestError, OSError) as error:
            if self._context is None:
                raise
            log.error("nats: %s. The certificates that were read before are still used.", error)
        return self._context

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        """As in nats-py, but who trusts only some servers does not say a word to one that shows no certificate."""
        if self._login.ca and initial_connection and not info.get("tls_required"):
            raise nats.errors.Error("the server offers no TLS, which TOUCHSTONE_NATS_TLS_CA requires")
        await super()._process_info(info, initial_connection)

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


async def connect(url: str, name: str, login: Login = PLAIN, *, timeout_s: float = 30) -> Bus:
    """Connects to a node of NATS and stays connected, also by way of other nodes of its cluster. `url` may have several
    URLs, separated by commas. Raises UnavailableError when no node answers in `timeout_s`, or none takes the login."""

    listeners = Listeners()

    async def on_error(error: Exception) -> None:
        # Permission denials look like timeouts to the caller; their real text comes only here.
        level = logging.DEBUG if client.leaving else logging.WARNING
        log.log(level, "nats: %s", error or type(error).__name__)

    async def on_disconnect() -> None:
        # Also called by an orderly close.
        log.info("nats: disconnected")
        for tell in list(listeners.breaks):
            tell()

    async def on_closed() -> None:
        if not client.leaving:
            # The server refused us permanently. Nothing here can continue; the supervisor starts a new process.
            log.error("nats: the connection is closed for good; ending this process")
            signal.raise_signal(signal.SIGTERM)

    async def on_reconnect() -> None:
        log.info("nats: connected again")
        client.hurry()
        for tell in list(listeners.reconnects):
            tell()

    options: dict[str, Any] = {
        **_credentials(url),
        **login.options(),
        "name": name,
        "allow_reconnect": True,
        "max_reconnect_attempts": -1,
        "reconnect_time_wait": 0.25,
        "connect_timeout": 2,
        # A node whose host is cut off is noticed only this way: after 10 to 15 s.
        "ping_interval": 5,
        "max_outstanding_pings": 2,
        "pending_size": 64 * 1024 * 1024,
        "error_cb": on_error,
        "disconnected_cb": on_disconnect,
        "reconnected_cb": on_reconnect,
        "closed_cb": on_closed,
    }
    deadline = asyncio.get_running_loop().time() + timeout_s
    while True:
        client = _Client(login)
        try:
            # Otherwise, a client that may reconnect for ever also tries its first connection for ever.
            await _until(deadline, client.connect([one.strip() for one in url.split(",")], **options))
        except (OSError, nats.errors.Error, TimeoutError) as error:
            if asyncio.get_running_loop().time() >= deadline:
                # Without the token that may stand before each.
                place = ", ".join(urlsplit(one.strip()).netloc.rpartition("@")[2] for one in url.split(","))
                who = "nkey or certificate" if login.seed or login.ca else "token"
                raise UnavailableError(
                    f"NATS does not answer at {place}, or refuses the {who}. Start it, for example with `make run`, "
                    "or set TOUCHSTONE_NATS_URL."
                ) from error
            await asyncio.sleep(0.2)
        else:
            client.leaving = False
            return Bus(client, listeners)


async def _until(deadline: float, work: Coroutine[Any, Any, None]) -> None:
    """Raises TimeoutError at the deadline, in the loop's time. Cancels until the work has ended: Python 3.11 may lose a
    cancellation that comes together with an answer, and the work would continue."""
    task = asyncio.create_task(work)
    try:
        await asyncio.wait({task}, timeout=max(0.0, deadline - asyncio.get_running_loop().time()))
    finally:
        while not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=_CANCEL_AGAIN_S)
    if task.cancelled():
        raise TimeoutError
    task.result()


async def open_bus(settings: Settings, name: str) -> Bus:
    """Connects, checks that the nodes sync every write, and creates what is missing. What services start with."""
    bus = await connect(settings.url, name, settings.login)
    if settings.monitor_url:
        await require_sync(settings.monitor_url)
    else:
        log.warning("TOUCHSTONE_NATS_MONITOR_URL is not set: cannot check that NATS syncs every write")
    await bus.ensure(settings.results_max_bytes, settings.replicas)
    return bus


async def watch_nats(bus: Bus, tell: Callable[[bool], Awaitable[None]]) -> None:
    """Tells whether NATS can be used, at first and at each change, until cancelled."""
    told: bool | None = None
    broken = asyncio.Event()
    with bus.telling_of_breaks(broken.set):
        while True:
            broken.clear()
            well = await bus.answers(_ANSWER_S)
            if not well and told and bus.connected:
                # A busy server may miss one.
                well = await bus.answers(_ANSWER_S)
            if well != told:
                if told is not None:
                    log.log(
                        logging.INFO if well else logging.WARNING, "NATS %s", "answers again" if well else "is lost"
                    )
                await tell(well)
                told = well
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S if well else _LOST_LOOK_S):
                    await broken.wait()


async def require_sync(monitor_url: str, *, all_nodes: bool = False) -> None:
    """Raises UnavailableError if a node does not sync every write, or does not say so. With several nodes, one that
    does not answer is only logged, unless `all_nodes`: it may never come back, and services must start without it.
    """
    urls = [one.strip() for one in monitor_url.split(",")]
    async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
        told = await asyncio.gather(*(_told(client, url) for url in urls))
    silent = [url for url, answer in zip(urls, told, strict=True) if answer is None]
    if silent and (all_nodes or len(silent) == len(urls)):
        raise UnavailableError(f"NATS does not answer at its monitoring address {', '.join(silent)}.")
    for url in silent:
        log.warning("NATS does not answer at %s: cannot check that this node syncs every write", url)
    answers = [(url, answer.get("jetstream", {})) for url, answer in zip(urls, told, strict=True) if answer is not None]
    for url, answer in answers:
        if not answer.get("config", {}).get("sync_always"):
            raise UnavailableError(
                f"NATS at {url} does not sync every write: a power loss would lose acknowledged results. "
                "Set `sync_interval: always` in the jetstream block of its configuration."
            )
    nodes = max(answer.get("meta", {}).get("cluster_size", 1) for _, answer in answers)
    if nodes > len(urls):
        log.warning(
            "TOUCHSTONE_NATS_MONITOR_URL names %d of NATS's %d nodes: cannot check that the others sync every write",
            len(urls),
            nodes,
        )


async def _told(client: httpx.AsyncClient, url: str) -> dict[str, Any] | None:
    """What a node says of itself; None if it does not answer."""
    try:
        answer: dict[str, Any] = (await client.get(f"{url}/varz")).json()
    except (httpx.HTTPError, ValueError):
        return None
    return answer
