"""Rows of several jobs, row beside row."""

from __future__ import annotations

import pytest

from services.errors import InvalidRequestError, NotFoundError
from services.results.paging import MAX_PAGE_BYTES
from services.results.side_by_side.listing import SideBySide
from services.results.storage.database import Connection
from services.results.visibility import Visibility
from tests.unit.results.builders import ERROR
from tests.unit.results.dataset_runs import EXACT, completed, row, stored
from tests.unit.results.finished import finished, right_or_wrong, said, task
from tests.unit.results.side_by_side.rows import ask, items, pair, walk
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.results_service_pb2 import ListSideBySideRequest as Ask


def test_four_jobs_stand_beside_each_other(connection: Connection) -> None:
    for job_id, pattern in (("a", "1100"), ("b", "1000"), ("c", "1010"), ("d", "1000")):
        finished(connection, job_id, task("t", right_or_wrong(pattern)))
    page = ask(connection, *"dcba", filter=Ask.FILTER_ONLY_RIGHT, only_job_id="c")
    assert [[item.job_id for item in one.items] for one in page.rows] == [["d", "c", "b", "a"]]
    assert [run.only_right for run in page.runs] == [0, 1, 0, 1]
    assert items(ask(connection, *"abcd", filter=Ask.FILTER_ALL_RIGHT)) == [0]
    assert not ask(connection, *"abcd", filter=Ask.FILTER_ONLY_WRONG, only_job_id="b").rows


def test_errors_and_missing_rows_are_listed_and_count_in_no_figure(connection: Connection) -> None:
    finished(connection, "a", task("t", [*right_or_wrong("11"), said(2, "yes", outcome=ERROR), said(3, "no")]))
    finished(connection, "b", task("t", right_or_wrong("101")))
    page = ask(connection)
    assert (items(page), page.count_all, [run.rows for run in page.runs]) == ([0, 1, 2, 3], 4, [2, 2])
    assert items(ask(connection, filter=Ask.FILTER_ONLY_RIGHT, only_job_id="b")) == []
    assert items(ask(connection, filter=Ask.FILTER_DISAGREE)) == [1]


def test_counts_by_task_are_those_of_each_tasks_rows(connection: Connection) -> None:
    for job_id, patterns in (("a", ("1101", "011")), ("b", ("1000", "010"))):
        tasks = [task(name, right_or_wrong(pattern)) for name, pattern in zip(("t", "u"), patterns, strict=True)]
        finished(connection, job_id, *tasks)
    page = ask(connection, "a", "b", with_tasks=True)
    assert [(one.task, one.all_right, one.all_wrong, list(one.only_right)) for one in page.tasks] == [
        ("t", 1, 1, [2, 0]),
        ("u", 1, 1, [1, 0]),
    ]
    for one in page.tasks:
        alone = ask(connection, "a", "b", task=one.task)
        assert (alone.count_all_right, alone.count_all_wrong) == (one.all_right, one.all_wrong)
        assert [run.only_right for run in alone.runs] == list(one.only_right)
    assert not ask(connection, "a", "b").tasks


def test_diffs_are_of_whole_responses_against_the_first_jobs(connection: Connection) -> None:
    long = "word " * 1000
    completed(connection, "a", [row(0, 1.0, response=long + "end")], EXACT)
    completed(connection, "b", [row(0, 1.0, response=long + "ending")], EXACT)
    (one,) = ask(connection, with_diffs=True).rows
    assert len(one.items[0].result.response.encode()) == 2048
    assert [(part.kind, part.text) for part in one.diffs[1].parts] == [(1, long), (2, "end"), (3, "ending")]
    assert not one.diffs[0].parts
    assert not ask(connection).rows[0].diffs


@pytest.mark.parametrize("done", [True, False])
def test_pages_walk_every_row_once_in_order(connection: Connection, done: bool) -> None:
    store = completed if done else stored
    for job_id in "ab":
        store(connection, job_id, [row(number, 1.0) for number in range(10)], EXACT)
    assert walk(connection, SideBySide()) == [f"candidate-{number}" for number in range(10)]


def test_a_page_with_diffs_fits_one_message(connection: Connection) -> None:
    for job_id in "ab":
        text = f"{job_id} " * 100_000
        completed(connection, job_id, [row(number, response=text) for number in range(20)])
    page = ask(connection, with_diffs=True)
    assert page.next_page_token
    assert page.ByteSize() < MAX_PAGE_BYTES + 600_000


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"job_ids": ["a"]}, "job_ids"),
        ({"job_ids": ["a", "a"]}, "job_ids"),
        ({"job_ids": list("abcde")}, "job_ids"),
        ({"filter": 7}, "filter"),
        ({"filter": Ask.FILTER_ONLY_RIGHT}, "only_job_id"),
        ({"filter": Ask.FILTER_ONLY_WRONG, "only_job_id": "z"}, "only_job_id"),
        ({"page_token": "x"}, "page_token"),
        ({"page_size": -1}, "page_size"),
        ({"conditions": pb.ItemConditions(verdicts=[9])}, "conditions.verdicts"),  # type: ignore[list-item]
    ],
)
def test_what_cannot_be_asked_is_refused_by_field(
    connection: Connection, fields: dict[str, object], field: str
) -> None:
    pair(connection, "10", "01")
    with pytest.raises(InvalidRequestError) as raised:
        SideBySide().rows(connection, Ask(**({"job_ids": ["a", "b"]} | fields)))  # type: ignore[arg-type]
    assert raised.value.field == field


def test_a_hidden_job_is_not_found_though_its_rows_are_kept(connection: Connection) -> None:
    for job_id, owner in (("a", "ann"), ("b", "bob")):
        completed(connection, job_id, [row(0, 1.0)], EXACT, owner=owner)
    asked, request = SideBySide(), Ask(job_ids=["a", "b"])
    assert asked.rows(connection, request).count_all == 1
    with pytest.raises(NotFoundError, match="Benchmark job b not found"):
        asked.rows(connection, request, Visibility("ann"))


def test_a_text_and_conditions_hold_of_one_answer_and_bound_all_counts(connection: Connection) -> None:
    completed(connection, "a", [row(number, 1.0, metadata={"name": f"Ada {number}"}) for number in range(4)], EXACT)
    completed(
        connection, "b", [row(number, float(number > 1), response=f"odd {number % 2}") for number in range(4)], EXACT
    )
    page = ask(connection, query="odd 1")
    assert (items(page), page.count_all, page.runs[0].rows, page.count_all_right) == ([1, 3], 2, 2, 1)
    assert items(ask(connection, query="ada 2")) == [2]
    assert items(ask(connection, query="odd 1", conditions=pb.ItemConditions(score_high=0))) == [1]
    assert items(ask(connection, query="ada", conditions=pb.ItemConditions(score_high=0))) == []
    assert items(ask(connection, conditions=pb.ItemConditions(metadata_field="name", metadata_value="3"))) == [3]
