"""Every failure of HTTP becomes a sentence."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from email.utils import formatdate
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from deploy.local.ports import free_port
from services.evaluator.providers.protocol import transport
from services.evaluator.providers.protocol.provider import ProviderError
from services.evaluator.providers.protocol.transport import Reply, Transport

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def calling(
    handler: Handler, timeout_s: float = 5.0, first_byte_s: float = 0.0, secret: str = ""
) -> AsyncIterator[Transport]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    client = Transport(
        "stub",
        f"http://127.0.0.1:{port}",
        f"127.0.0.1:{port}",
        "Start it.",
        secret=secret,
        timeout_s=timeout_s,
        first_byte_s=first_byte_s,
    )
    try:
        yield client
    finally:
        await client.close()
        await runner.cleanup()


async def failure(client: Transport) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await client.post("/x", {})
    return caught.value


async def test_a_refused_connection_is_unreachable_and_says_where() -> None:
    port = free_port()
    client = Transport("ollama", f"http://127.0.0.1:{port}", f"127.0.0.1:{port}", "Start it with `ollama serve`.")
    error = await failure(client)
    await client.close()
    assert error.message == f"ollama does not answer at 127.0.0.1:{port}. Start it with `ollama serve`."
    assert error.unreachable
    assert error.retryable


async def test_an_unknown_host_is_unreachable() -> None:
    client = Transport("stub", "http://no-such-host.invalid", "no-such-host.invalid", "Start it.")
    error = await failure(client)
    await client.close()
    assert "the host of no-such-host.invalid is unknown" in error.message
    assert error.unreachable


@pytest.mark.parametrize("first_byte_s", [0.0, 0.2])
async def test_silence_ends_at_the_time_limit(first_byte_s: float) -> None:
    async def hang(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(600)
        raise AssertionError

    async with calling(hang, timeout_s=600.0 if first_byte_s else 0.2, first_byte_s=first_byte_s) as client:
        started = time.monotonic()
        error = await failure(client)
        assert time.monotonic() - started < 60
    assert "did not finish an answer in time" in error.message
    assert error.retryable
    assert not error.unreachable


async def test_a_reset_connection_is_retryable() -> None:
    async def reset(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async with calling(reset) as client:
        error = await failure(client)
    assert error.message == "stub closed the connection before it answered. Check its log or status page, then retry."
    assert error.retryable


async def test_a_body_shorter_than_announced_is_retryable() -> None:
    async def short(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b"{")
        assert request.transport is not None
        request.transport.abort()
        return response

    async with calling(short) as client:
        error = await failure(client)
    assert error.message == "stub cut an answer short. Check its log or status page, then retry."
    assert error.retryable


async def test_a_broken_answer_is_not_kept_until_garbage_is_collected() -> None:
    piece = b"x" * 500_000

    async def broken(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000000"})
        await response.prepare(request)
        await response.write(piece)
        assert request.transport is not None
        request.transport.close()
        return response

    async with calling(broken) as client:
        await failure(client)
        gc.disable()
        tracemalloc.start()
        try:
            for _ in range(4):
                assert (await failure(client)).message.startswith("stub cut an answer short.")
            await asyncio.sleep(0.05)
            assert tracemalloc.get_traced_memory()[0] < len(piece)
        finally:
            tracemalloc.stop()
            gc.enable()


async def test_redirects_are_not_followed() -> None:
    seen: list[str] = []

    async def redirect(request: web.Request) -> web.StreamResponse:
        seen.append(request.path)
        raise web.HTTPTemporaryRedirect("http://169.254.169.254/secret")

    async with calling(redirect) as client:
        error = await failure(client)
    assert error.fatal
    assert "redirect" in error.message
    assert seen == ["/x"]


async def test_an_answer_beyond_the_cap_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_BODY_BYTES", 2**20)

    async def large(request: web.Request) -> web.StreamResponse:
        return web.Response(body=b" " * 2**21)

    async with calling(large) as client:
        error = await failure(client)
    assert error.message == "stub sent an answer of more than 1 MiB. Lower max_tokens."


async def test_cancelling_closes_the_connection_at_once() -> None:
    reached, ended = asyncio.Event(), asyncio.Event()

    async def hang(request: web.Request) -> web.StreamResponse:
        reached.set()
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()
        raise AssertionError

    async with calling(hang) as client:
        call = asyncio.create_task(client.post("/x", {}))
        await reached.wait()
        call.cancel()
        await asyncio.wait_for(ended.wait(), 60)


async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")

    async def fine(request: web.Request) -> web.StreamResponse:
        return web.json_response({"ok": True})

    async with calling(fine) as client:
        assert (await client.post("/x", {})).body == {"ok": True}


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        # Far ahead: minutes may pass between collecting this test and running it.
        ({"retry-after": formatdate(time.time() + 86_400, usegmt=True)}, pytest.approx(86_400, abs=3_600)),
        ({"retry-after": "soon"}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert Reply(429, headers, None, "", 0).retry_after_s == seconds


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"error": {"message": "a  b", "code": "c"}}, "a b"),
        ({"error": "plain"}, "plain"),
        ({"message": "m"}, "m"),
        ({"detail": "d"}, "d"),
        ({"object": "error"}, ""),
        (None, "<html>gateway</html>"),
    ],
)
def test_the_providers_words_are_found_where_it_puts_them(body: object, text: str) -> None:
    assert Reply(500, {}, body, "<html>gateway</html>", 0).error_text == text


def test_every_error_of_aiohttp_has_a_sentence() -> None:
    """A new exception upstream must fail here and not in a job."""
    client = Transport("stub", "http://h", "h", "Start it.")
    kinds: list[type[Exception]] = [aiohttp.ClientError]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())
    for kind in [*kinds, TimeoutError, OSError, ConnectionResetError]:
        error = client._translate(kind.__new__(kind))
        assert error.message.startswith("stub ")
        assert error.retryable


def streaming(*pieces: bytes, kind: str = "text/event-stream", pause_s: float = 0.0) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": kind})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            await asyncio.sleep(pause_s)
        await response.write_eof()
        return response

    return handler


async def stream(client: Transport) -> Reply:
    return await client.stream("/x", {}, Kept())


class Kept:
    """Keeps every event as it is."""

    def __init__(self) -> None:
        self.size = 0
        self.events: list[Any] = []

    def add(self, event: Any) -> bool:
        self.events.append(event)
        self.size += len(event.get("text", ""))
        return bool(event.get("text"))

    def whole(self) -> Any:
        return {"events": self.events}


@pytest.mark.parametrize(
    ("kind", "pieces"),
    [
        (
            "text/event-stream; charset=utf-8",
            (b'data: {"n": 1}\n\n', b'data: {"n": 2, "text": "a"}\n\ndata: [DONE]\n\n'),
        ),
        ("application/x-ndjson", (b'{"n": 1}\n{"n"', b': 2, "text": "a"}\n')),
    ],
)
async def test_a_stream_becomes_one_reply_with_the_time_of_its_first_text(kind: str, pieces: tuple[bytes, ...]) -> None:
    async with calling(streaming(*pieces, kind=kind, pause_s=0.05)) as client:
        reply = await stream(client)
    assert reply.body == {"events": [{"n": 1}, {"n": 2, "text": "a"}]}
    assert 40 < reply.ttft_ms <= reply.latency_ms


async def test_an_answer_that_is_no_stream_is_read_whole() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response({"error": "busy"}, status=503)

    async with calling(handler) as client:
        reply = await stream(client)
    assert (reply.status, reply.error_text, reply.ttft_ms) == (503, "busy", 0)


async def test_an_event_that_is_no_json_is_a_cut_answer() -> None:
    async with calling(streaming(b'data: {"n": 1}\n\ndata: {"n"\n\n')) as client:
        with pytest.raises(ProviderError, match="cut an answer short") as caught:
            await stream(client)
    assert caught.value.retryable


async def test_a_stream_that_is_too_large_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_STREAM_BYTES", 1000)
    async with calling(streaming(*[b'data: {"text": "a"}\n\n'] * 100)) as client:
        with pytest.raises(ProviderError, match="sent an answer of more than"):
            await stream(client)


async def test_what_is_kept_of_a_stream_has_the_bound_of_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_BODY_BYTES", 150)
    async with calling(streaming(*[b'data: {"text": "aa"}\n\n'] * 100)) as client:
        with pytest.raises(ProviderError, match="sent an answer of more than"):
            await stream(client)


async def test_a_key_within_an_error_of_a_stream_is_not_repeated() -> None:
    async with calling(streaming(b'data: {"error": {"message": "bad key sk-1"}}\n\n'), secret="sk-1") as client:
        reply = await stream(client)
    assert reply.body == {"events": [{"error": {"message": "bad key [key]"}}]}
