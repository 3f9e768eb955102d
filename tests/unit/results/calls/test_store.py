"""Calls are stored once, and by their end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from services.errors import InvalidRequestError
from services.results.calls import reads
from services.results.calls.store import store
from services.results.storage.database import Connection
from services.results.visibility import Visibility
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.call_pb2 import Call

NOON = datetime(2026, 11, 24, 12, tzinfo=UTC)


def call(number: int, outcome: Call.Outcome = Call.OUTCOME_ANSWERED, **fields: Any) -> Call:
    given: dict[str, Any] = {"owner": "ann", "endpoint": "local", "model": "m"} | fields
    made = Call(call_id=f"00000000-0000-0000-0000-{number:012}", outcome=outcome, **given)
    made.started_at.FromDatetime(NOON + timedelta(minutes=number))
    return made


def keep(connection: Connection, *calls: Call) -> None:
    messages: list[Any] = [
        SimpleNamespace(subject=f"usage.{one.endpoint}", data=one.SerializeToString()) for one in calls
    ]
    store(connection, messages)


def test_the_end_replaces_the_beginning_and_nothing_replaces_the_end(connection: Connection) -> None:
    begun, ended = call(1, Call.OUTCOME_UNSPECIFIED), call(1, cost_usd=0.5)
    keep(connection, begun)
    assert list(reads.list_calls(connection, pb.ListCallsRequest()).calls) == [begun]
    keep(connection, ended, begun, call(1, Call.OUTCOME_FAILED))
    assert list(reads.list_calls(connection, pb.ListCallsRequest()).calls) == [ended]


def test_lists_are_filtered_and_paged_newest_first(connection: Connection) -> None:
    keep(connection, *(call(n, owner="ann" if n % 2 else "bob", endpoint=f"e{n % 3}") for n in range(7)))
    request = pb.ListCallsRequest(page_size=2, owner="bob")
    found: list[int] = []
    while True:
        page = reads.list_calls(connection, request)
        found += [int(one.call_id[-3:]) for one in page.calls]
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert found == [6, 4, 2, 0]
    assert {one.endpoint for one in reads.list_calls(connection, pb.ListCallsRequest(endpoint="e1")).calls} == {"e1"}
    own = reads.list_calls(connection, pb.ListCallsRequest(), Visibility("ann")).calls
    assert {one.owner for one in own} == {"ann"}
    later = pb.ListCallsRequest()
    later.started_after.FromDatetime(NOON + timedelta(minutes=5))
    assert len(reads.list_calls(connection, later).calls) == 2
    with pytest.raises(InvalidRequestError):
        reads.list_calls(connection, pb.ListCallsRequest(page_token="x"))


def test_usage_is_summed_by_user_and_model(connection: Connection) -> None:
    keep(
        connection,
        call(1, input_tokens=10, output_tokens=5, cost_usd=0.25),
        call(2, input_tokens=1, output_tokens=1, cost_usd=0.25),
        call(3, Call.OUTCOME_CANCELLED),
        call(4, Call.OUTCOME_REFUSED),
        call(5, owner="bob", cost_usd=2.0),
    )
    bob, ann = reads.call_usage(connection, pb.GetCallUsageRequest()).usage
    assert (bob.owner, bob.cost_usd) == ("bob", 2.0)
    assert (ann.calls, ann.answered, ann.unpriced) == (4, 2, 1)
    assert (ann.input_tokens, ann.output_tokens, ann.cost_usd) == (11, 6, 0.5)
    assert ann.last_at.ToDatetime(UTC) == NOON + timedelta(minutes=4)
    assert [one.owner for one in reads.call_usage(connection, pb.GetCallUsageRequest(), Visibility("ann")).usage] == [
        "ann"
    ]
