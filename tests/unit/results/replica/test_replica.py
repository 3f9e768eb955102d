"""The copy of the database: what kills leave behind, and reads while it is replaced."""

from __future__ import annotations

import asyncio
import math
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from services import bus
from services.errors import UnavailableError
from services.results.replica import copying, files
from services.results.replica.copying import Copying
from services.results.replica.following import Replica
from services.results.storage.database import Connection, Database
from services.results.storage.migrations import open_copy, open_file
from services.telemetry import metrics

ROWS = 2_000


@pytest.fixture
async def database(new_path: Path, tmp_path: Path) -> AsyncIterator[Database]:
    opened = Database(open_file(new_path, tmp_path / "replica"))
    await opened.write(lambda c: add(c, 0))
    yield opened
    await opened.close()


def add(connection: Connection, number: int) -> None:
    connection.execute(
        "INSERT INTO metrics (job_id, task, metric, place, tasks, n, method, undefined_reason) "
        f"SELECT 'j{number}', 't' || range, 'accuracy', 0, 1, 1, '', '' FROM range({ROWS})"
    )


def jobs(connection: Connection) -> dict[str, int]:
    """Stored jobs, and how many rows each has."""
    found = connection.execute("SELECT job_id, count(*) FROM metrics GROUP BY job_id ORDER BY job_id").fetchall()
    return {str(job_id): int(count) for job_id, count in found}


def copier(database: Database, every_s: float = 1) -> Copying:
    return Copying(database, database.path.parent / "replica", every_s, bus.Room())


async def test_a_kill_at_any_step_leaves_a_whole_copy(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies, folder = copier(database), tmp_path / "replica"
    await copies.copy()
    await database.write(lambda c: add(c, 1))
    left: list[Path] = []

    def keep() -> None:
        left.append(tmp_path / f"left-{len(left)}")
        left[-1].mkdir()
        for path in folder.iterdir():
            (left[-1] / path.name).write_bytes(path.read_bytes())

    def with_kills(place: Any, name: str) -> None:
        """A kill just before and just after the step leaves the folder as it is then."""
        step: Callable[..., Any] = getattr(place, name)

        def taken(*given: Any, **named: Any) -> Any:
            keep()
            found = step(*given, **named)
            keep()
            return found

        monkeypatch.setattr(place, name, taken)

    for place, name in ((os, "chmod"), (os, "utime"), (os, "fsync"), (Path, "rename"), (Path, "unlink")):
        with_kills(place, name)
    whole = Database._copy

    def half(self: Database, path: Path) -> None:
        whole(self, path)
        keep()
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2])
        keep()
        path.write_bytes(data)

    monkeypatch.setattr(Database, "_copy", half)
    await copies.copy()
    monkeypatch.undo()
    assert len(left) == 14
    seen = []
    for each in left:
        copy = files.newest(each)
        assert copy is not None
        with open_copy(copy) as opened:
            seen.append(jobs(opened))
        # The next copy tidies up.
        files.begin(each).write_bytes(copy.read_bytes())
        next_one = files.publish(each, time.time())
        assert next_one > copy
        assert [*each.iterdir()] == [next_one]
    first, both = {"j0": ROWS}, {"j0": ROWS, "j1": ROWS}
    assert [one for one in seen if one not in (first, both)] == []
    # It changes once, with the new name.
    assert seen == sorted(seen, key=len)
    assert first in seen
    assert both in seen


async def test_no_read_fails_while_the_copy_is_replaced(database: Database, tmp_path: Path) -> None:
    copies, replica = copier(database), Replica(tmp_path / "replica")
    with pytest.raises(UnavailableError):
        await replica.read(jobs)
    await copies.copy()
    await replica.look()
    over = asyncio.Event()
    counted: list[int] = []

    async def reads() -> None:
        while not over.is_set():
            found = await replica.read_long(jobs)
            assert set(found.values()) == {ROWS}
            counted.append(len(found))

    readers = [asyncio.create_task(reads()) for _ in range(4)]
    slow = replica.stream(lambda c: iter(c.execute("SELECT task FROM metrics").fetchall()))
    first = await anext(slow)
    for number in range(1, 5):
        await database.write(partial(add, number=number))
        await copies.copy()
        await replica.look()
        assert len(await replica.read(jobs)) == number + 1
    over.set()
    await asyncio.gather(*readers)
    assert replica.version == 5
    assert max(counted) >= 2
    # It reads on in the copy in which it began.
    assert len([first] + [row async for row in slow]) == ROWS
    await replica.close()


