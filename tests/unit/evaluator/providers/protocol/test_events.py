"""Streams are read the same however the network cuts them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.evaluator.providers.protocol import events
from services.evaluator.providers.protocol.events import EventLines
from services.evaluator.providers.protocol.provider import ProviderError

SENT = (
    b': a comment\r\n\r\nevent: message\r\ndata: {"a": 1}\r\nid: 7\r\n\r\n'
    b'data:{"b":\ndata: "caf\xc3\xa9"}\n\n\n\ndata: [DONE]\n\ndata: last'
)
READ = ['{"a": 1}', '{"b":\n"café"}', "[DONE]", "last"]


def read(chunks: list[bytes], *, lines: bool = False) -> list[str]:
    reader = EventLines("e", lines=lines)
    found = [event for chunk in chunks for event in reader.feed(chunk)]
    return [*found, *reader.end()]


@given(st.lists(st.integers(0, len(SENT))))
def test_any_cut_of_the_bytes_gives_the_same_events(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(SENT)]
    assert read([SENT[start:stop] for start, stop in itertools.pairwise(places)]) == READ


def test_one_json_text_a_line_needs_no_empty_line_between() -> None:
    assert read([b'{"a": 1}\n{"b"', b": 2}\r\n\n", b'{"c": 3}'], lines=True) == ['{"a": 1}', '{"b": 2}', '{"c": 3}']


def test_a_line_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_LINE_BYTES", 100)
    with pytest.raises(ProviderError, match="does not end"):
        read([b"data: " + b"x" * 60, b"x" * 60])
