"""A message that breaks the database each time it is stored: the service finds it over its restarts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import pytest

from services.errors import UnavailableError
from services.results.intake.feeds import Feed
from services.results.intake.writes import Mark, read_mark
from services.results.storage.database import Connection, Database
from services.results.storage.migrations import open_file

MESSAGES, BAD, CREATED = 20, 13, "now"


class Ended(Exception):  # noqa: N818 - the end of a test's stream is no error
    """Everything was handed over."""


class Stream:
    name = "RESULTS"

    async def fetch(self, mark: Mark) -> tuple[Mark, list[Any]]:
        if mark.sequence == MESSAGES:
            raise Ended
        positions = range(mark.sequence + 1, MESSAGES + 1)
        return Mark(self.name, CREATED, MESSAGES), [message(position) for position in positions]

    async def acknowledge(self, messages: list[Any]) -> None: ...


class Aside:
    def __init__(self) -> None:
        self.taken: list[tuple[int, str]] = []

    async def take(self, found: Any, error: Exception) -> None:
        self.taken.append((found.sequence, str(error)))


def message(position: int) -> Any:
    sequence = SimpleNamespace(stream=position, consumer=position)
    metadata = SimpleNamespace(sequence=sequence, stream=Stream.name, timestamp=None)
    return SimpleNamespace(metadata=metadata, subject="results.j", data=b"", headers=None)


class Store:
    """Breaks over one message for so many times."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self, connection: Connection, messages: Any) -> None:
        for each in messages:
            position = each.metadata.sequence.stream
            if position == BAD and self.left:
                self.left -= 1
                raise duckdb.InternalException("INTERNAL Error: Attempted to access index 2 within vector of size 2")
            connection.execute("INSERT INTO events VALUES ($id, 'j', now(), 'a', 'b', '')", {"id": f"{position:04d}"})


@pytest.mark.parametrize(("times", "aside"), [(1, []), (2, []), (100, [BAD])])
async def test_a_message_that_breaks_the_database_is_found_over_restarts(
    new_path: Path, tmp_path: Path, times: int, aside: list[int]
) -> None:
    store, set_aside = Store(times), Aside()
    for _ in range(8):
        database = Database(open_file(new_path))
        feed = Feed(database, cast(Any, Stream()), cast(Any, set_aside), store)
        try:
            await feed.run()
        except UnavailableError:
            assert database.lost.is_set()
        except Ended:
            break
        finally:
            stored = await database_rows(database)
            await database.close()
    else:
        raise AssertionError("the service never comes to the end")
    assert [position for position, _ in set_aside.taken] == aside
    assert all("Attempted to access index 2" in reason for _, reason in set_aside.taken)
    assert stored == [f"{position:04d}" for position in range(1, MESSAGES + 1) if position not in aside]
    assert not (tmp_path / "suspects-RESULTS.json").exists()


async def database_rows(database: Database) -> list[str]:
    def ask(connection: Connection) -> list[str]:
        assert read_mark(connection, Stream.name).sequence <= MESSAGES
        return [event_id for (event_id,) in connection.execute("SELECT event_id FROM events ORDER BY 1").fetchall()]

    return await database.read(ask)
