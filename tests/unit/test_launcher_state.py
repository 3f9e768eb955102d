"""The launcher's own files, damaged, empty, or with a folder in their place: one sentence at most, and no traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.local.recovery import losses
from deploy.local.recovery.exchange import NOTE, require_whole
from deploy.local.recovery.losses import RECORD, Reach
from deploy.local.settings import LaunchError
from deploy.local.state import StateDir
from services import bus

WRONG: list[Callable[[Path], object]] = [
    Path.mkdir,
    Path.touch,
    lambda path: path.write_bytes(b"\xff\0\x13" * 20),
    lambda path: path.write_text("[]"),
    lambda path: path.write_text('{"children": {"a": [1, null]}}'),
    lambda path: path.write_text('{"children": {}}'),
    lambda path: path.symlink_to(path.name),
]
wrong = pytest.mark.parametrize("put", WRONG)


@wrong
def test_a_record_of_children_that_cannot_be_read_ends_nobody(tmp_path: Path, put: Callable[[Path], object]) -> None:
    put(tmp_path / "children.json")
    state = StateDir(tmp_path)
    assert state.reap() == 0
    state.close()


@wrong
def test_a_damaged_secret_is_made_again(tmp_path: Path, put: Callable[[Path], object]) -> None:
    put(tmp_path / "nats-token")
    state = StateDir(tmp_path)
    token = state.nats_token()
    assert len(token) >= 32
    assert state.nats_token() == token
    state.close()


@pytest.mark.parametrize("name", ["lock", "logs"])
def test_what_stands_in_the_place_of_lock_and_logs_is_named(tmp_path: Path, name: str) -> None:
    if name == "lock":
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).touch()
    with pytest.raises(LaunchError, match=f"Cannot write to {tmp_path / name}: .* Move it away"):
        StateDir(tmp_path)


@wrong
def test_a_note_of_a_restore_that_cannot_be_read_still_stops_the_start(
    tmp_path: Path, put: Callable[[Path], object]
) -> None:
    put(tmp_path / NOTE)
    with pytest.raises(LaunchError, match="Run this again, then start: "):
        require_whole(tmp_path)


@wrong
def test_a_record_of_the_streams_that_cannot_be_read_is_said(tmp_path: Path, put: Callable[[Path], object]) -> None:
    put(tmp_path / RECORD)
    said: list[str] = []
    assert losses.read(tmp_path) == {}
    losses.say_unread(tmp_path, said.append)
    (sentence,) = said
    assert sentence.startswith(f"The record of the streams {tmp_path / RECORD} cannot be read")


def test_an_entry_that_cannot_be_compared_is_left_out(tmp_path: Path) -> None:
    whole = {"created": "2026-11-22T10:00:00Z", "last": 40, "messages": 10}
    told = {bus.KEPT: whole, bus.AUDIT: {**whole, "last": "40"}, bus.RESULTS: {**whole, "created": None}}
    (tmp_path / RECORD).write_text(json.dumps(told))
    assert losses.read(tmp_path) == {bus.KEPT: Reach("2026-11-22T10:00:00Z", 40, 10)}
