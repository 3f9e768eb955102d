"""Imports that are refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from services.errors import InvalidRequestError
from services.results.storage.database import Database
from tests.unit.results.imports.imported import answers, run, sent, stored
from touchstone.v1 import suite_pb2
from touchstone.v1.results_service_pb2 import ImportedAnswer, ImportedRun


def changed(change: Callable[[ImportedAnswer], object]) -> list[ImportedAnswer]:
    made = answers(5)
    change(made[0])
    return made


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (changed(lambda a: setattr(a, "task", "")), "Answer 3: task must have between 1 and 200 characters."),
        (changed(lambda a: setattr(a, "item", -1)), "Answer 3: item -1 is not a row number."),
        (changed(lambda a: setattr(a, "repeat", 64)), "Answer 3: repeat must be between 0 and 63"),
        (changed(lambda a: setattr(a, "response", "é" * 140_000)), "Answer 3: response has more than"),
        (changed(lambda a: setattr(a, "row", "x" * 131_073)), "Answer 3: row has more than"),
        (changed(lambda a: setattr(a, "latency_ms", float("nan"))), "Answer 3: times and tokens must be 0 or more."),
        (changed(lambda a: setattr(a, "input_tokens", -1)), "Answer 3: times and tokens must be 0 or more."),
        (answers(1), "Item 1 of rte has two answers with number 0."),
        (answers(*range(2, 1003)), "A message must contain at most 1,000 answers."),
    ],
)
async def test_nothing_is_stored_when_one_answer_is_wrong(
    database: Database, wrong: list[ImportedAnswer], said: str
) -> None:
    with pytest.raises(InvalidRequestError, match=said):
        await sent(database, answers(0, 1), wrong)
    assert await stored(database) == (0, 0)


async def test_an_import_is_of_a_bounded_number_of_tasks(database: Database) -> None:
    given = [answer for number in range(501) for answer in answers(0, task=f"task {number}")]
    with pytest.raises(InvalidRequestError, match="501 tasks; at most 500 are allowed"):
        await sent(database, given)


async def test_a_log_likelihood_answer_has_continuations(database: Database) -> None:
    with pytest.raises(
        InvalidRequestError, match="Answer 1: an answer of a log-likelihood run must have continuations"
    ):
        await sent(database, answers(0), described=run(mode=suite_pb2.MODE_LOGLIKELIHOOD))


@pytest.mark.parametrize(
    "described",
    [
        ImportedRun(tool="other", model="m", suite="s", mode=suite_pb2.MODE_GENERATE, digest="d"),
        run(model=""),
        run(digest="x" * 201),
        run(mode=suite_pb2.MODE_UNSPECIFIED),
    ],
)
async def test_a_run_says_what_it_is(database: Database, described: ImportedRun) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        await sent(database, answers(0), described=described)
    assert refused.value.field.startswith("run.")


async def test_an_import_without_answers_or_messages_is_none(database: Database) -> None:
    nothing: list[list[ImportedAnswer]] = []
    with pytest.raises(InvalidRequestError):
        await sent(database, *nothing)
    with pytest.raises(InvalidRequestError):
        await sent(database, [])
    assert await stored(database) == (0, 0)
