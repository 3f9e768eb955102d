"""Recorded calls are stored once, in the run that is open when they end, and deleted when they are no longer needed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from services.bus.contract import run_end_subject, run_text_subject
from services.errors import NotFoundError
from services.results.calls import closing, recorded
from services.results.calls.store import store
from services.results.storage.database import Connection
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.call_pb2 import Call, CallText, RecordedCall, RecordedRun, RunEnd

NOW = datetime.now(UTC)


class Stream:
    """Messages of USAGE as the results service gets them."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.sent: list[Any] = []

    def send(self, subject: str, message: Any) -> None:
        numbers = SimpleNamespace(sequence=SimpleNamespace(stream=len(self.sent) + 1))
        self.sent.append(SimpleNamespace(subject=subject, data=message.SerializeToString(), metadata=numbers))
        store(self.connection, self.sent[-1:])

    def begin(self, number: int, **fields: Any) -> Call:
        call = made(number, Call.OUTCOME_UNSPECIFIED, **fields)
        self.send("usage.local", call)
        return call

    def call(self, number: int, request: str = "hello", answer: str = "HELLO", **fields: Any) -> Call:
        finish_reason = fields.pop("finish_reason", "")
        call = made(number, **fields)
        kept = RecordedCall(
            request=f'{{"messages":[{{"role":"user","content":"{request}"}}]}}',
            response=answer,
            finish_reason=finish_reason,
        )
        data = kept.SerializeToString()
        parts = [data[:5], data[5:]]
        for place, part in enumerate(parts):
            text = CallText(call_id=call.call_id, part=place, data=part)
            self.send(run_text_subject(call.owner, call.run), text)
        call.texts = len(parts)
        self.send("usage.local", call)
        return call

    def end(self, run: RecordedRun, *, discarded: bool = False) -> None:
        ended = RunEnd(run_id=run.run_id, discarded=discarded)
        ended.ended_at.FromDatetime(NOW)
        self.send_end(run, ended)

    def send_end(self, run: RecordedRun, ended: RunEnd) -> None:
        self.send(run_end_subject(run.owner, run.name), ended)


def made(number: int, outcome: Call.Outcome = Call.OUTCOME_ANSWERED, **fields: Any) -> Call:
    given: dict[str, Any] = {"owner": "ann", "endpoint": "local", "model": "m", "run": "support"} | fields
    call = Call(call_id=f"00000000-0000-0000-0000-{number:012}", outcome=outcome, **given)
    call.started_at.FromDatetime(NOW + timedelta(seconds=number))
    return call


@pytest.fixture
def stream(connection: Connection) -> Stream:
    return Stream(connection)


def said(connection: Connection, run_id: str) -> list[str]:
    return [kept.response for _, kept in recorded.calls(connection, run_id)]


def test_a_call_is_part_of_the_run_that_is_open_when_it_ends(connection: Connection, stream: Stream) -> None:
    stream.begin(3)
    stream.call(1, answer="ONE")
    run = recorded.newest(connection, "ann", "support")
    assert (run.run_id, run.calls, run.unfinished) == (made(1).call_id, 1, 1)
    assert list(run.models) == ["m@local"]
    stream.end(run)
    stream.call(3, answer="THREE")
    later = recorded.newest(connection, "ann", "support")
    assert (later.run_id, later.calls, later.unfinished) == (made(3).call_id, 1, 0)
    assert said(connection, run.run_id) == ["ONE"]
    assert said(connection, later.run_id) == ["THREE"]
    (listed,) = recorded.list_runs(connection, pb.ListRecordedRunsRequest(), "ann").runs
    assert listed.run_id == later.run_id
    assert not recorded.list_runs(connection, pb.ListRecordedRunsRequest(), "bob").runs
    with pytest.raises(NotFoundError):
        recorded.newest(connection, "bob", "support")


