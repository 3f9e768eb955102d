"""Pages, searches and live results."""

from __future__ import annotations

import pytest

from services.errors import NotFoundError
from services.results.intake import writes
from services.results.items import reads
from services.results.runs import job_reads
from services.results.storage.database import Connection
from tests.unit.results.builders import CUT, ERROR, UNPARSED, answer, batch, known
from tests.unit.results.items.listed import items_pages
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.results_service_pb2 import ListItemsRequest

HOSTILE = ("'; DROP TABLE items; --", "%", "_", "$job_id", "\\", "{columns}", "\x00", '"', "☃ 100% _x_")


def test_item_pages_walk_every_row_once_in_order(connection: Connection) -> None:
    known(connection)
    for task in ("b", "a"):
        results = [answer(i, repeat=r) for i in range(17) for r in range(2)]
        writes.store_items(connection, [batch("j", task, results)])
    pages = list(items_pages(connection, page_size=7))
    keys = [(s.task, s.result.item, s.result.repeat) for page in pages for s in page.items]
    assert keys == [(t, i, r) for t in "ab" for i in range(17) for r in range(2)]
    assert [len(page.items) for page in pages] == [7] * 9 + [5]
    assert {page.total_size for page in pages} == {68}


def test_rows_stored_between_two_pages_neither_repeat_nor_hide_others(connection: Connection) -> None:
    known(connection)
    writes.store_items(connection, [batch("j", "t", [answer(i) for i in range(10, 20)])])
    pages = items_pages(connection, page_size=5)
    first = next(pages)
    writes.store_items(connection, [batch("j", "t", [answer(i) for i in (0, 30)])])
    rest = [s.result.item for page in pages for s in page.items]
    assert [s.result.item for s in first.items] == [10, 11, 12, 13, 14]
    assert rest == [15, 16, 17, 18, 19, 30]


def test_filters_and_counts_tell_failures_unreadable_answers_and_errors_apart(connection: Connection) -> None:
    known(connection)
    results = [
        answer(0),
        answer(1),
        answer(2, "no"),
        answer(3, outcome=UNPARSED),
        answer(4, outcome=CUT),
        answer(5, outcome=ERROR),
    ]
    writes.store_items(connection, [batch("j", "t", results)])

    def listed(choice: ListItemsRequest.Filter) -> list[int]:
        (page,) = items_pages(connection, filter=choice)
        assert (page.count_all, page.count_failures, page.count_unparsed, page.count_errors) == (6, 3, 2, 1)
        assert page.total_size == len(page.items)
        return [stored.result.item for stored in page.items]

    assert listed(ListItemsRequest.FILTER_UNSPECIFIED) == [0, 1, 2, 3, 4, 5]
    assert listed(ListItemsRequest.FILTER_FAILURES) == [2, 3, 4]
    assert listed(ListItemsRequest.FILTER_UNPARSED) == [3, 4]
    assert listed(ListItemsRequest.FILTER_ERRORS) == [5]
    assert listed(ListItemsRequest.FILTER_CORRECT) == [0, 1]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_search_finds_exactly_the_items_that_contain_the_text_whatever_it_is(
    connection: Connection, text: str
) -> None:
    known(connection)
    with_text = answer(0)
    with_text.response = f"before {text} after"
    writes.store_items(connection, [batch("j", "t", [with_text, answer(1)])])
    (page,) = items_pages(connection, query=text)
    assert [stored.result.item for stored in page.items] == [0]
    assert page.count_all == 1
    assert connection.execute("SELECT count(*) FROM items").fetchall() == [(2,)]


def test_a_search_ignores_case_and_reads_prompt_response_prediction_and_reference(connection: Connection) -> None:
    known(connection)
    results = [answer(i, prediction=f"p{i}", reference=f"r{i}") for i in range(4)]
    results[0].prompt = "the ÉCLAIR"
    results[1].response = "an éclair"
    results[2].prediction = "Éclair"
    results[3].reference = "éCLAIRs"
    writes.store_items(connection, [batch("j", "t", results)])
    (page,) = items_pages(connection, query="éclAIR")
    assert len(page.items) == 4


def test_listed_texts_are_cut_to_two_kilobytes_and_one_item_is_whole(connection: Connection) -> None:
    known(connection)
    long = answer(0)
    long.response = "ü" * 5000
    writes.store_items(connection, [batch("j", "t", [long])])
    (page,) = items_pages(connection)
    cut = page.items[0].result.response
    assert len(cut.encode()) <= 2048
    assert cut.endswith("ü…")
    whole = reads.get_item(connection, pb.GetItemRequest(job_id="j", task="t", item=0))
    assert whole.result.response == long.response


def test_a_page_of_long_texts_fits_one_grpc_message_and_no_row_is_lost(connection: Connection) -> None:
    known(connection)
    results = [answer(i) for i in range(700)]
    for result in results:
        for field in ("prompt", "response", "reasoning", "error"):
            setattr(result, field, "x" * 2100)
    writes.store_items(connection, [batch("j", "t", results)])
    pages = list(items_pages(connection, page_size=500))
    assert all(page.ByteSize() < 4 * 1024 * 1024 for page in pages)
    assert [s.result.item for page in pages for s in page.items] == list(range(700))


def test_items_of_an_unknown_job_are_not_found(connection: Connection) -> None:
    with pytest.raises(NotFoundError, match="nobody"):
        reads.list_items(connection, ListItemsRequest(job_id="nobody"))
    with pytest.raises(NotFoundError):
        job_reads.get_job_result(connection, "nobody")
