"""Pages, searches and live results."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from services.errors import InvalidRequestError, NotFoundError
from services.results import duckdb_store, item_reads, job_lists, job_reads, paging
from services.results.database import Connection
from tests.unit.results.builders import CUT, ERROR, START, UNPARSED, answer, batch, event, job, known, plan, run, seal
from touchstone.v1 import job_pb2
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.results_service_pb2 import ListItemsRequest

HOSTILE = ("'; DROP TABLE items; --", "%", "_", "$job_id", "\\", "{columns}", "\x00", '"', "☃ 100% _x_")


def items_pages(connection: Connection, **request: object) -> Iterator[pb.ListItemsResponse]:
    token = ""
    while True:
        page = item_reads.list_items(connection, ListItemsRequest(job_id="j", page_token=token, **request))  # type: ignore[arg-type]
        yield page
        token = page.next_page_token
        if not token:
            return


def test_item_pages_walk_every_row_once_in_order(connection: Connection) -> None:
    known(connection)
    for task in ("b", "a"):
        results = [answer(i, repeat=r) for i in range(17) for r in range(2)]
        duckdb_store.store_items(connection, [batch("j", task, results)])
    pages = list(items_pages(connection, page_size=7))
    keys = [(s.task, s.result.item, s.result.repeat) for page in pages for s in page.items]
    assert keys == [(t, i, r) for t in "ab" for i in range(17) for r in range(2)]
    assert [len(page.items) for page in pages] == [7] * 9 + [5]
    assert {page.total_size for page in pages} == {68}


def test_rows_stored_between_two_pages_neither_repeat_nor_hide_others(connection: Connection) -> None:
    known(connection)
    duckdb_store.store_items(connection, [batch("j", "t", [answer(i) for i in range(10, 20)])])
    pages = items_pages(connection, page_size=5)
    first = next(pages)
    duckdb_store.store_items(connection, [batch("j", "t", [answer(i) for i in (0, 30)])])
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
    duckdb_store.store_items(connection, [batch("j", "t", results)])

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
    duckdb_store.store_items(connection, [batch("j", "t", [with_text, answer(1)])])
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
    duckdb_store.store_items(connection, [batch("j", "t", results)])
    (page,) = items_pages(connection, query="éclAIR")
    assert len(page.items) == 4


def test_listed_texts_are_cut_to_two_kilobytes_and_one_item_is_whole(connection: Connection) -> None:
    known(connection)
    long = answer(0)
    long.response = "ü" * 5000
    duckdb_store.store_items(connection, [batch("j", "t", [long])])
    (page,) = items_pages(connection)
    cut = page.items[0].result.response
    assert len(cut.encode()) <= 2048
    assert cut.endswith("ü…")
    whole = item_reads.get_item(connection, pb.GetItemRequest(job_id="j", task="t", item=0))
    assert whole.result.response == long.response


def test_a_page_of_long_texts_fits_one_grpc_message_and_no_row_is_lost(connection: Connection) -> None:
    known(connection)
    results = [answer(i) for i in range(700)]
    for result in results:
        for field in ("prompt", "response", "reasoning", "error"):
            setattr(result, field, "x" * 2100)
    duckdb_store.store_items(connection, [batch("j", "t", results)])
    pages = list(items_pages(connection, page_size=500))
    assert all(page.ByteSize() < 4 * 1024 * 1024 for page in pages)
    assert [s.result.item for page in pages for s in page.items] == list(range(700))


def test_a_page_token_fits_only_the_request_it_was_made_for(connection: Connection) -> None:
    known(connection)
    duckdb_store.store_items(connection, [batch("j", "t", [answer(i) for i in range(5)])])
    token = next(items_pages(connection, page_size=2)).next_page_token
    for request in (
        ListItemsRequest(job_id="j", page_token=token, query="x"),
        ListItemsRequest(job_id="j", page_token=token, filter=ListItemsRequest.FILTER_ERRORS),
        ListItemsRequest(job_id="j", page_token="bm9uc2Vuc2U="),
        ListItemsRequest(job_id="j", page_token="☃"),
        ListItemsRequest(job_id="j", page_token=paging.encode_token("0" * 16, ["t", 1, 1])),
    ):
        with pytest.raises(InvalidRequestError, match="page token"):
            item_reads.list_items(connection, request)
    larger = item_reads.list_items(connection, ListItemsRequest(job_id="j", page_token=token, page_size=100))
    assert [stored.result.item for stored in larger.items] == [2, 3, 4]


def test_items_of_an_unknown_job_are_not_found(connection: Connection) -> None:
    with pytest.raises(NotFoundError, match="nobody"):
        item_reads.list_items(connection, ListItemsRequest(job_id="nobody"))
    with pytest.raises(NotFoundError):
        job_reads.get_job_result(connection, "nobody")


def test_job_pages_walk_all_jobs_newest_first_even_with_equal_times(connection: Connection) -> None:
    jobs = [job(f"j{n:02d}", minute=n // 4) for n in range(23)]
    duckdb_store.store_events(connection, [event(f"{n:04d}", j) for n, j in enumerate(jobs)])
    token, found = "", []
    while True:
        page = job_lists.list_jobs(connection, pb.ResultsServiceListJobsRequest(page_size=5, page_token=token))
        found += [j.job_id for j in page.jobs]
        assert page.total_size == 23
        token = page.next_page_token
        if not token:
            break
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == 23


def test_job_filters_are_joined_by_and(connection: Connection) -> None:
    jobs = [
        job("a", model="m1", suite="glue", owner="ann", project_id=1, minute=0),
        job("b", model="m2", suite="glue", owner="bob", project_id=2, minute=1),
        job("c", model="m2", suite="demo", owner="ann", project_id=2, minute=2, state=job_pb2.Job.STATE_FAILED),
    ]
    duckdb_store.store_events(connection, [event(f"{n:04d}", j) for n, j in enumerate(jobs)])

    def listed(**filters: object) -> str:
        request = pb.ResultsServiceListJobsRequest(**filters)  # type: ignore[arg-type]
        response = job_lists.list_jobs(connection, request)
        assert response.total_size == len(response.jobs)
        return "".join(j.job_id for j in response.jobs)

    assert listed() == "cba"
    assert listed(model="m2") == "cb"
    assert listed(model="m2", suite="glue") == "b"
    assert listed(states=[job_pb2.Job.STATE_FAILED, job_pb2.Job.STATE_PENDING]) == "c"
    assert listed(owner="ann", project_id=2) == "c"
    assert listed(created_after=START + timedelta(minutes=1)) == "cb"


def test_event_pages_walk_the_whole_trail_oldest_first(connection: Connection) -> None:
    duckdb_store.store_events(connection, [event(f"{n:04d}", job(f"j{n % 3}")) for n in range(11)])
    token, found = "", []
    while True:
        page = job_reads.list_events(connection, pb.ListEventsRequest(page_size=4, page_token=token))
        found += [e.event_id for e in page.events]
        token = page.next_page_token
        if not token:
            break
    assert found == [f"{n:04d}" for n in range(11)]
    one = job_reads.list_events(connection, pb.ListEventsRequest(job_id="j1"))
    assert [e.event_id for e in one.events] == ["0001", "0004", "0007", "0010"]


def test_a_negative_page_size_is_refused_and_a_large_one_is_the_most(connection: Connection) -> None:
    with pytest.raises(InvalidRequestError, match="page_size"):
        job_lists.list_jobs(connection, pb.ResultsServiceListJobsRequest(page_size=-1))
    assert paging.page_size(5000, 20, 1000) == 1000
    assert paging.page_size(0, 20, 1000) == 20


def test_a_running_job_shows_metrics_so_far_and_no_suite_score_before_every_task_has_items(
    connection: Connection,
) -> None:
    known(connection, plan("t", 100), plan("u", 100))
    duckdb_store.store_items(connection, [batch("j", "t", [answer(0), answer(1, "no")])])
    result = job_reads.get_job_result(connection, "j")
    assert not result.sealed
    assert result.tasks[0].metrics[0].mean == 0.5
    assert (result.tasks[0].items, result.tasks[0].items_planned, result.tasks[0].correct) == (2, 100, 1)
    assert (result.tasks[0].metrics[0].bound_low, result.tasks[0].metrics[0].bound_high) == (0.5, 0.5)
    assert result.tasks[1].metrics[0].n == 0
    assert result.accuracy_so_far.mean == 0.5
    assert not result.HasField("suite_score")
    assert result.not_ranked_reason == "the job is not finished"
    duckdb_store.store_items(connection, [batch("j", "u", [answer(0)])])
    assert job_reads.get_job_result(connection, "j").suite_score.mean == 0.75


def test_a_failed_job_keeps_its_tasks_metrics_without_a_suite_score(connection: Connection) -> None:
    known(connection, plan("t", 2), plan("u", 2), state=job_pb2.Job.STATE_FAILED)
    duckdb_store.store_items(connection, [batch("j", "t", [answer(0), answer(1)]), batch("j", "u", [answer(0)])])
    result = job_reads.get_job_result(connection, "j")
    assert [task.metrics[0].mean for task in result.tasks] == [1.0, 1.0]
    assert (result.tasks[1].metrics[0].bound_low, result.tasks[1].metrics[0].bound_high) == (0.5, 1.0)
    assert not result.HasField("suite_score")
    assert result.not_ranked_reason == "the job failed"


def test_a_retried_job_shows_live_metrics_again_until_it_is_sealed_again(connection: Connection) -> None:
    known(connection, plan("t", 2))
    duckdb_store.store_items(connection, [batch("j", "t", [answer(0), answer(1, outcome=ERROR)])])
    seal(connection, job("j", plan("t", 2)))
    assert job_reads.get_job_result(connection, "j").sealed
    duckdb_store.store_events(connection, [event("0009", job("j", plan("t", 2), attempt=2), "retried")])
    assert not job_reads.get_job_result(connection, "j").sealed


def test_infrastructure_errors_count_as_outcomes_and_in_no_metric(connection: Connection) -> None:
    known(connection, plan("t", 4))
    duckdb_store.store_items(connection, [batch("j", "t", [answer(0), answer(1, "no"), answer(2, outcome=ERROR)])])
    result = job_reads.get_job_result(connection, "j")
    assert result.outcomes.infrastructure_error == 1
    assert result.outcomes.answered == 2
    assert result.tasks[0].metrics[0].n == 2
    assert result.tasks[0].majority_share == 1.0


def test_a_sealed_result_is_the_one_that_was_stored(connection: Connection) -> None:
    response = run(connection, job("j", plan("t", 10)), right=7, wrong=3)
    assert job_reads.get_job_result(connection, "j") == response.result
    assert response.result.latency_p50_ms == pytest.approx(14.5)
    assert (response.result.input_tokens, response.result.output_tokens) == (200, 30)
