"""Where an answer's text should be stands something else: the call failed, as an empty answer would be scored."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import pytest

from services.evaluator.providers.protocol.provider import ProviderError
from tests.unit.evaluator import wire_answers as wires
from tests.unit.evaluator.wire_answers import ANSWER, Raw, Session

KINDS = [kind for kind in wires.WHOLE if kind != "http"]
"""An application may answer with a number, which is its text."""
LIES: tuple[Any, ...] = (12, Raw("NaN"), True, [1], "text")


def leading(document: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every place on the way to a piece of the answer, with what stands there."""
    if isinstance(document, str):
        if document and document in ANSWER:
            yield place, document
        return
    inner = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    found = [pair for name, held in inner for pair in leading(held, (*place, name))]
    if found:
        yield place, document
        yield from found


def lied(document: Any) -> Iterator[Any]:
    for place, value in leading(document):
        for lie in LIES:
            if place and not (isinstance(value, str) and type(lie) is str):
                yield wires.changed(document, place, lie)


def outcome(kind: str, body: bytes, *, stream: bool) -> Any:
    """What becomes of an answer, after a listing that was right."""
    session = Session(wires.written(wires.LISTED[kind]))
    provider = wires.provider(kind, session)

    async def ask() -> Any:
        await provider.list_models()
        if kind == "ollama":
            cast(Any, provider)._windows[wires.MODEL] = 4096  # Else it asks, and gets the answer.
        session.body = body
        session.kind = wires.STREAM_TYPE.get(kind, "text/event-stream") if stream else "application/json"
        try:
            return await provider.generate(wires.request(stream=stream))
        except ProviderError as error:
            return error

    return asyncio.run(ask())


@pytest.mark.parametrize("kind", KINDS)
def test_of_a_whole_answer(kind: str) -> None:
    documents = list(lied(wires.WHOLE[kind]))
    assert len(documents) >= 9
    for document in documents:
        found = outcome(kind, wires.written(document), stream=False)
        assert isinstance(found, ProviderError), document
        assert found.retryable, document


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in wires.STREAMED])
def test_of_a_streamed_answer(kind: str) -> None:
    frame = wires.ndjson if kind == "ollama" else wires.sse
    events = wires.STREAMED[kind]
    assert outcome(kind, frame(events), stream=True).text == ANSWER
    for place, event in enumerate(events):
        for changed in [12, Raw("NaN"), "text", [1], *lied(event)]:
            if kind == "grok" and isinstance(changed, dict) and changed.get("type") != "response.completed":
                continue  # Its last event carries the whole answer.
            found = outcome(kind, frame([*events[:place], changed, *events[place + 1 :]]), stream=True)
            assert isinstance(found, ProviderError), changed
            assert found.retryable, changed


@pytest.mark.parametrize("kind", KINDS)
def test_null_is_an_empty_answer(kind: str) -> None:
    place = next(place for place, value in leading(wires.WHOLE[kind]) if value == ANSWER)
    found = outcome(kind, wires.written(wires.changed(wires.WHOLE[kind], place, None)), stream=False)
    assert found.text == ""