async def test_it_says_as_of_when_it_is(database: Database, tmp_path: Path) -> None:
    copies, replica = copier(database), Replica(tmp_path / "replica")
    with pytest.raises(UnavailableError):
        replica.as_of()
    before = time.time()
    await copies.copy()
    await replica.look()
    at = datetime.fromisoformat(replica.as_of()).timestamp()
    assert before - 0.01 <= at <= time.time()
    # While nothing is stored, it is as the database is.
    await asyncio.sleep(0.05)
    await copies.confirm()
    await replica.look()
    later = datetime.fromisoformat(replica.as_of()).timestamp()
    assert later >= at + 0.04
    await database.write(lambda c: add(c, 1))
    await copies.confirm()
    await replica.look()
    assert datetime.fromisoformat(replica.as_of()).timestamp() == later
    await replica.close()


async def test_copies_are_made_only_after_changes_and_rest_for_ten_times_as_long(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "_LOOK_S", 0.01)
    copy = Database.copy
    made: list[float] = []

    async def slow(self: Database, path: Path) -> None:
        made.append(time.monotonic())
        await copy(self, path)
        await asyncio.sleep(max(0.0, made[-1] + 0.1 - time.monotonic()))

    monkeypatch.setattr(Database, "copy", slow)
    running = asyncio.create_task(copier(database, every_s=0.01).run())
    await asyncio.sleep(0.4)
    assert len(made) == 1
    while len(made) < 2:
        await database.write(lambda c: c.execute("UPDATE metrics SET n = n + 1 WHERE task = 't1'"))
        await asyncio.sleep(0.02)
    running.cancel()
    assert made[1] - made[0] >= 1.1


async def test_a_copy_of_another_version_or_with_wrong_bytes_is_left_alone(database: Database, tmp_path: Path) -> None:
    folder, copies, replica = tmp_path / "replica", copier(database), Replica(tmp_path / "replica")
    await database.write(lambda c: c.execute("INSERT INTO migrations VALUES (999, now())"))
    await copies.copy()
    await replica.look()
    assert not replica.is_open
    await database.write(lambda c: c.execute("DELETE FROM migrations WHERE number = 999"))
    await copies.copy()
    await replica.look()
    assert [*await replica.read(jobs)] == ["j0"]
    # Another copy, none of whose data can be read: the earlier one stays in use.
    (folder / "000000009.duckdb").write_bytes(b"nothing of the kind")
    await replica.look()
    assert [*await replica.read(jobs)] == ["j0"]
    await replica.close()


async def test_a_copy_under_way_does_not_hold_up_the_end(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 40):
        await database.write(partial(add, number=number))
    began_copying = asyncio.Event()
    loop, whole = asyncio.get_running_loop(), Database._copy

    def told(self: Database, path: Path) -> None:
        loop.call_soon_threadsafe(began_copying.set)
        whole(self, path)

    monkeypatch.setattr(Database, "_copy", told)
    copies = asyncio.create_task(copier(database).copy())
    await began_copying.wait()
    await asyncio.sleep(0.02)
    began = time.monotonic()
    await database.close()
    assert time.monotonic() - began < 30
    await asyncio.wait([copies])
    given_up = isinstance(copies.exception(), UnavailableError)
    assert given_up is (files.newest(tmp_path / "replica") is None)


async def test_a_copy_may_be_where_nothing_can_be_written(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await copier(database).copy()
    copy = files.newest(tmp_path / "replica")
    assert copy is not None
    places = []
    for writable in (True, False):
        monkeypatch.setattr(os, "access", lambda *given, writable=writable: writable)
        connection = open_copy(copy)
        places += connection.execute("SELECT current_setting('temp_directory')").fetchall()
        connection.close()
    assert places[0] == (f"{copy}.tmp",)
    assert Path(places[1][0]).parent == Path(tempfile.gettempdir())


async def test_the_age_of_the_newest_copy_is_a_metric(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ages: list[float] = []
    monkeypatch.setattr(metrics.COPY_AGE, "set", ages.append)
    copies, replica = copier(database), Replica(tmp_path / "replica")
    for one in (copies, replica, copier(database, 0)):
        await one.measure()
    assert all(map(math.isnan, ages))
    await copies.copy()
    copy = files.newest(tmp_path / "replica")
    assert copy is not None
    os.utime(copy, (time.time() - 100,) * 2)
    await replica.look()
    ages.clear()
    # After a restart, too: the copy is still the newest one.
    for one in (copier(database), replica):
        await one.measure()
    assert ages == [pytest.approx(100, abs=5)] * 2
    await replica.close()
