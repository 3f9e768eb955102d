"""The process that reads an upload."""

from __future__ import annotations

from collections.abc import Iterator

from services.results.datasets.frames import Limits
from tests.unit.results.datasets.children import run
from tests.unit.results.uploads import jsonl, upload


def test_the_child_gives_what_the_reader_gives() -> None:
    data = jsonl(*({"prompt": f"q{i}", "reference": i} for i in range(1500)))

    assert run([data]).outcome == upload(data)


def test_the_child_ends_at_once_when_it_refuses() -> None:
    def pieces() -> Iterator[bytes]:
        while True:
            yield b'{"prompt": "a"}\n' * 10_000

    assert "more than 5 rows" in run(pieces(), limits=Limits(rows=5)).outcome.refused
