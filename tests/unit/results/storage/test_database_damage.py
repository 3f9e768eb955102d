"""Damaged files of the database: one sentence with what to do, whatever byte is wrong."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from services.errors import DamagedFilesError
from services.results.intake import writes
from services.results.storage.database import Database, damage
from services.results.storage.migrations import open_file
from tests.unit.results.builders import event, job, plan

HEADER_BYTES = 12_288


def _crashed(folder: Path) -> Path:
    """A database as a killed service leaves it: one part in the file, the other in the log beside it."""
    path = folder / "state" / "results" / "touchstone.duckdb"
    connection = open_file(path)
    writes.store_events(connection, [event(f"{n:04d}", job(f"j{n}", plan("t", 1), minute=n)) for n in range(40)])
    connection.checkpoint()
    writes.store_events(connection, [event(f"{n:04d}", job(f"j{n}", plan("t", 1), minute=n)) for n in range(40, 50)])
    left = {file: file.read_bytes() for file in (path, path.with_suffix(".duckdb.wal"))}
    connection.close()
    for file, content in left.items():
        file.write_bytes(content)
    return path


def _flip(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 0x10
    path.write_bytes(content)


@pytest.mark.parametrize("seed", range(4))
def test_a_flipped_byte_in_the_log_or_the_header_names_the_file_and_the_commands(tmp_path: Path, seed: int) -> None:
    path = _crashed(tmp_path)
    draw = random.Random(seed)
    if seed % 2:
        _flip(path, draw.randrange(HEADER_BYTES))
    else:
        log = path.with_suffix(".duckdb.wal")
        _flip(log, draw.randrange(200, log.stat().st_size))
    with pytest.raises(DamagedFilesError) as raised:
        open_file(path)
    assert str(path) in raised.value.message
    assert f"touchstone repair --state-dir {tmp_path / 'state'}`" in raised.value.message
    assert f"touchstone restore BACKUP --state-dir {tmp_path / 'state'}`" in raised.value.message


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _of_sqlite(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE items (item)")
    connection.close()


@pytest.mark.parametrize(
    ("what", "log", "said"),
    [
        (_loop, False, "touchstone.duckdb is not a file"),
        (_loop, True, "touchstone.duckdb.wal is not a file"),
        (_of_sqlite, False, "is not a DuckDB file"),
        (Path.touch, False, "is not a DuckDB file"),
    ],
)
def test_what_stands_in_the_place_of_the_database_is_said(
    tmp_path: Path, what: Callable[[Path], None], log: bool, said: str
) -> None:
    path = tmp_path / "state" / "results" / "touchstone.duckdb"
    open_file(path).close()
    place = path.with_suffix(".duckdb.wal") if log else path
    place.unlink(missing_ok=True)
    what(place)
    with pytest.raises(DamagedFilesError, match=f"{said}. Stop Touchstone"):
        open_file(path)


@pytest.mark.stack
async def test_a_damaged_block_found_while_reading_ends_the_service_for_good(tmp_path: Path) -> None:
    path = _crashed(tmp_path)
    open_file(path).close()
    whole = path.read_bytes()
    found = 0
    for offset in range(HEADER_BYTES + 64, len(whole), 32 * 1024):
        path.write_bytes(whole)
        _flip(path, offset)
        try:
            opened = Database(duckdb.connect(str(path)))
        except duckdb.Error:
            continue
        with contextlib.suppress(DamagedFilesError):
            await opened.read(lambda connection: connection.execute("SELECT max(job) FROM jobs").fetchall())
        assert (opened.damage is not None) == opened.lost.is_set()
        found += opened.damage is not None
        await opened.close()
    assert found


def test_a_file_in_use_is_not_called_damaged(tmp_path: Path) -> None:
    error = duckdb.IOException("IO Error: Could not set lock on file: Conflicting lock is held; checksum")
    assert damage(error, tmp_path) is None
    assert damage(duckdb.IOException("IO Error: No space left on device while replaying WAL"), tmp_path) is None
