"""Wrong tokens: logged without the token, and slowed where they come from."""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from services.errors import LimitReachedError

log = logging.getLogger(__name__)

_PREFIX = 8
_BY_PREFIX = 6
"""The divisor of free tries for tokens with the same first characters."""
_LONGEST_WAIT_S = 60.0
_FORGOTTEN_S = 600.0
_LOG_EVERY_S = 60.0
_LINES_A_MINUTE = 30
_MOST = 10_000
"""Addresses and prefixes that are remembered; then the oldest are forgotten."""

_Key = tuple[str, str]


@dataclass(slots=True)
class _Tries:
    failed: int = 0
    last: float = 0.0
    until: float = 0.0
    """Further tries are refused until then."""


class Failures:
    """Failed logins by address, and by address and first characters of the token.

    After `free` wrong tokens from one address, each further one doubles the wait up to a minute. A token that was
    recently right is looked up in any case. Other addresses do not wait.
    """

    def __init__(self, free: int, clock: Callable[[], float] = time.monotonic) -> None:
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
            wait = math.ceil(until - now)
            raise LimitReachedError(f"Too many wrong tokens came from your address. Try again in {wait} s.", wait)

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
        while len(self._tries) > _MOST:
            self._tries.popitem(last=False)
        self._log(_network(address), now)

    def succeeded(self, token: str) -> None:
        """Remembers a right token."""
        digest = _digest(token)
        self._right[digest] = None
        self._right.move_to_end(digest)
        while len(self._right) > _MOST:
            self._right.popitem(last=False)

    def _log(self, address: str, now: float) -> None:
        since, count = self._logged.get(address, (-math.inf, 0))
        count += 1
        self._lines = [line for line in self._lines if now - line < _LOG_EVERY_S]
        if now - since >= _LOG_EVERY_S and len(self._lines) < _LINES_A_MINUTE:
            log.warning("wrong token from %s, %d since the last such line", address, count)
            self._lines.append(now)
            since, count = now, 0
        self._logged[address] = (since, count)
        self._logged.move_to_end(address)
        while len(self._logged) > _MOST:
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
