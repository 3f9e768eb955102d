"""Who sends a request: a bearer token, a browser's session, or `local` where the installation needs no token.

A browser's cookie holds an opaque id; the session itself is in a NATS bucket under the id's hash. It rests on a token,
or on what an OpenID Connect provider said.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from typing import TypeVar
from urllib.parse import parse_qs, urlsplit

import nats.errors
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import Response

from services import bus, rpc
from services.errors import AwayError, PermissionDeniedError, UnauthenticatedError
from touchstone.v1 import token_pb2

T = TypeVar("T")
LIFETIME_S = 7 * 24 * 3600
_SESSION = "touchstone"
"""The cookie of a session."""


@dataclass(frozen=True, slots=True)
class Session:
    """Who signed in, and the CSRF token of the session's forms.

    It ends with the token of which `token_digest` is the digest, or else at `ends_at` (Unix seconds), if `issuer` is
    still the provider. `id_token` is what the provider wants to see when the session ends.
    """

    user: str
    role: token_pb2.Role
    csrf: str
    token_digest: str = ""
    issuer: str = ""
    ends_at: float = 0
    id_token: str = field(default="", repr=False)

    @classmethod
    def of_token(cls, identity: rpc.Identity, token: str) -> Session:
        return cls(identity.user, identity.role, _new_csrf(), rpc.token_digest(token))

    @classmethod
    def of_provider(cls, identity: rpc.Identity, issuer: str, ends_at: float, id_token: str) -> Session:
        return cls(identity.user, identity.role, _new_csrf(), "", issuer, ends_at, id_token)


def _new_csrf() -> str:
    return secrets.token_urlsafe(24)


class Sessions:
    """Sessions in the SESSIONS bucket, which forgets them after a week."""

    def __init__(self, nats_bus: bus.Bus) -> None:
        self._bus = nats_bus

    async def start(self, session: Session) -> str:
        """Stores a new session and returns its id, which only the browser keeps."""
        session_id = secrets.token_urlsafe(32)
        # Gateways of earlier versions know no other fields than those of a token's session.
        value = json.dumps({name: value for name, value in asdict(session).items() if value}).encode()
        await within(self._bus.kv_put(bus.SESSIONS, rpc.token_digest(session_id), value), "session store")
        return session_id

    async def read(self, session_id: str) -> Session | None:
        msg = await within(self._bus.kv_get(bus.SESSIONS, rpc.token_digest(session_id)), "session store")
        return Session(**json.loads(msg.data)) if msg and msg.data else None

    async def end(self, session_id: str) -> None:
        await within(self._bus.kv_delete(bus.SESSIONS, rpc.token_digest(session_id)), "session store")

    def id_of(self, connection: HTTPConnection) -> str:
        return cookie(connection, _SESSION)

    def set_cookie(self, connection: HTTPConnection, response: Response, session_id: str) -> None:
        set_cookie(connection, response, _SESSION, session_id, LIFETIME_S)

    def clear_cookie(self, connection: HTTPConnection, response: Response) -> None:
        clear_cookie(connection, response, _SESSION)


def cookie(connection: HTTPConnection, name: str) -> str:
    """What the browser keeps under one of Touchstone's names; empty without it."""
    return connection.cookies.get(_cookie_name(connection, name), "")


def set_cookie(connection: HTTPConnection, response: Response, name: str, value: str, max_age_s: int) -> None:
    """A cookie that scripts cannot read and that other sites' forms do not send."""
    response.set_cookie(
        _cookie_name(connection, name),
        value,
        max_age=max_age_s,
        path="/",
        secure=connection.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )


def clear_cookie(connection: HTTPConnection, response: Response, name: str) -> None:
    secure = connection.url.scheme == "https"
    response.delete_cookie(_cookie_name(connection, name), path="/", secure=secure, httponly=True, samesite="lax")


def _cookie_name(connection: HTTPConnection, name: str) -> str:
    """`__Host-` needs HTTPS; on a plain connection the name has no prefix."""
    return f"__Host-{name}" if connection.url.scheme == "https" else name


async def within(work: Awaitable[T], store: str, timeout_s: float = 3) -> T:
    """The answer of a NATS bucket. Raises AwayError, naming the store, when NATS is silent."""
    try:
        async with asyncio.timeout(timeout_s):
            return await work
    except (nats.errors.Error, TimeoutError) as error:
        raise AwayError(f"The {store} (NATS) does not answer. Try again in a moment.") from error


CSRF_HEADER = "x-csrf-token"
CSRF_FIELD = "csrf"
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True, slots=True)
class Caller:
    """An identity and, for browsers, the CSRF token that its forms must carry."""

    identity: rpc.Identity
    csrf: str = ""
    session: str = ""


class TokenCache:
    """Token lookups, remembered for `ttl_s`, so that a revoked token ends within that time."""

    def __init__(self, lookup: rpc.TokenLookup, ttl_s: float = 3, clock: Callable[[], float] = time.monotonic) -> None:
        self._lookup = lookup
        self._ttl_s = ttl_s
        self._clock = clock
        self._known: dict[str, tuple[float, token_pb2.Token | None]] = {}

    async def __call__(self, digest: str) -> token_pb2.Token | None:
        """Raises AwayError when the token store does not answer."""
        now = self._clock()
        held = self._known.get(digest)
        if held and now - held[0] < self._ttl_s:
            return held[1]
        token = await within(self._lookup(digest), "token store")
        if len(self._known) >= 1000:
            self._known.clear()
        # A missing token is also remembered for a moment, so that guessing does not cost a look-up each time.
        self._known[digest] = (now if token is not None else now - self._ttl_s + min(1, self._ttl_s), token)
        return token


