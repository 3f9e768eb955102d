"""What people enter: marks of runs, verdicts on answers, preferences, ratings, names of configurations. They do not
come from a job, so no other stream can restore them. Each is published to KEPT before it is acknowledged, and read from
there like results: a database that lost its last changes, or was restored from a backup, has them again after its next
start.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from nats.aio.msg import Msg

from services import bus
from services.errors import UnavailableError
from services.results.intake.ordered_stream import NATS_TROUBLE
from services.results.runs import job_reads
from services.results.storage import run_scores
from services.results.storage.database import Connection, Database

NUMBERED = ("marks", "annotations", "preferences", "rubrics", "ratings")
"""Tables whose rows are numbered from 1 and never change."""
NAMES = "configuration_names"

Row = dict[str, Any]


def store(connection: Connection, messages: Sequence[Msg]) -> None:
    """Stores rows that are not there yet, and names that are newer than those stored."""
    marked: set[str] = set()
    for msg in messages:
        table, row = bus.kept_table(msg.subject), json.loads(msg.data)
        columns, places = ", ".join(f'"{name}"' for name in row), ", ".join(f"${name}" for name in row)
        conflict = "DO NOTHING"
        if table == NAMES:
            changes = ", ".join(f"{name} = excluded.{name}" for name in row if name != "configuration")
            conflict = f"DO UPDATE SET {changes} WHERE excluded.named_at > {NAMES}.named_at"
        elif table not in NUMBERED:
            continue  # Written by a newer version.
        connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({places}) ON CONFLICT {conflict}", row)
        if table == "marks":
            marked.add(row["job_id"])
    built_on = {built for job_id in marked for built in job_reads.built_on(connection, job_id)}
    for job_id in sorted(marked | built_on):
        run_scores.refresh(connection, job_id)


class KeptStream:
    """Publishes what is stored and not yet published. Only one process does this, the results service."""

    def __init__(self, connection: bus.Bus, database: Database) -> None:
        self._bus, self._database = connection, database
        self._lock = asyncio.Lock()
        self._last: dict[str, int] = {}
        """By numbered table, the highest number that is published."""
        self._names: dict[str, bytes] = {}
        """By configuration, the row that is published."""

    async def begin(self) -> None:
        """Reads what is published by now, then publishes the rest: rows of an older version, or of a service that was
        killed before it published them. Call it once everything published is stored. Raises UnavailableError."""
        try:
            for table in NUMBERED:
                newest = [msg async for msg in self._bus.newest(bus.KEPT, bus.kept_subject(table))]
                stored = await self._database.read(partial(_highest, table=table))
                self._last[table] = min(_number(newest[0].data), stored) if newest else 0
            async for msg in self._bus.newest(bus.KEPT, bus.kept_subject(NAMES, "*")):
                self._names[msg.subject.split(".", 2)[2]] = msg.data
        except NATS_TROUBLE as error:
            raise UnavailableError("NATS does not answer. Start it, then start the results service.") from error
        await self.publish()

    async def publish(self) -> None:
        """Returns when everything that was stored before the call is published. Raises UnavailableError when NATS does
        not answer: the entry may then be lost with the database, and the caller has to repeat it."""
        async with self._lock:
            try:
                for table in NUMBERED:
                    for row in await self._database.read(partial(_numbered, table=table, after=self._last[table])):
                        await self._bus.js.publish(bus.kept_subject(table), _encode(row))
                        self._last[table] = row["number"]
                for row in await self._database.read(_names):
                    if self._names.get(name := row["configuration"]) != (data := _encode(row)):
                        await self._bus.js.publish(bus.kept_subject(NAMES, name), data)
                        self._names[name] = data
            except NATS_TROUBLE as error:
                raise UnavailableError("NATS does not answer, so the change may not be stored. Try again.") from error


def _number(published: bytes) -> int:
    """0 where it cannot be read, because it was set aside: then every row is published again."""
    try:
        number = json.loads(published)["number"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return 0
    return number if isinstance(number, int) else 0


def _highest(connection: Connection, table: str) -> int:
    ((highest,),) = connection.execute(f"SELECT coalesce(max(number), 0) FROM {table}").fetchall()
    return int(highest)


def _numbered(connection: Connection, table: str, after: int) -> list[Row]:
    return _rows(connection, f"FROM {table} WHERE number > $after ORDER BY number", {"after": after})


def _names(connection: Connection) -> list[Row]:
    return _rows(connection, f"FROM {NAMES} ORDER BY named_at, configuration", {})


def _rows(connection: Connection, sql: str, parameters: dict[str, Any]) -> list[Row]:
    result = connection.execute(sql, parameters)
    columns = [name for name, *_ in result.description or ()]
    return [dict(zip(columns, values, strict=True)) for values in result.fetchall()]


def _encode(row: Row) -> bytes:
    plain = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}
    return json.dumps(plain).encode()
