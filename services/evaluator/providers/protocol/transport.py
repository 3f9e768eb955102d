"""The only HTTP module: a JSON request to one endpoint, with every failure as ProviderError.

It uses aiohttp, because only aiohttp reached the rate of a bare loop at 16 calls at a time and more (decision 8 in
docs/decisions). It sets no limit on connections: the endpoint's slots do. No redirects, no proxies from the
environment, no cookies: a provider's answer must not choose where a key is sent.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp

from services import numbers
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.providers.protocol.events import EventLines, Fold
from services.evaluator.providers.protocol.provider import Heard, ProviderError
from services.evaluator.providers.protocol.receiving import ROOM, Share
from services.evaluator.providers.protocol.usage import MalformedError, parsed

CONNECT_S = 5.0
MAX_BODY_BYTES = 8 * 1024 * 1024
# On the wire: an event carries some 300 bytes around a token of 4. The kept part has the bound of a whole answer.
MAX_STREAM_BYTES = 64 * 1024 * 1024
AGAIN = "Check its log or status page, then retry."
# Made once: `json.dumps` with options makes an encoder for each value.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_STREAMS = ("text/event-stream", "application/x-ndjson")
# Shorter than the 5 s after which uvicorn (vLLM, litellm) closes an idle connection: a POST on a closed one fails.
_KEEP_ALIVE_S = 4.0


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer. `latency_ms` runs from sending to the last byte; `body` is None when it is not JSON.

    Headers are looked up in lower case. `ttft_ms` runs to the first text of a streamed answer; 0 for others.
    """

    status: int
    headers: Mapping[str, str]
    body: Any
    text: str
    latency_ms: float
    ttft_ms: float = 0.0

    @property
    def error_text(self) -> str:
        """The provider's own message, wherever it puts it; at most 300 characters, without the final full stop."""
        found: Any = self.body
        for _ in range(4):
            if not isinstance(found, dict):
                break
            found = next((found[key] for key in ("error", "message", "detail") if found.get(key)), None)
        words = found if isinstance(found, str) else "" if self.body is not None else self.text
        return " ".join(words.split())[:300].rstrip(".")

    @property
    def error_code(self) -> str:
        """The provider's code for the error, such as "insufficient_quota"; empty when it gives none."""
        if not isinstance(self.body, dict):
            return ""
        error = self.body.get("error")
        # xAI puts the code next to an error that is a text.
        where = error if isinstance(error, dict) else self.body if isinstance(error, str) else {}
        code = where.get("code") or where.get("type")
        return str(code) if isinstance(code, str | int | float) else ""

    @property
    def retry_after_s(self) -> float | None:
        """What `retry-after-ms` or `Retry-After` (seconds or a date) ask for; None for more than a day."""
        try:
            if "retry-after-ms" in self.headers:
                seconds = float(self.headers["retry-after-ms"]) / 1000
            elif "retry-after" in self.headers:
                seconds = _seconds(self.headers["retry-after"])
            else:
                return None
        except (ValueError, TypeError, OverflowError, IndexError):
            return None
        return numbers.real(seconds, 0.0, numbers.MOST_WAIT_S)


@dataclass(slots=True)
class _Stream:
    """One streamed answer while it arrives."""

    fold: Fold
    heard: Heard | None = None
    ttft_ms: float = 0.0