def test_reading_the_stream_again_changes_nothing(connection: Connection, stream: Stream) -> None:
    for number in range(3):
        stream.call(number, answer=str(number))
    run = recorded.newest(connection, "ann", "support")
    stream.end(run)
    stream.call(7, answer="7")
    store(connection, stream.sent)
    stream.end(run)
    assert said(connection, run.run_id) == ["0", "1", "2"]
    assert recorded.newest(connection, "ann", "support").calls == 1
    # Also after a round of tidying, between the texts and their repeated end.
    recorded.forget_texts(connection, NOW.replace(tzinfo=None))
    assert connection.execute("SELECT count(*) FROM call_texts").fetchall() == [(0,)]
    store(connection, stream.sent)
    assert said(connection, run.run_id) == ["0", "1", "2"]


def test_a_call_without_all_of_its_texts_is_not_recorded(connection: Connection, stream: Stream) -> None:
    call = stream.begin(1)
    stream.send(run_text_subject("ann", "support"), CallText(call_id=call.call_id, part=0, data=b"x"))
    call.outcome, call.texts = Call.OUTCOME_ANSWERED, 2
    stream.send("usage.local", call)
    with pytest.raises(NotFoundError):
        recorded.newest(connection, "ann", "support")
    assert not recorded.stale(connection, 0, NOW.replace(tzinfo=None))


def test_rows_are_requests_and_a_repeated_failure_is_one_item(connection: Connection, stream: Stream) -> None:
    stream.call(1, "again", "A")
    stream.call(2, "again", outcome=Call.OUTCOME_FAILED, error="Down.")
    stream.call(3, "again", "B")
    stream.call(4, "again", "C")
    stream.call(5, "again", "D", model="other")
    stream.call(6, "alone", outcome=Call.OUTCOME_REFUSED, error="No.")
    run = recorded.newest(connection, "ann", "support")
    assert (run.calls, run.failed) == (6, 2)
    plan = closing._planned(connection, run.run_id)
    again, second, third, alone = plan.rows
    assert [again, second, third] == [again, f"{again}-2", f"{again}-3"]
    of_m = plan.answers["m@local"]
    found = recorded.some(connection, list(of_m.values()))
    answered = {row: found[call_id] for row, call_id in of_m.items()}
    assert {row: kept.response for row, (_, kept) in answered.items() if row != alone} == {
        again: "A",
        second: "B",
        third: "C",
    }
    assert recorded.error_of(*answered[alone]) == "No."
    assert list(plan.answers["other@local"]) == [again]


def test_old_runs_and_those_beyond_the_bound_are_deleted(connection: Connection, stream: Stream) -> None:
    stream.call(1, run="old")
    stream.call(2, run="new")
    now = NOW.replace(tzinfo=None)
    assert not recorded.stale(connection, 0, now)
    size = recorded.newest(connection, "ann", "new").bytes
    assert [run.name for run in recorded.stale(connection, size, now)] == ["old"]
    assert len(recorded.stale(connection, 0, now + timedelta(days=8))) == 2
    run = recorded.newest(connection, "ann", "old")
    stream.end(run, discarded=True)
    ((closed, position, discarded),) = recorded.closed(connection)
    assert (closed.run_id, position, discarded) == (run.run_id, len(stream.sent), True)
    recorded.drop(connection, run.run_id, now)
    assert not recorded.closed(connection)
    assert said(connection, run.run_id) == []
    with pytest.raises(NotFoundError):
        recorded.newest(connection, "ann", "old")


def test_an_answer_keeps_what_the_call_took_and_fits_an_import() -> None:
    kept = RecordedCall(response="é" * 200_000, reasoning="why", finish_reason="stop")
    call = made(1, cost_usd=0.5, input_tokens=3, output_tokens=2**40)
    answer = closing._answer(4, "row", call, kept)
    assert (answer.item, answer.finish_reason, answer.cost_usd, answer.output_tokens) == (4, "length", 0.5, 2**31 - 1)
    assert len(answer.response.encode()) <= 256 * 1024
    assert answer.reasoning == "why"
    kept.tool_calls.add(id="1", name="f", arguments="x" * 200_000)
    assert "tool calls" in closing._answer(4, "row", call, kept).error


