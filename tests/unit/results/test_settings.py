"""Defaults of the results service that depend on the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.errors import InvalidRequestError
from services.results.settings import ANSWERS_MAX_BYTES, Settings, answers_bytes
from services.results.visibility import OWN


def test_answers_leave_most_of_a_small_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOUCHSTONE_ANSWERS_MAX_BYTES", raising=False)
    assert answers_bytes(4 * 10**9) == 10**9
    assert answers_bytes(10**12) == ANSWERS_MAX_BYTES


@pytest.mark.parametrize(("asked", "bytes_"), [("50000000000", 50 * 10**9), ("0", 0)])
def test_a_bound_that_is_set_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch, asked: str, bytes_: int) -> None:
    monkeypatch.setenv("TOUCHSTONE_ANSWERS_MAX_BYTES", asked)
    assert answers_bytes(4 * 10**9) == bytes_


def test_reads_may_be_open_or_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_READS", "own")
    assert Settings.from_env().reads == OWN
    monkeypatch.setenv("TOUCHSTONE_READS", "closed")
    with pytest.raises(InvalidRequestError, match="TOUCHSTONE_READS"):
        Settings.from_env()


def test_items_leave_only_for_an_archive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TOUCHSTONE_ARCHIVE", raising=False)
    assert Settings.from_env().keep_items_days == 0
    monkeypatch.setenv("TOUCHSTONE_KEEP_ITEMS_DAYS", "90")
    with pytest.raises(InvalidRequestError, match="TOUCHSTONE_KEEP_ITEMS_DAYS needs TOUCHSTONE_ARCHIVE"):
        Settings.from_env()
    monkeypatch.setenv("TOUCHSTONE_ARCHIVE", str(tmp_path / "archive"))
    assert Settings.from_env().keep_items_days == 90
