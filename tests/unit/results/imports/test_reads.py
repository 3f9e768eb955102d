"""Imported answers are read in parts."""

from __future__ import annotations

from functools import partial

import pytest

from services.results.imports.reads import find_answers, get_import
from services.results.storage.database import Database
from tests.unit.results.imports.imported import answers, sent
from touchstone.v1.results_service_pb2 import FindResponsesRequest, GetImportRequest


async def test_rows_come_in_pages_of_bytes(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.results.imports.reads._ROWS_BYTES", 20)
    made = await sent(database, answers(*range(6)))
    pages = []
    after = None
    while True:
        request = GetImportRequest(import_id=made.import_id, task="rte", after=after, with_rows=True)
        page = await database.read(partial(get_import, request=request))
        if not page.items:
            break
        pages.append(list(zip(page.items, page.rows, strict=True)))
        after = page.items[-1]
    # Eight bytes each: a third row begins below twenty.
    assert pages == [[(n, f'{{"n": {n}}}') for n in three] for three in ((0, 1, 2), (3, 4, 5))]


async def test_repeats_with_different_prompts_have_no_prompt_in_common(database: Database) -> None:
    other = answers(0, repeat=1)
    other[0].prompt = "another"
    made = await sent(database, answers(0), other)
    there = await database.read(lambda c: get_import(c, GetImportRequest(import_id=made.import_id, task="rte")))
    assert list(there.prompts) == [0]


async def test_more_than_a_message_holds_is_given_in_parts(database: Database) -> None:
    big = "x" * 250_000
    made = await sent(database, *[answers(i, response=big) for i in range(20)])
    asked = FindResponsesRequest(import_id=made.import_id, task="rte", items=range(20))
    first = await database.read(lambda c: find_answers(c, asked))
    assert 1 <= len(first.answers) < 20
    assert first.ByteSize() < 4 * 1024 * 1024
