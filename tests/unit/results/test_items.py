"""Pages of items beside a baseline's: what differs, what is counted, what is never matched."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from services.errors import InvalidRequestError, NotFoundError
from services.results import duckdb_store, item_reads
from services.results.database import Connection
from services.results.paging import MAX_PAGE_BYTES
from services.results.visibility import Visibility
from tests.unit.results.builders import CUT, ERROR, UNPARSED, answer, batch, event, job, plan
from touchstone.v1 import item_result_pb2
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.results_service_pb2 import ListItemsRequest as Ask

REFUSED, CUT_PROMPT = item_result_pb2.OUTCOME_REFUSED, item_result_pb2.OUTCOME_INPUT_TRUNCATED


def store(connection: Connection, job_id: str, *results: item_result_pb2.ItemResult, task: str = "t") -> None:
    """Results of a job; each item's input is told by its number unless it says otherwise."""
    for result in results:
        result.item_hash = result.item_hash or f"input {result.item}"
    number = "abcdefgh".index(job_id)
    duckdb_store.store_events(
        connection, [event(f"{number:04d}", job(job_id, plan("t", 10), plan("u", 10), owner=f"user {job_id}"))]
    )
    duckdb_store.store_items(connection, [batch(job_id, task, results)])


def ask(connection: Connection, choice: Ask.Filter = Ask.FILTER_UNSPECIFIED, **fields: object) -> pb.ListItemsResponse:
    fields.setdefault("baseline_job_id", "b")
    return item_reads.list_items(connection, Ask(job_id="a", filter=choice, **fields))  # type: ignore[arg-type]


def listed(connection: Connection, choice: Ask.Filter, **fields: object) -> list[int]:
    page = ask(connection, choice, **fields)
    assert page.total_size == len(page.items)
    return [stored.result.item for stored in page.items]


def pair(connection: Connection, here: Sequence[object], there: Sequence[object]) -> None:
    """Jobs a and b. An item is a prediction where "yes" is right, an outcome, or None where there is none."""
    for job_id, side in (("a", here), ("b", there)):
        results = [
            answer(i, one) if isinstance(one, str) else answer(i, outcome=int(str(one)))
            for i, one in enumerate(side)
            if one is not None
        ]
        store(connection, job_id, *results)


def test_items_are_told_apart_by_who_was_right(connection: Connection) -> None:
    pair(connection, ["yes", "no", "no", "yes", "no", UNPARSED], ["yes", "yes", "maybe", "no", "no", "yes"])
    assert listed(connection, Ask.FILTER_DIFFERENT) == [1, 3, 5]
    assert listed(connection, Ask.FILTER_REGRESSED) == [1, 5]
    assert listed(connection, Ask.FILTER_IMPROVED) == [3]
    page = ask(connection)
    assert (page.count_different, page.count_regressed, page.count_improved) == (3, 2, 1)


def test_an_error_or_a_missing_item_is_neither_right_nor_wrong(connection: Connection) -> None:
    pair(connection, ["no", ERROR, "no", "yes"], [ERROR, "yes", None, "no"])
    assert listed(connection, Ask.FILTER_DIFFERENT) == [3]
    assert listed(connection, Ask.FILTER_REGRESSED) == []
    assert [b.result.outcome for b in ask(connection).baselines] == [ERROR, 1, 0, 1]


def test_items_of_other_inputs_are_not_matched(connection: Connection) -> None:
    store(connection, "a", answer(0, "no"), answer(1, "no"), answer(2, "no", repeat=1))
    store(connection, "b", answer(0, "yes"), answer(1, "yes", item_hash="another input"), answer(2, "yes"))
    store(connection, "b", answer(3, "yes", item_hash="input 1"), task="u")
    page = ask(connection)
    assert [b.result.prediction for b in page.baselines] == ["yes", "", ""]
    assert [b.task for b in page.baselines] == ["t", "", ""]
    assert listed(connection, Ask.FILTER_REGRESSED) == [0]


def test_numbers_differ_where_they_are_not_the_same(connection: Connection) -> None:
    def said(item: int, text: str) -> item_result_pb2.ItemResult:
        return answer(item, text, "4.0", statistics={"value": float(text), "target": 4.0})

    store(connection, "a", said(0, "3.5"), said(1, "4.0"))
    store(connection, "b", said(0, "3.5"), said(1, "1.0"))
    assert listed(connection, Ask.FILTER_DIFFERENT) == [1]
    assert listed(connection, Ask.FILTER_REGRESSED) == listed(connection, Ask.FILTER_IMPROVED) == []


