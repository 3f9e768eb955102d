"""What changed in a time, from stored results."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from services.errors import InvalidRequestError
from services.results.digests import reads
from services.results.digests.reads import get_digest
from services.results.storage.database import Connection
from services.results.storage.items_away import ItemsAwayError
from services.results.visibility import Visibility
from tests.unit.results.builders import START, job, plan, run
from touchstone.v1 import comparison_pb2, digest_pb2, suite_pb2
from touchstone.v1 import results_service_pb2 as pb

DAY = 24 * 60


def asked(connection: Connection, begin: int = DAY, end: int = 2 * DAY, **fields: str) -> digest_pb2.Digest:
    """The digest of these minutes."""
    request = pb.GetDigestRequest(**fields)  # type: ignore[arg-type]
    request.begin_at.FromDatetime(START + timedelta(minutes=begin))
    request.end_at.FromDatetime(START + timedelta(minutes=end))
    return get_digest(connection, request).digest


def stored(connection: Connection, name: str, right: int, minute: int, model: str = "a", **fields: str) -> None:
    made = job(name, plan("one", 200), model=model, minute=minute)
    for field, value in fields.items():
        setattr(made.receipt, field, value)
    run(connection, made, right, 200 - right, minute=minute)


def test_the_newest_run_is_compared_with_the_one_before_the_time(connection: Connection) -> None:
    stored(connection, "old", 100, 0)
    stored(connection, "before", 180, 60, server="vllm 1")
    stored(connection, "in", 150, DAY + 10)
    stored(connection, "newest", 120, DAY + 60, server="vllm 2")
    stored(connection, "later", 10, 3 * DAY)
    found = asked(connection)
    (one,) = found.series
    assert (one.model, one.suite, one.runs) == ("a", "glue", 2)
    assert (one.before.job_id, one.after.job_id) == ("before", "newest")
    assert (one.before.score, one.after.score) == (0.9, 0.6)
    assert one.verdict == comparison_pb2.VERDICT_WORSE
    assert (one.items, one.became_right, one.became_wrong) == (200, 0, 60)
    assert (one.before.server, one.after.server) == ("vllm 1", "vllm 2")
    assert one.after.median_latency_ms > 0
    assert not found.turned


def test_without_a_run_before_the_first_one_in_the_time_serves(connection: Connection) -> None:
    stored(connection, "first", 100, DAY + 10)
    (alone,) = asked(connection).series
    assert (alone.HasField("before"), alone.words) == (False, "There is no run to compare it with.")
    stored(connection, "second", 180, DAY + 20)
    (one,) = asked(connection).series
    assert (one.before.job_id, one.after.job_id, one.verdict) == ("first", "second", comparison_pb2.VERDICT_BETTER)


def test_items_that_a_comparison_needs_are_brought_back(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise ItemsAwayError(["further"])

    stored(connection, "before", 100, 0)
    stored(connection, "after", 110, DAY + 10)
    monkeypatch.setattr(reads, "find_score", away)
    with pytest.raises(ItemsAwayError):
        asked(connection)


def test_runs_in_another_mode_are_another_series(connection: Connection) -> None:
    stored(connection, "written", 100, 0)
    other = job("scored", plan("one", 200), model="a", minute=DAY + 5)
    other.spec.mode = suite_pb2.MODE_LOGLIKELIHOOD
    run(connection, other, 180, 20, minute=DAY + 5)
    stored(connection, "written-2", 110, DAY + 10)
    series = {one.after.job_id: one for one in asked(connection).series}
    assert series["written-2"].before.job_id == "written"
    assert not series["scored"].HasField("before")
    assert (series["written-2"].mode, series["scored"].mode) == (suite_pb2.MODE_GENERATE, suite_pb2.MODE_LOGLIKELIHOOD)


def test_runs_of_a_part_of_the_items_are_another_series(connection: Connection) -> None:
    stored(connection, "whole", 100, 0)
    for name, minute in (("pilot", 10), ("pilot-2", DAY + 20)):
        part = job(name, plan("one", 30), model="a", minute=minute, subset=True, item_set="thirty")
        run(connection, part, 25, 5, minute=minute)
    stored(connection, "whole-2", 110, DAY + 10)
    series = {one.after.job_id: one.before.job_id for one in asked(connection).series}
    assert series == {"pilot-2": "pilot", "whole-2": "whole"}
    assert {one.after.job_id: one.part_items for one in asked(connection).series} == {"pilot-2": 30, "whole-2": 0}
    assert not asked(connection).turned


def test_a_verdict_between_models_that_turned_is_named(connection: Connection) -> None:
    stored(connection, "a-1", 180, 0)
    stored(connection, "b-1", 120, 10, model="b")
    stored(connection, "a-2", 110, DAY + 10)
    stored(connection, "b-2", 170, DAY + 20, model="b")
    (turned,) = asked(connection).turned
    assert {turned.a, turned.b} == {"a@local", "b@local"}
    verdicts = (comparison_pb2.VERDICT_BETTER, comparison_pb2.VERDICT_WORSE)
    assert (turned.before, turned.after) == (verdicts if turned.a == "a@local" else verdicts[::-1])


def test_runs_that_cannot_be_compared_turn_no_verdict(connection: Connection) -> None:
    stored(connection, "a-1", 180, 0)
    stored(connection, "b-1", 120, 10, model="b")
    other = job("a-2", plan("one", 200), model="a", minute=DAY + 10)
    other.plan[0].scorer_version = "other"
    run(connection, other, 110, 90, minute=DAY + 10)
    stored(connection, "b-2", 170, DAY + 20, model="b")
    found = asked(connection)
    verdicts = {one.after.job_id: one.verdict for one in found.series}
    assert verdicts["a-2"] == comparison_pb2.VERDICT_NOT_COMPARABLE
    assert not found.turned


def test_another_time_another_schedule_and_others_jobs_are_left_out(connection: Connection) -> None:
    stored(connection, "one", 100, DAY + 10)
    assert not asked(connection, 2 * DAY, 3 * DAY).series
    assert not asked(connection, schedule_id="nightly").series
    assert not get_digest(connection, pb.GetDigestRequest(), Visibility("bob")).digest.series


@pytest.mark.parametrize(("begin", "end"), [(DAY, DAY), (DAY, 0), (0, 367 * DAY)])
def test_a_time_that_is_none_is_refused(connection: Connection, begin: int, end: int) -> None:
    with pytest.raises(InvalidRequestError, match="at most 366 days"):
        asked(connection, begin, end)


@pytest.mark.parametrize("seconds", [10**13, -(10**13), -62135596800])
def test_a_time_beyond_the_calendar_is_refused(connection: Connection, seconds: int) -> None:
    with pytest.raises(InvalidRequestError, match="between the years 1 and 9999"):
        get_digest(connection, pb.GetDigestRequest(end_at=Timestamp(seconds=seconds)))


def test_the_same_time_gives_the_same_digest(connection: Connection) -> None:
    stored(connection, "one", 100, 0)
    stored(connection, "two", 120, DAY + 10)
    assert asked(connection) == asked(connection)
    assert asked(connection).begin_at.ToDatetime() == datetime(2026, 11, 21, 8, 0)
