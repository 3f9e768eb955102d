"""Browser sessions: an opaque id in a cookie, and the session itself in a NATS bucket under the id's hash."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable
from dataclasses import asdict, dataclass
from typing import TypeVar

import nats.errors
from starlette.requests import HTTPConnection
from starlette.responses import Response

from services import bus, rpc
from services.errors import AwayError
from touchstone.v1 import token_pb2

T = TypeVar("T")
LIFETIME_S = 7 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Session:
    """Who signed in, with which token (its digest only), and the CSRF token of the session's forms."""

    user: str
    role: token_pb2.Role
    csrf: str
    token_digest: str


class Sessions:
    """Sessions in the SESSIONS bucket, which forgets them after a week."""

    def __init__(self, nats_bus: bus.Bus) -> None:
        self._bus = nats_bus

    async def start(self, identity: rpc.Identity, token: str) -> str:
        """Stores a new session and returns its id, which only the browser keeps."""
        session_id = secrets.token_urlsafe(32)
        session = Session(identity.user, identity.role, secrets.token_urlsafe(24), rpc.token_digest(token))
        value = json.dumps(asdict(session)).encode()
        await within(self._bus.kv_put(bus.SESSIONS, rpc.token_digest(session_id), value), "session store")
        return session_id

    async def read(self, session_id: str) -> Session | None:
        msg = await within(self._bus.kv_get(bus.SESSIONS, rpc.token_digest(session_id)), "session store")
        return Session(**json.loads(msg.data)) if msg and msg.data else None

    async def end(self, session_id: str) -> None:
        await within(self._bus.kv_delete(bus.SESSIONS, rpc.token_digest(session_id)), "session store")

    def id_of(self, connection: HTTPConnection) -> str:
        return connection.cookies.get(_cookie_name(connection), "")

    def set_cookie(self, connection: HTTPConnection, response: Response, session_id: str) -> None:
        """`__Host-` needs HTTPS; on a plain connection the name has no prefix."""
        response.set_cookie(
            _cookie_name(connection),
            session_id,
            max_age=LIFETIME_S,
            path="/",
            secure=connection.url.scheme == "https",
            httponly=True,
            samesite="lax",
        )

    def clear_cookie(self, connection: HTTPConnection, response: Response) -> None:
        response.delete_cookie(
            _cookie_name(connection), path="/", secure=connection.url.scheme == "https", httponly=True, samesite="lax"
        )


def _cookie_name(connection: HTTPConnection) -> str:
    return "__Host-touchstone" if connection.url.scheme == "https" else "touchstone"


async def within(work: Awaitable[T], store: str, timeout_s: float = 3) -> T:
    """The answer of a NATS bucket. Raises AwayError, naming the store, when NATS is silent."""
    try:
        async with asyncio.timeout(timeout_s):
            return await work
    except (nats.errors.Error, TimeoutError) as error:
        raise AwayError(f"The {store} (NATS) does not answer. Try again in a moment.") from error
