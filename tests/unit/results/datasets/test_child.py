"""The process that reads an upload."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from services.errors import InvalidRequestError, TouchstoneError, UnavailableError
from services.results.datasets import child
from services.results.datasets.frames import Limits
from tests.unit.results.datasets.children import run
from tests.unit.results.uploads import jsonl, upload
from touchstone.v1.dataset_pb2 import Dataset, DatasetOptions


def test_the_child_gives_what_the_reader_gives() -> None:
    data = jsonl(*({"prompt": f"q{i}", "reference": i} for i in range(1500)))

    assert run([data]).outcome == upload(data)


def test_the_child_ends_at_once_when_it_refuses() -> None:
    def pieces() -> Iterator[bytes]:
        while True:
            yield b'{"prompt": "a"}\n' * 10_000

    assert "more than 5 rows" in run(pieces(), limits=Limits(rows=5)).outcome.refused


@pytest.mark.parametrize(
    ("ends", "error"),
    [("os.abort()", InvalidRequestError), ("os._exit(3)", UnavailableError)],
)
async def test_a_child_that_its_file_ends_refuses_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ends: str, error: type[TouchstoneError]
) -> None:
    """Packages that are not in Python end with a signal for some files. Otherwise the service is to blame."""
    without_core = "import os, resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))"
    (tmp_path / "ending.py").write_text(f"{without_core}; {ends}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(child, "_MODULE", "ending")

    async def pieces() -> AsyncIterator[bytes]:
        yield b"PAR1"

    with pytest.raises(error):
        await child.preview(DatasetOptions(name="a"), pieces(), Limits(), 30)


async def test_a_preview_comes_from_the_child() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b'[{"question": "a", "answer": "b"}]'

    found = await child.preview(DatasetOptions(name="a"), pieces(), Limits(), 30)

    assert (found.rows_found, found.dataset.format) == (1, Dataset.FORMAT_QUESTION_ANSWER)


def test_an_element_of_a_hundred_megabytes_takes_little_memory() -> None:
    def pieces() -> Iterator[bytes]:
        yield b'[{"prompt": "'
        for _ in range(100):
            yield b"a" * 1_000_000
        yield b'"}, {"prompt": "b"}]'

    made = run(pieces())

    assert "more than 2,097,152 bytes" in made.outcome.reasons[1]
    assert made.megabytes < 100
