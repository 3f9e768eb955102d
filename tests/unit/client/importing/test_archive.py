"""Archives of logs, with bounds on what they unpack to."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from tests.unit.client.importing.inspect_logs import SAMPLES, read, zstandard
from tests.unit.client.logs import header
from touchstone_client.importing.archive import Archive


def test_archives_as_inspect_packs_them_are_read(tmp_path: Path) -> None:
    packed = {"samples/1_epoch_1.json": json.dumps(SAMPLES[0]).encode(), "header.json": json.dumps(header()).encode()}
    assert [sample.answer.response for sample in read(zstandard(tmp_path / "log.eval", packed))] == ["Answer: yes"]


@pytest.mark.parametrize("size", [None, 10])
def test_a_bomb_ends_at_the_bound_whatever_its_header_says(tmp_path: Path, size: int | None) -> None:
    zeros = b"0" * 50_000_000
    with zipfile.ZipFile(tmp_path / "deflated.eval", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("header.json", zeros)
    for file in (tmp_path / "deflated.eval", zstandard(tmp_path / "zstd.eval", {"header.json": zeros}, size)):
        opened = Archive(file, 1_000_000, 10_000_000)
        tracemalloc.start()
        with pytest.raises(ValueError, match="MB when unpacked"):
            opened.read("header.json")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        opened.close()
        assert peak < 10_000_000


def test_many_members_together_have_a_bound_too(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "many.eval", "w", zipfile.ZIP_DEFLATED) as made:
        for name in "abc":
            made.writestr(name, b"0" * 900_000)
    opened = Archive(tmp_path / "many.eval", 1_000_000, 2_000_000)
    assert [len(opened.read(name)) for name in "ab"] == [900_000, 900_000]
    with pytest.raises(ValueError, match="MB when unpacked"):
        opened.read("c")
    opened.close()
