"""The identity of callers, and how it is determined."""

from __future__ import annotations

import contextvars
import hashlib
import hmac
import ipaddress
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from services import environment, errors
from services.errors import InvalidRequestError
from services.rpc.failures import Failures
from touchstone.v1 import token_pb2

TokenLookup = Callable[[str], Awaitable[token_pb2.Token | None]]
"""Finds a token by the SHA-256 hex digest of its text."""

_REQUEST_ID = re.compile(r"[\x21-\x7e]{0,64}")


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


def require_admin() -> Identity:
    caller = identity()
    if not caller.is_admin:
        raise errors.PermissionDeniedError("Only an admin may do this.")
    return caller


def is_loopback(address: str) -> bool:
    """Whether `host:port` names this machine's loopback."""
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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