class LocalAccess:
    """Local mode: only loopback names, no requests from other sites' pages, and everyone is the admin `local`."""

    sessions: Sessions | None = None

    async def __call__(self, connection: HTTPConnection) -> Caller:
        """Raises PermissionDeniedError for another host's name or another site's page."""
        host = connection.headers.get("host", "")
        if _host_name(host) not in _LOOPBACK_NAMES:
            raise PermissionDeniedError(
                f"This installation answers to localhost only, not to {host[:80]!r}. Use http://localhost or set "
                "TOUCHSTONE_AUTH=token."
            )
        require_same_site(connection)
        return Caller(rpc.LOCAL)


class ClosedAccess:
    """Token mode before NATS was reached: nobody can be admitted yet."""

    sessions: Sessions | None = None

    async def __call__(self, connection: HTTPConnection) -> Caller:
        """Raises AwayError."""
        raise AwayError("The token store (NATS) does not answer. Try again in a moment.")


class TokenAccess:
    """Token mode: a token in a header, or a browser session that rests on one or on the provider with this `issuer`."""

    def __init__(self, tokens: TokenCache, settings: rpc.Settings, sessions: Sessions, issuer: str = "") -> None:
        self._tokens = tokens
        self._issuer = issuer
        self._authenticate = rpc.Authenticator(tokens, settings.service_token, settings.wrong_tokens)
        self.sessions: Sessions | None = sessions

    async def __call__(self, connection: HTTPConnection) -> Caller:
        """Raises UnauthenticatedError without valid credentials, PermissionDeniedError for another site's page."""
        token = _token_of(connection.headers)
        if token:
            return Caller(await self.identify(token, address_of(connection)))
        session_id, session = await self._session(connection)
        if connection.scope.get("method", "GET") not in _SAFE_METHODS:
            require_same_site(connection, evidence=True)
        return Caller(rpc.Identity(session.user, session.role), session.csrf, session_id)

    async def recheck(self, connection: HTTPConnection) -> None:
        """Raises UnauthenticatedError when the token or session of an admitted request has ended."""
        token = _token_of(connection.headers)
        await (self._authenticate(token) if token else self._session(connection))

    async def identify(self, token: str, address: str) -> rpc.Identity:
        """Raises UnauthenticatedError, and LimitReachedError where too many wrong tokens came from the address."""
        identity = await self._authenticate(token, address)
        if identity.role == token_pb2.ROLE_SERVICE:
            raise UnauthenticatedError("A service's token is not for users. Ask an admin for one of your own.")
        return identity

    async def _session(self, connection: HTTPConnection) -> tuple[str, Session]:
        assert self.sessions is not None
        session_id = self.sessions.id_of(connection)
        session = await self.sessions.read(session_id) if session_id else None
        if session is not None and await self._lasts(session):
            return session_id, session
        raise UnauthenticatedError(
            "Send a token: Authorization: Bearer <token>, or X-API-Key: <token>; in a browser, sign in at /login."
        )

    async def _lasts(self, session: Session) -> bool:
        if session.issuer:
            return session.issuer == self._issuer and time.time() < session.ends_at
        # A session ends with its token: revoking the token signs the browser out.
        stored = await self._tokens(session.token_digest)
        return stored is not None and not (
            stored.HasField("expires_at") and stored.expires_at.ToSeconds() < time.time()
        )


def require_same_site(connection: HTTPConnection, *, evidence: bool = False) -> None:
    """Refuses requests that another site's page makes. With `evidence`, requests without an origin are also refused.

    Raises PermissionDeniedError.
    """
    method = connection.scope.get("method", "GET")
    origin = connection.headers.get("origin")
    fetch_site = connection.headers.get("sec-fetch-site")
    if origin is not None:
        own = f"{connection.url.scheme}://{connection.headers.get('host', '')}"
        if origin.lower() != own.lower():
            raise PermissionDeniedError(f"Requests from {origin[:80]!r} are not accepted. Use this page's own address.")
        return
    if method in _SAFE_METHODS:
        return
    if fetch_site not in (None, "same-origin") or (evidence and fetch_site is None):
        raise PermissionDeniedError("The request does not come from this site's own pages. Reload the page.")


def csrf_token(headers: Headers, body: bytes) -> str:
    """The token that an unsafe request carries, in a header or a form field; empty without one."""
    sent = headers.get(CSRF_HEADER, "")
    if not sent and headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=2000)
        sent = fields.get(CSRF_FIELD, [""])[0]
    return sent


def require_csrf(caller: Caller, sent: str) -> None:
    """A session's unsafe request carries its token. Raises PermissionDeniedError."""
    if not sent or not hmac.compare_digest(sent.encode(), caller.csrf.encode()):
        raise PermissionDeniedError("The page is too old to send this. Reload it, then try again.")


def address_of(connection: HTTPConnection) -> str:
    return connection.client.host if connection.client else "unknown"


def _token_of(headers: Headers) -> str:
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    return bearer.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")


def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
