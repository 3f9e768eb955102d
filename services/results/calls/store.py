"""Stores calls as evaluators report them, and ends of recorded runs. Runs inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence

from nats.aio.msg import Msg

from services.bus import is_run_end, is_run_text
from services.results.calls import recorded
from services.results.storage.database import Connection
from touchstone.v1.call_pb2 import Call, CallText, RunEnd


def store(connection: Connection, messages: Sequence[Msg]) -> None:
    """The end of a call replaces its beginning; whatever comes twice or late changes nothing."""
    for msg in messages:
        if is_run_text(msg.subject):
            recorded.keep_text(connection, CallText.FromString(msg.data))
        elif is_run_end(msg.subject):
            recorded.end(connection, RunEnd.FromString(msg.data), msg.metadata.sequence.stream)
        else:
            call = Call.FromString(msg.data)
            _store(connection, call)
            if call.run:
                recorded.keep(connection, call, msg.metadata.sequence.stream)


def _store(connection: Connection, call: Call) -> None:
    connection.execute(
        "INSERT INTO calls VALUES ($call_id, $owner, $endpoint, $model, $started_at, $outcome, $input_tokens, "
        "$output_tokens, $cost_usd, $call) ON CONFLICT (call_id) DO UPDATE SET outcome = excluded.outcome, "
        "input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens, "
        "cost_usd = excluded.cost_usd, call = excluded.call WHERE calls.outcome = $begun",
        {
            "call_id": call.call_id,
            "owner": call.owner,
            "endpoint": call.endpoint,
            "model": call.model,
            "started_at": call.started_at.ToDatetime(),
            "outcome": call.outcome,
            "input_tokens": call.input_tokens if call.HasField("input_tokens") else None,
            "output_tokens": call.output_tokens if call.HasField("output_tokens") else None,
            "cost_usd": call.cost_usd if call.HasField("cost_usd") else None,
            "call": call.SerializeToString(),
            "begun": Call.OUTCOME_UNSPECIFIED,
        },
    )
