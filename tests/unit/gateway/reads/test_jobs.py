"""Times of a job."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from services.gateway.reads import jobs
from services.gateway.reads.jobs import copy_of, iso
from touchstone.v1 import item_result_pb2, job_pb2

SOURCE = job_pb2.Job(
    job_id="a", spec=job_pb2.JobSpec(model="m", budget_usd=5, webhook_url="https://example.org", schedule_id="s")
)


def test_times_are_iso_8601_with_milliseconds_and_z() -> None:
    assert iso(Timestamp(seconds=1765140917, nanos=5_000_000)) == "2025-12-07T20:55:17.005Z"
    assert iso(Timestamp()) is None


def test_a_time_that_no_calendar_has_is_none() -> None:
    assert jobs.iso(Timestamp(seconds=10**15)) is None


def test_a_rescore_calls_nobody_and_so_has_no_budget() -> None:
    spec = copy_of(SOURCE, [])

    assert (spec.model, spec.reuse.job_id, list(spec.reuse.rerun)) == ("m", "a", [])
    assert (spec.budget_usd, spec.webhook_url, spec.schedule_id) == (0, "", "")


def test_a_rerun_keeps_the_budget_and_says_what_is_asked_again() -> None:
    spec = copy_of(SOURCE, [item_result_pb2.OUTCOME_REFUSED])

    assert spec.budget_usd == 5
    assert list(spec.reuse.rerun) == [item_result_pb2.OUTCOME_REFUSED]
    assert spec.webhook_url == ""
    assert SOURCE.spec.webhook_url == "https://example.org"
