"""Page sizes and tokens."""

from __future__ import annotations

import base64

import pytest

from services.errors import InvalidRequestError
from services.results import paging
from services.results.intake import writes
from services.results.items import reads
from services.results.runs import job_reads
from services.results.storage.database import Connection
from tests.unit.results.builders import answer, batch, known
from tests.unit.results.items.listed import items_pages
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.results_service_pb2 import ListItemsRequest


def test_a_page_token_fits_only_the_request_it_was_made_for(connection: Connection) -> None:
    known(connection)
    writes.store_items(connection, [batch("j", "t", [answer(i) for i in range(5)])])
    token = next(items_pages(connection, page_size=2)).next_page_token
    for request in (
        ListItemsRequest(job_id="j", page_token=token, query="x"),
        ListItemsRequest(job_id="j", page_token=token, filter=ListItemsRequest.FILTER_ERRORS),
        ListItemsRequest(job_id="j", page_token="bm9uc2Vuc2U="),
        ListItemsRequest(job_id="j", page_token="☃"),
        ListItemsRequest(job_id="j", page_token=paging.encode_token("0" * 16, ["t", 1, 1])),
    ):
        with pytest.raises(InvalidRequestError, match="page_token is not valid"):
            reads.list_items(connection, request)
    larger = reads.list_items(connection, ListItemsRequest(job_id="j", page_token=token, page_size=100))
    assert [stored.result.item for stored in larger.items] == [2, 3, 4]


def test_a_negative_page_size_is_refused_and_a_large_one_is_the_most(connection: Connection) -> None:
    with pytest.raises(InvalidRequestError, match="page_size"):
        job_reads.list_jobs(connection, pb.ResultsServiceListJobsRequest(page_size=-1))
    assert paging.page_size(5000, 20, 1000) == 1000
    assert paging.page_size(0, 20, 1000) == 20


@pytest.mark.parametrize("key", [[2**70, "a"], [1, "\ud800"]])
def test_a_token_that_somebody_wrote_is_refused(connection: Connection, key: list[int | str]) -> None:
    digest = paging.page_filter(pb.ResultsServiceListJobsRequest())
    request = pb.ResultsServiceListJobsRequest(page_token=paging.encode_token(digest, key))
    with pytest.raises(InvalidRequestError, match="page_token is not valid"):
        job_reads.list_jobs(connection, request)
    request.page_token = base64.urlsafe_b64encode(b"[" * 100_000).decode()
    with pytest.raises(InvalidRequestError, match="page_token is not valid"):
        job_reads.list_jobs(connection, request)