def test_the_order_of_the_stream_decides_what_a_budget_allows(
    connection: Connection, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(number: int, reserved: float, budget: float = 1.0) -> bool:
        call = stream.begin(number, budget_usd=budget, reserved_usd=reserved)
        return recorded.admitted(connection, call.call_id).admitted

    assert begin(1, 0.6)
    assert not begin(2, 0.5), "the first one is still under way"
    assert begin(3, 0.4)
    stream.call(1, cost_usd=0.1, budget_usd=1.0, reserved_usd=0.6)
    assert begin(4, 0.5), "the first one cost less than was reserved"
    assert begin(4, 0.5), "its beginning came twice"
    stream.call(5, cost_usd=0.2)
    assert not begin(6, 0.01), "calls without a budget count as well"
    assert begin(6, 0.01, budget=2.0)
    run = recorded.newest(connection, "ann", "support")
    assert (run.calls, run.unfinished) == (2, 3), "a call that was not admitted is not under way"
    assert run.cost_usd == pytest.approx(0.1 + 0.4 + 0.5 + 0.2 + 0.01)
    # A failed call whose cost nobody knows counts as what was reserved, and one that cost nothing as nothing.
    stream.call(3, outcome=Call.OUTCOME_FAILED, error="It broke off.", budget_usd=1.0, reserved_usd=0.4)
    stream.call(4, outcome=Call.OUTCOME_REFUSED, error="No.", budget_usd=1.0)
    assert recorded.newest(connection, "ann", "support").cost_usd == pytest.approx(0.1 + 0.4 + 0.2 + 0.01)
    # A call that was not admitted has no texts.
    refused = made(2, Call.OUTCOME_REFUSED, budget_usd=1.0)
    stream.send("usage.local", refused)
    with pytest.raises(NotFoundError):
        recorded.admitted(connection, refused.call_id)
    # Reading the stream again, many messages at once, decides the same.
    stored = "SELECT call_id, run_id, position, held_usd, recorded FROM recorded_calls ORDER BY call_id"
    decided = connection.execute(stored).fetchall()
    monkeypatch.setattr("services.results.calls.store._GROUP_BYTES", 1)
    for table in ("recorded_calls", "recorded_runs", "call_texts"):
        connection.execute(f"DELETE FROM {table}")
    store(connection, stream.sent)
    assert connection.execute(stored).fetchall() == decided


def test_the_models_of_a_run_are_counted_in_the_order_of_the_stream(connection: Connection, stream: Stream) -> None:
    def others(call: Call) -> int:
        return recorded.admitted(connection, call.call_id).other_models

    first = stream.begin(1, model="a")
    second = stream.begin(2, model="b")
    assert [others(call) for call in (first, second)] == [0, 1]
    stream.call(2, model="b")
    assert others(stream.begin(3, model="b")) == 0, "the run has this model"
    assert others(stream.begin(4, model="b", endpoint="other")) == 2
    assert others(stream.begin(5, model="c", run="another")) == 0
    stream.end(recorded.newest(connection, "ann", "support"))
    stream.call(6, model="z")
    assert others(stream.begin(7, model="c")) == 4, "those under way come into the next run"


def test_a_lost_call_counts_until_its_run_ends(connection: Connection, stream: Stream) -> None:
    stream.call(1, cost_usd=0.1)
    lost = made(2, Call.OUTCOME_UNSPECIFIED, budget_usd=1.0, reserved_usd=0.5)
    lost.started_at.FromDatetime(NOW - timedelta(hours=2))
    stream.send("usage.local", lost)
    recorded.forget_texts(connection, NOW.replace(tzinfo=None) + timedelta(days=30))
    run = recorded.newest(connection, "ann", "support")
    assert run.cost_usd == pytest.approx(0.6)
    under_way = stream.begin(3, budget_usd=1.0, reserved_usd=0.3)
    stream.end(run)
    stream.call(4, cost_usd=0.0)
    later = recorded.newest(connection, "ann", "support")
    assert later.cost_usd == pytest.approx(0.3), "what is still under way counts in the next run"
    stream.end(later)
    recorded.forget_texts(connection, NOW.replace(tzinfo=None) + timedelta(days=30))
    with pytest.raises(NotFoundError):
        recorded.admitted(connection, under_way.call_id)
