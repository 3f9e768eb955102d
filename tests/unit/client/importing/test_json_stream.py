"""JSON documents that are read member by member."""

from __future__ import annotations

import json
import tracemalloc
from io import BytesIO
from pathlib import Path

import pytest

from tests.unit.client.logs import header, inspected
from touchstone_client.importing import inspect
from touchstone_client.importing.json_stream import members


@pytest.mark.parametrize("text", ['{"a": 1, "samples": [1, {"b": "é𝔘"}, "x"], "z": null}', '{"samples": []}', "{}"])
def test_members_are_those_of_the_whole_document(text: str) -> None:
    for padding in (0, 1024 * 1024 - 20, 1024 * 1024 - 21, 1024 * 1024 - 22):
        found = list(members(BytesIO((" " * padding + text).encode()), "samples", 10_000_000))
        whole = json.loads(text)
        expected = [
            pair
            for name, value in whole.items()
            for pair in ([(name, each) for each in value] if name == "samples" else [(name, value)])
        ]
        assert found == expected


def test_a_long_document_is_read_sample_by_sample(tmp_path: Path) -> None:
    file = tmp_path / "log.json"
    with file.open("w") as opened:
        opened.write(json.dumps(header())[:-1] + ', "samples": [')
        for number in range(1, 401):
            opened.write(
                ("," if number > 1 else "") + json.dumps(inspected(number, "é" * 20_000, "y"), ensure_ascii=False)
            )
        opened.write("]}")
    tracemalloc.start()
    assert sum(1 for _ in inspect.read(file, None, None).samples()) == 400
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert file.stat().st_size > 16_000_000
    assert peak < 12_000_000


def test_a_value_beyond_any_measure_ends_the_reading() -> None:
    with pytest.raises(ValueError, match="a value is longer than"):
        list(members(BytesIO(b'{"a": "' + b"x" * 9_000_000), "samples", 2_000_000))