class Transport:
    """Calls to one endpoint over kept connections. `hint` says what a user can do when it does not answer.

    In errors, "[key]" replaces `secret`, the key among `headers`.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        address: str,
        hint: str,
        *,
        headers: Mapping[str, str] | None = None,
        secret: str = "",
        timeout_s: float = 300.0,
        first_byte_s: float = 0.0,
        max_body_bytes: int = 0,
    ) -> None:
        self._name = name
        self._base_url = base_url
        self._address = address
        self._hint = hint
        self._secret = secret
        self._max_body_bytes = max_body_bytes or MAX_BODY_BYTES
        self._headers = {"Accept": "application/json", "Accept-Encoding": "identity", **(headers or {})}
        self._timeout = aiohttp.ClientTimeout(
            total=timeout_s, connect=None, sock_connect=CONNECT_S, sock_read=first_byte_s or None
        )
        self._session: aiohttp.ClientSession | None = None

    @classmethod
    def to(
        cls,
        endpoint: Endpoint,
        hint: str,
        *,
        headers: Mapping[str, str] | None = None,
        max_body_bytes: int = 0,
    ) -> Transport:
        """To a configured endpoint, with its key as a bearer token unless `headers` carry it."""
        if headers is None:
            headers = {"Authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}
        return cls(
            endpoint.name,
            endpoint.base_url,
            endpoint.address,
            hint,
            headers=headers,
            secret=endpoint.api_key,
            timeout_s=endpoint.timeout_s,
            first_byte_s=endpoint.first_byte_s,
            max_body_bytes=max_body_bytes,
        )

    async def get(self, path: str, *, timeout_s: float = 10.0) -> Reply:
        """Raises ProviderError."""
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=min(CONNECT_S, timeout_s))
        return await self._call("GET", path, None, timeout)

    async def post(
        self, path: str, body: Mapping[str, Any], shared: bytes = b"", *, timeout_s: float | None = None
    ) -> Reply:
        """`shared` are further members of the body, as `encoded` gives them. Raises ProviderError. Cancelling closes
        the connection at once."""
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_S) if timeout_s else self._timeout
        return await self._call("POST", path, _written(body, shared), timeout)

    async def send(self, path: str, data: bytes, content_type: str, *, timeout_s: float) -> Reply:
        """Posts bytes as they are. Raises ProviderError."""
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_S)
        return await self._call("POST", path, data, timeout, content_type=content_type)

    async def download(self, path: str, take: Callable[[bytes], Awaitable[None]], *, timeout_s: float) -> Reply:
        """Hands over a file of any length line by line; the reply has no body. Lines longer than the limit of an answer
        are left out. Raises ProviderError, also when the file breaks off."""
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_S)
        return await self._call("GET", path, None, timeout, take=take)

    async def stream(
        self,
        path: str,
        body: Mapping[str, Any],
        fold: Fold,
        heard: Heard | None = None,
        shared: bytes = b"",
    ) -> Reply:
        """A streamed answer as one reply: its `body` is what `fold` makes of the events; `ttft_ms` is the time of the
        first event with a token. `heard` also gets each event. An answer that is not a stream is read as by `post`.

        Raises ProviderError, also when the stream breaks off.
        """
        return await self._call("POST", path, _written(body, shared), self._timeout, _Stream(fold, heard))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _call(
        self,
        method: str,
        path: str,
        data: bytes | None,
        limits: aiohttp.ClientTimeout,
        stream: _Stream | None = None,
        take: Callable[[bytes], Awaitable[None]] | None = None,
        content_type: str = "application/json",
    ) -> Reply:
        with ROOM.share(self._name) as share:
            return await self._exchange(method, path, data, limits, stream, take, content_type, share)

    async def _exchange(
        self,
        method: str,
        path: str,
        data: bytes | None,
        limits: aiohttp.ClientTimeout,
        stream: _Stream | None,
        take: Callable[[bytes], Awaitable[None]] | None,
        content_type: str,
        share: Share,
    ) -> Reply:
        headers = {"Content-Type": content_type} if data is not None else None
        started = time.monotonic()
        try:
            async with self._open().request(
                method, self._base_url + path, data=data, headers=headers, timeout=limits, allow_redirects=False
            ) as response:
                status, sent = response.status, response.headers
                if stream is not None and status == 200 and response.content_type in _STREAMS:
                    return await self._follow(response, stream, started, share)
                if take is not None and status == 200:
                    await self._each_line(response, take)
                    return Reply(status, sent, None, "", (time.monotonic() - started) * 1000)
                raw = await self._read(response, share)
        except (aiohttp.ClientError, OSError) as error:
            # The answer refers to its error, whose traceback refers to the answer with everything received so far.
            raise self._translate(error) from error.with_traceback(None)
        latency_ms = (time.monotonic() - started) * 1000
        if 300 <= status < 400:
            raise ProviderError(
                f"{self._name} answers at {self._address} with a redirect, which is not followed. "
                "Set base_url to its final address.",
                fatal=True,
            )
        text = raw.decode("utf-8", "replace")
        body = parsed(text)
        if status >= 400 or (isinstance(body, dict) and bool(body.get("error"))):
            text, body = self._without_key(text, body)
        return Reply(status, sent, body, text, latency_ms)

    def _without_key(self, text: str, body: Any) -> tuple[str, Any]:
        """Some servers repeat the key in their errors, whose text goes into logs, reasons and databases."""
        if not self._secret or self._secret not in text:
            return text, body
        text = text.replace(self._secret, "[key]")
        return text, parsed(text)

    async def _follow(self, response: aiohttp.ClientResponse, stream: _Stream, started: float, share: Share) -> Reply:
        lines = EventLines(self._name, lines=response.content_type != "text/event-stream")
        size = 0
        async for chunk in response.content.iter_any():
            size += len(chunk)
            if size > MAX_STREAM_BYTES:
                response.close()
                raise self._too_long(MAX_STREAM_BYTES)
            for text in lines.feed(chunk):
                await self._take(text, stream, started)
            if stream.fold.size > self._max_body_bytes:
                response.close()
                raise self._too_long(self._max_body_bytes)
            await share.fit(lines.size + stream.fold.size)
        for text in lines.end():
            await self._take(text, stream, started)
        latency_ms = (time.monotonic() - started) * 1000
        return Reply(response.status, response.headers, stream.fold.whole(), "", latency_ms, stream.ttft_ms)

    async def _take(self, text: str, stream: _Stream, started: float) -> None:
        if text == "[DONE]":
            return
        event = parsed(text)
        if event is None:
            sentence = f"{self._name} cut an answer short: an event is not whole JSON. {AGAIN}"
            raise ProviderError(sentence, retryable=True)
        if '"error"' in text:
            _, event = self._without_key(text, event)
        try:
            brings_token = stream.fold.add(event)
        except MalformedError as error:
            sentence = f"{self._name} sent an answer {error}. {AGAIN}"
            raise ProviderError(sentence, retryable=True) from None
        if brings_token and not stream.ttft_ms:
            stream.ttft_ms = (time.monotonic() - started) * 1000
        if stream.heard is not None:
            await stream.heard(event)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S, ttl_dns_cache=30),
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=self._timeout,
                trust_env=False,
            )
        return self._session

    async def _read(self, response: aiohttp.ClientResponse, share: Share) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while chunk := await response.content.readany():
            size += len(chunk)
            if size > self._max_body_bytes:
                response.close()
                raise self._too_long(self._max_body_bytes)
            await share.fit(size)
            chunks.append(chunk)
        return b"".join(chunks)

    async def _each_line(self, response: aiohttp.ClientResponse, take: Callable[[bytes], Awaitable[None]]) -> None:
        pieces: list[bytes] = []
        size = 0
        async for chunk in response.content.iter_any():
            *ends, rest = chunk.split(b"\n")
            for end in ends:
                if size + len(end) <= MAX_BODY_BYTES:
                    await take(b"".join((*pieces, end)))
                pieces.clear()
                size = 0
            size += len(rest)
            if size <= MAX_BODY_BYTES:
                pieces.append(rest)
        if 0 < size <= MAX_BODY_BYTES:
            await take(b"".join(pieces))

    def _too_long(self, most: int) -> ProviderError:
        return ProviderError(f"{self._name} sent an answer of more than {most // 2**20} MiB. Lower max_tokens.")

    def _translate(self, error: BaseException) -> ProviderError:
        for kind, text, unreachable in _FAILURES:
            if isinstance(error, kind):
                sentence = text.format(name=self._name, address=self._address, hint=self._hint)
                # Without a connection nothing was sent.
                status = 504 if kind is TimeoutError else 0
                return ProviderError(sentence, retryable=True, unreachable=unreachable, free=unreachable, status=status)
        raise AssertionError(f"no sentence for {type(error).__name__}")


def _seconds(retry_after: str) -> float:
    """Raises ValueError, TypeError, OverflowError or IndexError."""
    if retry_after.strip().replace(".", "", 1).isdecimal():
        return float(retry_after)
    return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())


def encoded(members: Mapping[str, Any]) -> bytes:
    """JSON of members that many bodies share, without the braces."""
    return _encode(members)[1:-1].encode("utf-8", "replace")


def _written(body: Mapping[str, Any], shared: bytes) -> bytes:
    own = _encode(body).encode("utf-8", "replace")
    return b"%b,%b}" % (own[:-1], shared) if shared else own


# The first row that fits counts, so narrower kinds are above wider ones. The flag: the whole endpoint is away.
_FAILURES: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str, bool], ...] = (
    (
        (aiohttp.ClientSSLError, aiohttp.ServerFingerprintMismatch),
        "{name} at {address} has a certificate that is not trusted. Correct base_url or the certificate.",
        True,
    ),
    (
        aiohttp.ClientConnectorDNSError,
        "{name} cannot be reached: the host of {address} is unknown. Correct base_url in the endpoints file.",
        True,
    ),
    (
        (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError),
        "{name} does not answer at {address}. {hint}",
        True,
    ),
    (aiohttp.InvalidURL, "{name} cannot be reached at {address}. Correct base_url in the endpoints file.", True),
    (TimeoutError, "{name} did not finish an answer in time. Raise timeout_s or lower concurrency.", False),
    (aiohttp.ClientPayloadError, "{name} cut an answer short. " + AGAIN, False),
    (
        (aiohttp.ServerConnectionError, aiohttp.ClientOSError, OSError),
        "{name} closed the connection before it answered. " + AGAIN,
        False,
    ),
    (aiohttp.ClientError, "{name} did not answer with valid HTTP. Correct base_url in the endpoints file.", False),
)
