"""Stores calls as evaluators report them. Runs inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence

from nats.aio.msg import Msg

from services.results.storage.database import Connection
from touchstone.v1.call_pb2 import Call


def store(connection: Connection, messages: Sequence[Msg]) -> None:
    """The end of a call replaces its beginning; whatever comes twice or late changes nothing."""
    for call in (Call.FromString(msg.data) for msg in messages):
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
