"""The layers of every request: headers, size limit, errors as answers, identity, CSRF and rate limit. Outermost
first."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services import rpc
from services.bus import MOST_CALL_BYTES
from services.errors import AwayError, TouchstoneError
from services.gateway import context
from services.gateway.access.auth import TokenAccess, csrf_token, require_csrf, require_same_site
from services.gateway.access.oidc import BEGIN
from services.gateway.access.oidc_settings import CALLBACK

log = logging.getLogger(__name__)

API = ("/api/", "/admin/", "/v1/", "/openapi.json")
"""Paths with these beginnings are answered in JSON and count against the limit of requests."""
UPLOAD_PAGE, EXPERIMENT_FORM = "/datasets/upload", "/experiments/new"
UPLOADS = frozenset({"/admin/datasets/upload", "/admin/datasets/preview", "/v1/files", UPLOAD_PAGE, EXPERIMENT_FORM})
"""Paths whose handlers read the body as it comes, count it, and themselves check whether a session may send it."""
CHAT_CALL, RESPONSE_CALL = "/v1/chat/completions", "/v1/responses"
_OPEN_PATHS = ("/healthz", "/readyz")
_LOGIN_PATHS = ("/login", BEGIN, CALLBACK)
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
MAX_BODY_BYTES = 1024 * 1024
MAX_BODY_S = 60.0
_LEAST_BYTES, _LEVEL = 1024, 6
_NOT_TEXTS = (*DEFAULT_EXCLUDED_CONTENT_TYPES, "application/octet-stream", "application/vnd.apache.parquet")
EXPERIMENT_RUN, MOST_DEFINITION_BYTES = "/api/bench/run", 3_000_000
_LARGER = {CHAT_CALL: MOST_CALL_BYTES, RESPONSE_CALL: MOST_CALL_BYTES, EXPERIMENT_RUN: MOST_DEFINITION_BYTES}
"""Bodies that may hold images, or scenarios and templates."""

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}

Answer = Callable[[HTTPConnection, Exception], Awaitable[Response]]


class SecurityHeaders:
    """Adds the headers that every answer carries; pages and API answers are not cached."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self.app(scope, receive, with_headers)


class Compression:
    """Sends texts with gzip, but not to a page of another site. Such a page could put a guess into the address, and the
    length of the answer would tell how much of a form's token it guessed."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.compressed = GZipMiddleware(app, _LEAST_BYTES, _LEVEL, exclude_content_types=_NOT_TEXTS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        site = Headers(scope=scope).get("sec-fetch-site") if scope["type"] == "http" else None
        app = self.app if site in ("cross-site", "same-site") else self.compressed
        await app(scope, receive, send)


class Errors:
    """Answers what the rest raises. Unexpected errors are logged once, and their text is not sent."""

    def __init__(self, app: ASGIApp, answer: Answer) -> None:
        self.app = app
        self.answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except ClientDisconnect:
            return  # in the middle of its body: nobody is left to answer
        except Exception as error:
            if not isinstance(error, TouchstoneError | HTTPException):
                log.exception("unexpected error in %s %s", scope["method"], scope["path"])
            if started and isinstance(error, TouchstoneError):
                # The server closes the connection of an incomplete answer, so that it does not look complete.
                log.warning("%s %s ended before its answer was complete: %s", scope["method"], scope["path"], error)
                return
            if started:
                raise
            response = await self.answer(HTTPConnection(scope), error)
            await response(scope, receive, send)


class BodyLimit:
    """Refuses bodies above the cap with 413, by their stated length or as they arrive, and those that take longer than
    `most_s` seconds with 408. Uploads have their own limits."""

    def __init__(self, app: ASGIApp, most: int = MAX_BODY_BYTES, most_s: float = MAX_BODY_S) -> None:
        self.app = app
        self.most = most
        self.most_s = most_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in UPLOADS:
            await self.app(scope, receive, send)
            return
        most = _LARGER.get(scope["path"], self.most)
        stated = Headers(scope=scope).get("content-length", "0")
        if stated.isdecimal() and int(stated) > most:
            raise _refusal(most)
        size = 0
        whole = False
        ends = asyncio.get_running_loop().time() + self.most_s

        async def counted() -> Message:
            nonlocal size, whole
            # After the body, this waits for the client's disconnect as long as the answer takes.
            try:
                async with asyncio.timeout_at(None if whole else ends):
                    message = await receive()
            except TimeoutError as error:
                raise HTTPException(408, f"The body did not arrive within {self.most_s:g} seconds.") from error
            whole = whole or not message.get("more_body", False)
            size += len(message.get("body", b""))
            if size > most:
                raise _refusal(most)
            return message

        await self.app(scope, counted, send)


def _refusal(most: int) -> HTTPException:
    return HTTPException(413, f"The body has more than {most // 1024} KiB, the most allowed.")


class Access:
    """Identifies the caller, checks the CSRF token of sessions, and counts API requests."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _OPEN_PATHS or scope["path"].startswith("/static/"):
            await self.app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        ctx = context.of(connection)
        if scope["path"] in _LOGIN_PATHS and ctx.access.sessions is not None:
            # The provider, another site, sends browsers to the callback, whose state is checked instead.
            if scope["path"] == "/login":
                require_same_site(connection, evidence=True)
            await self.app(scope, receive, send)
            return
        try:
            caller = await ctx.access(connection)
        except AwayError as error:
            raise ctx.backend.room.reason(error) from error
        # Marks are taken before anything is read for a page: what changes meanwhile is then asked for again.
        scope.setdefault("state", {}).update(caller=caller, marks=ctx.pulse.marks)
        if scope["path"].startswith(API):
            ctx.window.admit(caller.identity.user)
        if caller.session and scope["method"] not in _SAFE_METHODS and scope["path"] not in UPLOADS:
            body = await _read(receive)
            require_csrf(caller, csrf_token(connection.headers, body))
            receive = _replay(body, receive)
        access = ctx.access
        if not isinstance(access, TokenAccess):
            await self.app(scope, receive, send)
            return
        # A revoked token ends what it has begun: live pages, waiting reads, uploads, exports.
        async with rpc.while_valid(lambda: access.recheck(connection)):
            await self.app(scope, receive, send)


async def _read(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def replayed() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed
