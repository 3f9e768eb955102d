"""The identity of callers and how it is determined. Wrong tokens are logged and slowed, revoked ones end long calls."""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import hmac
import ipaddress
import logging
import math
import re
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from services import environment, errors
from services.errors import InvalidRequestError, LimitReachedError, TouchstoneError, UnauthenticatedError
from services.telemetry import metrics
from touchstone.v1 import token_pb2

log = logging.getLogger(__name__)

TokenLookup = Callable[[str], Awaitable[token_pb2.Token | None]]
"""Finds a token by the SHA-256 hex digest of its text."""

_REQUEST_ID = re.compile(r"[\x21-\x7e]{0,64}")
CHECK_S = 1.5
"""Seconds between checks whether the token of a long call is revoked."""

_PREFIX = 8
_BY_PREFIX = 6
"""The divisor of free tries for tokens with the same first characters."""
_LONGEST_WAIT_S = 60.0
_FORGOTTEN_S = 600.0
_LOG_EVERY_S = 60.0
_LINES_A_MINUTE = 30
_MOST_REMEMBERED = 10_000
"""Addresses and prefixes that are remembered; then the oldest are forgotten."""

_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Identity:
    """Who is calling."""

    user: str
    role: token_pb2.Role

    @property
    def is_admin(self) -> bool:
        return self.role in (token_pb2.ROLE_ADMIN, token_pb2.ROLE_SERVICE)


@dataclass(frozen=True)
class Settings:
    """`auth` is "local" (no tokens, loopback only) or "token"; services share `service_token`. After `wrong_tokens`
    from one address, further ones have to wait."""

    auth: str
    service_token: str
    wrong_tokens: int = 30

    @classmethod
    def from_env(cls) -> Settings:
        """Raises InvalidRequestError when the variables contradict each other."""
        auth = environment.choice("TOUCHSTONE_AUTH", "local", ("local", "token"))
        token = environment.text("TOUCHSTONE_SERVICE_TOKEN")
        if auth == "token" and not token:
            raise errors.InvalidRequestError("TOUCHSTONE_AUTH=token needs TOUCHSTONE_SERVICE_TOKEN, a shared secret.")
        return cls(auth, token, environment.whole("TOUCHSTONE_WRONG_TOKENS", cls.wrong_tokens, 1, 1_000_000))


LOCAL = Identity("local", token_pb2.ROLE_ADMIN)


_identity: contextvars.ContextVar[Identity] = contextvars.ContextVar("identity", default=LOCAL)


def identity() -> Identity:
    """The caller of the RPC being served."""
    return _identity.get()


def use_identity(caller: Identity) -> None:
    """Sets the caller of the RPC being served; for the interceptor only."""
    _identity.set(caller)


def require_admin(caller: Identity | None = None) -> Identity:
    """The given caller, or that of the RPC being served. Raises PermissionDeniedError unless it is an admin."""
    caller = caller or identity()
    if not caller.is_admin:
        raise errors.PermissionDeniedError("Only an admin may do this.")
    return caller


def token_digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


class Authenticator:
    """Turns a token into an identity. `service_token` is the services' own; without `lookup`, local mode."""

    def __init__(
        self, lookup: TokenLookup | None, service_token: str, wrong_tokens: int = Settings.wrong_tokens
    ) -> None:
        self._lookup = lookup
        self._service_token = service_token
        self._failures = Failures(wrong_tokens)

    @property
    def local(self) -> bool:
        """Whether everybody is admitted as the admin `local`."""
        return self._lookup is None

    async def __call__(self, token: str, address: str = "") -> Identity:
        """Raises UnauthenticatedError for a missing, unknown or expired token, and LimitReachedError where too many
        wrong ones came from the `address`. Without an address nothing is counted."""
        if self._is_service(token):
            return Identity("scheduler", token_pb2.ROLE_SERVICE)
        if self._lookup is None:
            return LOCAL  # local mode
        if not token:
            raise errors.UnauthenticatedError("Send a token: Authorization: Bearer <token>, or X-API-Key: <token>.")
        if not address:
            return await self._user(self._lookup, token)
        self._failures.require(address, token)
        try:
            found = await self._user(self._lookup, token)
        except errors.UnauthenticatedError:
            self._failures.failed(address, token)
            raise
        self._failures.succeeded(token)
        return found

    def _is_service(self, token: str) -> bool:
        own = self._service_token.encode()
        return bool(token and own) and hmac.compare_digest(token.encode("utf-8", "surrogateescape"), own)

    async def _user(self, lookup: TokenLookup, token: str) -> Identity:
        stored = await lookup(token_digest(token))
        if stored is None:
            raise errors.UnauthenticatedError("The token is unknown. Ask an admin for a new one.")
        if stored.HasField("expires_at") and stored.expires_at.ToSeconds() < time.time():
            raise errors.UnauthenticatedError("The token has expired. Ask an admin for a new one.")
        return Identity(stored.user, stored.role)


