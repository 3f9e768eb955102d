"""Imports of answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from services.results.imports.store import take
from services.results.storage.database import Connection, Database
from tests.unit.results.builders import START
from touchstone.v1 import suite_pb2
from touchstone.v1.results_service_pb2 import ImportAnswersRequest, ImportAnswersResponse, ImportedAnswer, ImportedRun

NOW = START.replace(tzinfo=None)


def run(digest: str = "d", mode: suite_pb2.Mode = suite_pb2.MODE_GENERATE, model: str = "m") -> ImportedRun:
    return ImportedRun(tool="lm_eval", tool_version="0.4.13", model=model, suite="glue", mode=mode, digest=digest)


def answers(*items: int, repeat: int = 0, task: str = "rte", response: str = "Answer: yes") -> list[ImportedAnswer]:
    return [
        ImportedAnswer(task=task, item=i, repeat=repeat, row=f'{{"n": {i}}}', prompt=f"q{i}", response=response)
        for i in items
    ]


async def sent(
    database: Database,
    *messages: Sequence[ImportedAnswer],
    described: ImportedRun | None = None,
    owner: str = "ann",
    again: bool = False,
    breaks: bool = False,
) -> ImportAnswersResponse:
    async def requests() -> AsyncIterator[ImportAnswersRequest]:
        for place, message in enumerate(messages):
            first = {"run": described or run(), "again": again} if place == 0 else {}
            yield ImportAnswersRequest(answers=message, **first)  # type: ignore[arg-type]
        if breaks:
            raise ConnectionError

    return await take(database, requests(), owner, NOW)


async def stored(database: Database) -> tuple[int, int]:
    """Imports and answers."""

    def count(connection: Connection) -> tuple[int, int]:
        ((imports, given),) = connection.execute(
            "SELECT (SELECT count(*) FROM imports), (SELECT count(*) FROM imported_answers)"
        ).fetchall()
        return imports, given

    return await database.read(count)
