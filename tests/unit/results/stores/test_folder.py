"""A folder as a store: a file appears whole or not at all."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from services.results.stores.folder import Folder
from services.results.stores.store import read_bytes, write_bytes


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    store = Folder(tmp_path / "deep" / "store")
    with store.create("a/b/c") as file:
        file.write(b"one")
        assert store.names("a/b") == []
    assert (store.names("a/b"), store.folders("a"), read_bytes(store, "a/b/c")) == (["c"], ["b"], b"one")
    assert (tmp_path / "deep/store/a/b/c").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "deep/store/a/b").stat().st_mode & 0o777 == 0o700


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    store = Folder(tmp_path)
    write_bytes(store, "a", b"one")
    with suppress(ValueError), store.create("a") as file:
        file.write(b"tw")
        raise ValueError
    assert read_bytes(store, "a") == b"one"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_is_missing_is_empty_and_what_is_removed_is_gone(tmp_path: Path) -> None:
    store = Folder(tmp_path)
    assert (store.names("x"), store.folders("x")) == ([], [])
    store.remove_folder("x")
    write_bytes(store, "x/y/z", b"")
    store.remove_folder("x")
    assert store.folders("") == []
    with pytest.raises(FileNotFoundError):
        read_bytes(store, "x/y/z")
