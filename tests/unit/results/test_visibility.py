"""Who may read what."""

from __future__ import annotations

import pytest

from services.errors import NotFoundError
from services.results.intake import writes
from services.results.runs import job_reads
from services.results.storage.database import Connection
from services.results.visibility import Visibility
from tests.unit.results.builders import event, job
from touchstone.v1 import results_service_pb2


def test_another_users_job_reads_like_one_that_does_not_exist(connection: Connection) -> None:
    writes.store_events(connection, [event("1", job("theirs", owner="bob"))])
    with pytest.raises(NotFoundError) as hidden:
        job_reads.get_job_result(connection, "theirs", Visibility("ann"))
    with pytest.raises(NotFoundError) as missing:
        job_reads.get_job_result(connection, "nobody", Visibility("ann"))
    assert hidden.value.message.replace("theirs", "nobody") == missing.value.message
    assert job_reads.get_job(connection, "theirs", Visibility("bob")).owner == "bob"
    asked = results_service_pb2.ListEventsRequest(job_id="theirs")
    with pytest.raises(NotFoundError):
        job_reads.list_events(connection, asked, Visibility("ann"))
    trail = job_reads.list_events(connection, results_service_pb2.ListEventsRequest(), Visibility("ann"))
    assert list(trail.events) == []
