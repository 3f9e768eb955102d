"""Which URLs and addresses may be called. Pure.

A user's URL is called from inside the installation's network, so every address that is not a public one is refused:
private, loopback and link-local networks, multicast, and where clouds answer questions about a machine's identity.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from services.errors import InvalidRequestError

MOST_URL = 2000
_CLOUD_HOSTS = frozenset({ipaddress.ip_address("168.63.129.16")})
"""Public by its number, and Azure's own service on every machine; those of other clouds are link-local or private."""
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
"""NAT64 (RFC 6052): the last four bytes are an IPv4 address."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class AddressRule:
    """`private` permits every address, `loopback` also this machine's."""

    private: bool = False
    loopback: bool = False

    def permits(self, host: str) -> bool:
        """Whether an IP address may be called."""
        if self.private:
            return True
        address = ipaddress.ip_address(host.partition("%")[0])
        if address.is_loopback:
            return self.loopback
        return all(_is_public(one) for one in (address, *_inner(address)))

    def check_url(self, url: str, field: str) -> None:
        """Checks a URL without looking up its host's address. Raises InvalidRequestError."""
        wrong = _problem(url)
        host = "" if wrong else urlsplit(url).hostname or ""
        if not wrong and _is_literal(host) and not self.permits(host):
            wrong = f"{host} is not a public address. An operator can allow it with TOUCHSTONE_WEBHOOKS_PRIVATE=1"
        if wrong:
            raise InvalidRequestError(f"{field.rpartition('.')[2]} cannot be called: {wrong}.", field)


def host_of(url: str) -> str:
    """Host and port, one name for one receiver."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or parts.scheme}"


def _problem(url: str) -> str:
    if len(url) > MOST_URL:
        return f"it has more than {MOST_URL:,} characters"
    if not url.isascii() or not url.isprintable() or " " in url:
        return "it must consist of printable ASCII characters; percent-encode others"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "its host or port is not valid"
    if parts.scheme not in ("http", "https") or not host or port == 0:
        return "give an http or https URL with a host"
    if "@" in parts.netloc:
        return "it must not contain a user name or a password; calls are signed instead"
    if parts.fragment:
        return "remove the part after #, which is never sent"
    return ""


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _is_public(address: Address) -> bool:
    return address.is_global and not address.is_multicast and address not in _CLOUD_HOSTS


def _inner(address: Address) -> list[Address]:
    """IPv4 addresses that an IPv6 one leads to."""
    if not isinstance(address, ipaddress.IPv6Address):
        return []
    found: list[Address | None] = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _TRANSLATED:
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    return [one for one in found if one is not None]
