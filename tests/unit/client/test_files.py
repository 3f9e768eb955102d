"""Files that appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from touchstone_client.files import unfinished


def test_a_file_has_its_name_only_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    with unfinished(path) as file:
        file.write(b"a,b")
        assert not path.exists()
    assert path.read_bytes() == b"a,b"
    assert [*tmp_path.iterdir()] == [path]


def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    path.write_bytes(b"old")

    def broken() -> None:
        with unfinished(path) as file:
            file.write(b"new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        broken()
    assert path.read_bytes() == b"old"
    assert [*tmp_path.iterdir()] == [path]


def test_a_folder_that_is_not_there_is_told_with_the_name_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "absent" / "export.csv"
    with pytest.raises(FileNotFoundError) as refused, unfinished(path):
        pass
    assert refused.value.filename == str(path)