def test_cut_and_refused_items_are_listed_and_counted(connection: Connection) -> None:
    pair(connection, ["yes", CUT, REFUSED, CUT_PROMPT, ERROR], [])
    assert listed(connection, Ask.FILTER_TRUNCATED) == [1, 3]
    assert listed(connection, Ask.FILTER_REFUSED) == [2]
    page = ask(connection, baseline_job_id="")
    assert (page.count_truncated, page.count_refused, page.count_different) == (2, 1, 0)
    assert not page.baselines


def test_counts_are_those_of_the_text_and_the_task(connection: Connection) -> None:
    pair(connection, ["yes", "no", "no"], ["no", "yes", "yes"])
    store(connection, "a", answer(0, "no"), task="u")
    page = ask(connection, Ask.FILTER_REGRESSED, task="t", query="QUESTION 1")
    assert [s.result.item for s in page.items] == [1]
    assert (page.count_all, page.count_regressed, page.count_improved, page.total_size) == (1, 1, 0, 1)
    assert (ask(connection).count_all, ask(connection, task="u").count_all) == (4, 1)


def test_pages_of_what_differs_walk_every_item_once(connection: Connection) -> None:
    here = ["no" if i % 3 else "yes" for i in range(50)]
    pair(connection, here, ["yes"] * 50)
    token, found = "", []
    while True:
        page = ask(connection, Ask.FILTER_DIFFERENT, page_size=7, page_token=token)
        found += [s.result.item for s in page.items]
        assert [b.result.item for b in page.baselines] == [s.result.item for s in page.items]
        token = page.next_page_token
        if not token:
            break
    assert found == [i for i in range(50) if i % 3]
    token = ask(connection, page_size=7).next_page_token
    with pytest.raises(InvalidRequestError, match="belongs to another request"):
        ask(connection, page_token=token, baseline_job_id="a")


def test_a_page_with_its_baselines_fits_one_message(connection: Connection) -> None:
    long = "x" * 10_000
    for job_id in "ab":
        store(connection, job_id, *[answer(i, response=long, reasoning=long, prompt=long) for i in range(500)])
    page = ask(connection, page_size=500)
    assert 100 < len(page.items) < 500
    assert page.ByteSize() < MAX_PAGE_BYTES * 1.01
    assert page.next_page_token
    assert page.items[0].result.response.endswith("…")


def test_a_choice_beside_a_baseline_needs_one(connection: Connection) -> None:
    pair(connection, ["yes"], ["no"])
    for choice in (Ask.FILTER_DIFFERENT, Ask.FILTER_REGRESSED, Ask.FILTER_IMPROVED):
        with pytest.raises(InvalidRequestError, match="Set baseline_job_id") as refused:
            ask(connection, choice, baseline_job_id="")
        assert refused.value.field == "baseline_job_id"
    with pytest.raises(NotFoundError, match="Benchmark job nobody"):
        ask(connection, baseline_job_id="nobody")


def test_items_of_hidden_jobs_are_not_found(connection: Connection) -> None:
    pair(connection, ["yes"], ["no"])
    own = Visibility("user a")
    request = Ask(job_id="a")
    assert item_reads.list_items(connection, request, own).items
    with pytest.raises(NotFoundError):
        item_reads.list_items(connection, Ask(job_id="a", baseline_job_id="b"), own)
    with pytest.raises(NotFoundError):
        item_reads.list_items(connection, Ask(job_id="b"), own)
    with pytest.raises(NotFoundError):
        item_reads.get_item(connection, pb.GetItemRequest(job_id="b", task="t"), own)


def test_a_task_that_the_job_has_not_is_named_with_those_it_has(connection: Connection) -> None:
    pair(connection, ["yes"], ["no"])
    with pytest.raises(NotFoundError, match=r"Job a has no task 'nope'\. It has: t, u\."):
        ask(connection, task="nope")
    duckdb_store.store_events(connection, [event("9999", job("c"))])
    assert not item_reads.list_items(connection, Ask(job_id="c", task="nope")).items, "the job is not planned yet"
