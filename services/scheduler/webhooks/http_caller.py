"""Calls receivers over HTTP, at permitted addresses only."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

import services
from services.scheduler.settings import WebhookSettings
from services.scheduler.webhooks.address import AddressRule
from services.scheduler.webhooks.deliveries import Answer, retry_after_s

_NAME_THREADS = 32
"""The process's usual few threads would let one slow name server hold up every receiver."""
_AddrInfo = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]]


class RefusedAddressError(OSError):
    """The host's address must not be called. The address itself is not reported: internal names must not leak."""

    def __init__(self) -> None:
        super().__init__("its host has no public address")


class HttpCaller:
    """One session for all calls. Follows no redirect, heeds no proxy variables, reads no answer's body."""

    def __init__(self, settings: WebhookSettings, wall: Callable[[], float] = time.time) -> None:
        self._rule = AddressRule(settings.private, settings.loopback)
        self._wall = wall
        self._names = ThreadPoolExecutor(_NAME_THREADS, "webhook-names")
        connector = aiohttp.TCPConnector(
            limit=0, force_close=True, use_dns_cache=False, resolver=_Names(self._names), socket_factory=self._socket
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=settings.total_s, connect=settings.connect_s),
            headers={"User-Agent": f"Touchstone/{services.__version__}"},
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )

    def _socket(self, info: _AddrInfo) -> socket.socket:
        """Every connection begins here, with the exact address that it goes to, so a name that changes its address
        after the check gains nothing."""
        family, kind, protocol, _, address = info
        if not self._rule.permits(str(address[0])):
            raise RefusedAddressError
        return socket.socket(family, kind, protocol)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        try:
            async with self._session.post(url, headers=headers, data=body, allow_redirects=False) as answer:
                # A receiver's status is enough; its body might never end.
                answer.close()
                asked = retry_after_s(answer.headers.get("Retry-After", ""), self._wall())
                problem = f"status {answer.status}"
                if 300 <= answer.status < 400:
                    problem += ", a redirect, which is not followed"
                return Answer(answer.status, problem, asked)
        except TimeoutError:
            return Answer(problem="no answer in time")
        except aiohttp.ClientSSLError:
            return Answer(problem="no connection: its TLS certificate is not trusted")
        except aiohttp.ClientConnectorError as error:
            refused = isinstance(error.os_error, RefusedAddressError)
            return Answer(problem=f"no connection: {_reason(error.os_error)}", final=refused)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Answer(problem=f"no answer: {type(error).__name__}", final=isinstance(error, aiohttp.InvalidURL))

    async def aclose(self) -> None:
        await self._session.close()
        self._names.shutdown(wait=False, cancel_futures=True)


def _reason(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return "its host has no address"
    return (error.strerror or str(error)).lower()


class _Names(AbstractResolver):
    """Asks the system for a host's addresses, in separate threads."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        def ask() -> list[ResolveResult]:
            found = socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
            return [
                ResolveResult(
                    hostname=host,
                    host=str(address[0]),
                    port=port,
                    family=kind,
                    proto=protocol,
                    flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
                )
                for kind, _, protocol, _, address in found
            ]

        return await asyncio.get_running_loop().run_in_executor(self._threads, ask)

    async def close(self) -> None:
        return