def check_request_id(request_id: str) -> None:
    """Raises InvalidRequestError."""
    if not _REQUEST_ID.fullmatch(request_id):
        raise InvalidRequestError(
            "request_id must have at most 64 printable ASCII characters and no spaces.", "request_id"
        )


@dataclass(slots=True)
class _Tries:
    failed: int = 0
    last: float = 0.0
    until: float = 0.0
    """Further tries are refused until then."""


class Failures:
    """Failed logins by address, and by address and first characters of the token.

    After `free` wrong tokens from one address, each further one doubles the wait up to a minute. A token that was
    recently right is looked up in any case. Other addresses do not wait. `what` names such a failure.
    """

    def __init__(self, free: int, clock: Callable[[], float] = time.monotonic, *, what: str = "wrong token") -> None:
        self._what = what
        self._free = (free, max(1, free // _BY_PREFIX))
        self._clock = clock
        self._tries: OrderedDict[_Key, _Tries] = OrderedDict()
        self._right: OrderedDict[str, None] = OrderedDict()
        self._logged: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """When a line about the address was written, and failures since."""
        self._lines: list[float] = []

    def require(self, address: str, token: str) -> None:
        """Raises LimitReachedError while tokens from there have to wait."""
        if _digest(token) in self._right:
            return
        now = self._clock()
        until = max((self._tries[key].until for key in _keys(address, token) if key in self._tries), default=0.0)
        if until > now:
            metrics.REFUSALS.add("wrong_tokens")
            wait = math.ceil(until - now)
            raise LimitReachedError(f"Too many {self._what}s came from your address. Try again in {wait} s.", wait)

    def failed(self, address: str, token: str) -> None:
        """Counts a wrong token, and logs the address."""
        now = self._clock()
        self._right.pop(_digest(token), None)
        for key, free in zip(_keys(address, token), self._free, strict=True):
            tries = self._tries.setdefault(key, _Tries())
            if now - tries.last > _FORGOTTEN_S:
                tries.failed = 0
            tries.failed, tries.last = tries.failed + 1, now
            if tries.failed > free:
                tries.until = now + min(_LONGEST_WAIT_S, 2.0 ** min(tries.failed - free - 1, 6))
            self._tries.move_to_end(key)
        while len(self._tries) > _MOST_REMEMBERED:
            self._tries.popitem(last=False)
        self._log(_network(address), now)

    def succeeded(self, token: str) -> None:
        """Remembers a right token."""
        digest = _digest(token)
        self._right[digest] = None
        self._right.move_to_end(digest)
        while len(self._right) > _MOST_REMEMBERED:
            self._right.popitem(last=False)

    def _log(self, address: str, now: float) -> None:
        since, count = self._logged.get(address, (-math.inf, 0))
        count += 1
        self._lines = [line for line in self._lines if now - line < _LOG_EVERY_S]
        if now - since >= _LOG_EVERY_S and len(self._lines) < _LINES_A_MINUTE:
            log.warning("%s from %s, %d since the last such line", self._what, address, count)
            self._lines.append(now)
            since, count = now, 0
        self._logged[address] = (since, count)
        self._logged.move_to_end(address)
        while len(self._logged) > _MOST_REMEMBERED:
            self._logged.popitem(last=False)


def _keys(address: str, token: str) -> tuple[_Key, _Key]:
    network = _network(address)
    return (network, ""), (network, token[:_PREFIX])


def _network(address: str) -> str:
    """The address without its port; for IPv6 the network, as one host has all of its addresses."""
    try:
        host = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:80]
    if isinstance(host, ipaddress.IPv6Address) and host.ipv4_mapped is None:
        return str(ipaddress.ip_network((host, 64), strict=False))
    return str(host.ipv4_mapped or host) if isinstance(host, ipaddress.IPv6Address) else str(host)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


@asynccontextmanager
async def while_valid(check: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    """Asks `check` every CHECK_S seconds while the block runs. Raises its UnauthenticatedError, which ends the block.
    Other errors are ignored: a silent store of tokens does not revoke any."""
    work = asyncio.current_task()
    assert work is not None
    loop = asyncio.get_running_loop()
    ended: list[UnauthenticatedError] = []
    watching: list[asyncio.Task[None]] = []

    async def watch() -> None:
        while True:
            try:
                await check()
            except UnauthenticatedError as error:
                ended.append(error)
                work.cancel()
                return
            except TouchstoneError as error:
                log.warning("cannot look up a token: %s", error)
            await asyncio.sleep(CHECK_S)

    # Most calls end before, and cost only a timer.
    timer = loop.call_later(CHECK_S, lambda: watching.append(loop.create_task(watch())))
    try:
        yield
    except asyncio.CancelledError:
        if ended and work.uncancel() == 0:
            raise ended[0] from None
        raise
    finally:
        timer.cancel()
        for task in watching:
            task.cancel()
