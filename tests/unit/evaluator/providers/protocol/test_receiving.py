"""Streamed answers are folded as they come, and all answers together have one bound."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from typing import Any, cast

import pytest

from services.evaluator.providers.protocol import receiving
from services.evaluator.providers.protocol.provider import ProviderError
from services.evaluator.providers.protocol.receiving import SMALL_BYTES, Room
from tests.unit.evaluator import wire_answers as wires
from tests.unit.evaluator.wire_answers import Session

MB = 2**20
PIECE = "word "
PIECES = 8_000


def long_stream(kind: str) -> bytes:
    """An answer in many small events, each about as large as on a real wire."""
    first, *_, last = wires.STREAMED[kind]
    beside = {"id": "x" * 200}
    pieces: dict[str, dict[str, Any]] = {
        "openai": {"choices": [{"index": 0, "delta": {"content": PIECE}}]},
        "gemini": {"candidates": [{"content": {"parts": [{"text": PIECE}]}}]},
        "anthropic": {"type": "content_block_delta", "index": 0, "delta": {"text": PIECE}},
        "ollama": {"message": {"content": PIECE}, "done": False},
        "grok": {"type": "response.output_text.delta", "delta": PIECE},
    }
    ends = {"openai": wires.STREAMED[kind][1:], "anthropic": wires.STREAMED[kind][-2:]}
    events = [first, *[pieces[kind] | beside] * PIECES, *ends.get(kind, [last])]
    return wires.ndjson(events) if kind == "ollama" else wires.sse(events)


@pytest.mark.parametrize("kind", wires.STREAMED)
def test_a_streamed_answer_takes_what_its_text_takes(kind: str) -> None:
    body = long_stream(kind)
    assert len(body) > 1.5 * MB
    session = Session(wires.written(wires.LISTED[kind]), piece=65536)
    provider = wires.provider(kind, session)
    asyncio.run(provider.list_models())
    if kind == "ollama":
        cast(Any, provider)._windows[wires.MODEL] = 4096  # Else it asks, and gets the same long answer.
    session.body, session.kind = body, wires.STREAM_TYPE.get(kind, "text/event-stream")
    tracemalloc.start()
    try:
        found = asyncio.run(provider.generate(wires.request(stream=True)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.text.count(PIECE) == (0 if kind == "grok" else PIECES)
    assert peak < len(body) / 2, f"{peak / len(body):.1f} times the bytes on the wire"


def test_usual_answers_never_count() -> None:
    async def read() -> None:
        room = Room(most_bytes=0)
        shares = [room.share("e") for _ in range(1000)]
        for share in shares:
            await share.fit(SMALL_BYTES)
        assert room.held_bytes == 0

    asyncio.run(read())


def test_answers_beyond_the_limit_wait_and_the_oldest_goes_on() -> None:
    async def read() -> None:
        room = Room(most_bytes=4 * MB)
        most = 0
        ended: list[int] = []

        async def answer(number: int) -> None:
            nonlocal most
            with room.share("e") as share:
                for size in range(0, 3 * MB + 1, MB // 4):
                    await share.fit(size)
                    most = max(most, room.held_bytes)
                    await asyncio.sleep(0)
            ended.append(number)

        async with asyncio.timeout(30):
            await asyncio.gather(*map(answer, range(10)))
        assert sorted(ended) == list(range(10)), "none is blocked by the others"
        assert ended[0] == 0
        assert most <= 7 * MB, "the limit and one answer more"
        assert room.held_bytes == 0

    asyncio.run(read())


def test_an_answer_that_finds_no_room_for_long_fails_and_may_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "WAIT_S", 0.05)

    async def read() -> ProviderError:
        room = Room(most_bytes=MB)
        with room.share("first") as first:
            await first.fit(4 * MB)
            with room.share("second") as second, pytest.raises(ProviderError) as caught:
                await second.fit(MB)
        assert room.held_bytes == 0
        with room.share("third") as third:
            await third.fit(MB)
        return caught.value

    error = asyncio.run(read())
    assert error.retryable
    assert error.message.startswith("second sends answers that together are too large to read")
    assert "TOUCHSTONE_RECEIVE_MAX_BYTES" in error.message


def test_a_cancelled_call_leaves_no_bytes_behind() -> None:
    async def read() -> None:
        room = Room(most_bytes=MB)

        async def answer() -> None:
            with room.share("e") as share:
                await share.fit(4 * MB)
                await asyncio.Event().wait()

        calls = [asyncio.create_task(answer()) for _ in range(3)]
        await asyncio.sleep(0.01)
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)
        assert room.held_bytes == 0
        with room.share("e") as share:
            await share.fit(4 * MB)

    asyncio.run(read())


def test_calls_use_the_room_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "WAIT_S", 0.05)
    monkeypatch.setattr(receiving.ROOM, "most_bytes", MB)
    long = wires.changed(wires.WHOLE["openai"], ("choices", 0, "message", "content"), "x" * 3 * MB)
    provider = wires.provider("openai", Session(json.dumps(long).encode(), piece=65536))

    async def read() -> None:
        with receiving.ROOM.share("other") as other:
            await other.fit(2 * MB)
            with pytest.raises(ProviderError, match="together are too large to read"):
                await provider.generate(wires.request())
        assert len((await provider.generate(wires.request())).text) == 3 * MB

    asyncio.run(read())
