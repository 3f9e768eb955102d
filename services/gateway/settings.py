"""What the gateway reads from its environment, once."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass

from services.errors import InvalidRequestError


@dataclass(frozen=True, slots=True)
class Settings:
    """Where the gateway listens, which services it asks, and its limits.

    `scheduler` and `results` are gRPC addresses, host:port or several joined by commas. `call_timeout_s` is the
    deadline of every call to them. Limits hold per user and per gateway process. `upload_max_bytes` is the most of an
    upload as it is sent, perhaps compressed; one that sends nothing for `upload_idle_s` is ended.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    scheduler: str = "127.0.0.1:8051"
    results: str = "127.0.0.1:8052"
    requests_per_minute: int = 100
    streams_per_user: int = 8
    waits_per_user: int = 32
    uploads_per_user: int = 4
    upload_max_bytes: int = 2 * 10**9
    upload_idle_s: float = 45
    connections_per_address: int = 1000
    header_timeout_s: float = 10
    stream_max_age_s: float = 900
    heartbeat_s: float = 15
    call_timeout_s: float = 3

    @classmethod
    def from_env(cls) -> Settings:
        """Raises InvalidRequestError for a number that is none."""
        env = os.environ
        return cls(
            host=env.get("TOUCHSTONE_HTTP_HOST", "127.0.0.1"),
            port=_integer("TOUCHSTONE_HTTP_PORT", 8080, 0, 65535),
            scheduler=env.get("TOUCHSTONE_SCHEDULER", "127.0.0.1:8051"),
            results=env.get("TOUCHSTONE_RESULTS", "127.0.0.1:8052"),
            requests_per_minute=_integer("TOUCHSTONE_REQUESTS_PER_MINUTE", 100, 1, 1_000_000),
            streams_per_user=_integer("TOUCHSTONE_STREAMS_PER_USER", 8, 1, 10_000),
            waits_per_user=_integer("TOUCHSTONE_WAITS_PER_USER", 32, 1, 10_000),
            uploads_per_user=_integer("TOUCHSTONE_UPLOADS_PER_USER", 4, 1, 1000),
            upload_max_bytes=_integer("TOUCHSTONE_UPLOAD_MAX_BYTES", 2 * 10**9, 1, 2**40),
            upload_idle_s=_integer("TOUCHSTONE_UPLOAD_IDLE_S", 45, 1, 3600),
            call_timeout_s=_integer("TOUCHSTONE_CALL_TIMEOUT_S", 3, 1, 600),
            connections_per_address=_integer("TOUCHSTONE_CONNECTIONS_PER_ADDRESS", 1000, 1, 100_000),
            header_timeout_s=_integer("TOUCHSTONE_HEADER_TIMEOUT_S", 10, 1, 3600),
            stream_max_age_s=_integer("TOUCHSTONE_STREAM_MAX_AGE_S", 900, 1, 86_400),
        )

    def require_loopback(self) -> None:
        """Without tokens anyone who reaches the port is an admin. Raises InvalidRequestError for another host."""
        if self.host == "localhost":
            return
        try:
            loopback = ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            loopback = False
        if not loopback:
            raise InvalidRequestError(
                f"TOUCHSTONE_HTTP_HOST is {self.host}, but local mode listens on loopback only, as it asks for no "
                "token. Set TOUCHSTONE_AUTH=token to listen there."
            )


def _integer(name: str, default: int, low: int, high: int) -> int:
    text = os.environ.get(name, str(default))
    if not text.isdecimal() or not low <= int(text) <= high:
        raise InvalidRequestError(f"{name} is {text!r}; it must be a whole number from {low} to {high}.")
    return int(text)
