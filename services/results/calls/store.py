"""Stores calls as evaluators report them, and ends of recorded runs. Runs inside the caller's transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from nats.aio.msg import Msg

from services.bus import is_run_end, is_run_text
from services.results.calls import recorded
from services.results.storage.database import Connection
from touchstone.v1.call_pb2 import Call, CallText, RecordedCall, RunEnd

_CALLS = pa.schema(
    [
        ("call_id", pa.string()),
        ("owner", pa.string()),
        ("endpoint", pa.string()),
        ("model", pa.string()),
        ("started_at", pa.timestamp("us")),
        ("outcome", pa.int32()),
        ("input_tokens", pa.int64()),
        ("output_tokens", pa.int64()),
        ("cost_usd", pa.float64()),
        ("call", pa.binary()),
    ]
)
_GROUP_BYTES = 8 * 1024 * 1024
"""Of texts that are read together."""
_TEXTS = pa.schema(
    [("call_id", pa.string()), ("part", pa.int32()), ("kept_at", pa.timestamp("us")), ("data", pa.binary())]
)
_RECORDED = pa.schema(
    [
        ("call_id", pa.string()),
        ("owner", pa.string()),
        ("name", pa.string()),
        ("run_id", pa.string()),
        ("position", pa.int64()),
        ("endpoint", pa.string()),
        ("model", pa.string()),
        ("failed", pa.bool_()),
        ("began_at", pa.timestamp("us")),
        ("bytes", pa.int64()),
        ("call", pa.binary()),
        ("recorded", pa.binary()),
        ("held_usd", pa.float64()),
    ]
)
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class _Recording:
    """The beginning or the end of a recorded call, with its position on the stream."""

    call: Call
    position: int

    @property
    def ended(self) -> bool:
        return self.call.outcome != Call.OUTCOME_UNSPECIFIED


def store(connection: Connection, messages: Sequence[Msg]) -> None:
    """The end of a call replaces its beginning; whatever comes twice or late changes nothing.

    All calls between two ends of runs are stored together: one by one, each took twenty times as long.
    """
    texts: list[CallText] = []
    calls: dict[str, Call] = {}
    recordings: list[_Recording] = []
    for msg in messages:
        if is_run_text(msg.subject):
            texts.append(CallText.FromString(msg.data))
        elif is_run_end(msg.subject):
            _store(connection, texts, calls, recordings)
            recorded.end(connection, RunEnd.FromString(msg.data), msg.metadata.sequence.stream)
        else:
            call = Call.FromString(msg.data)
            known = calls.get(call.call_id)
            if known is None or known.outcome == Call.OUTCOME_UNSPECIFIED:
                calls[call.call_id] = call
            if call.run:
                recordings.append(_Recording(call, msg.metadata.sequence.stream))
    _store(connection, texts, calls, recordings)


def _store(
    connection: Connection,
    texts: list[CallText],
    calls: dict[str, Call],
    recordings: list[_Recording],
) -> None:
    """Empties the three."""
    if texts:
        _keep_texts(connection, texts)
    if calls:
        _upsert_calls(connection, calls.values())
    if recordings:
        _keep(connection, recordings)
    for stored in (texts, calls, recordings):
        stored.clear()


def _upsert_calls(connection: Connection, calls: Iterable[Call]) -> None:
    rows = [
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
        }
        for call in calls
    ]
    connection.register("calls_batch", pa.Table.from_pylist(rows, _CALLS))
    connection.execute(
        "INSERT INTO calls FROM calls_batch ON CONFLICT (call_id) DO UPDATE SET outcome = excluded.outcome, "
        "input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens, "
        "cost_usd = excluded.cost_usd, call = excluded.call WHERE calls.outcome = $begun",
        {"begun": Call.OUTCOME_UNSPECIFIED},
    )
    connection.unregister("calls_batch")


# -- recorded calls ----------------------------------------------------------------------------------------------------


def _keep_texts(connection: Connection, texts: Iterable[CallText]) -> None:
    now = datetime.now(UTC).replace(tzinfo=None)
    rows = [{"call_id": text.call_id, "part": text.part, "kept_at": now, "data": text.data} for text in texts]
    connection.register("texts_batch", pa.Table.from_pylist(rows, _TEXTS))
    connection.execute("INSERT INTO call_texts FROM texts_batch ON CONFLICT DO NOTHING")
    connection.unregister("texts_batch")


def _keep(connection: Connection, recordings: Sequence[_Recording]) -> None:
    """Part of storing calls, in the order of the stream: notes those that begin, and puts those that have ended into
    the open run of their name. A call of which nothing was recorded, or whose texts were deleted, is not part of a
    run. The first end counts."""
    ids = sorted({one.call.call_id for one in recordings})
    kept, sizes, budgets = _kept(connection, ids), _sizes(connection, ids), _Budgets(connection, ids)
    newest: dict[str, _Recording] = {}
    held: dict[str, float | None] = {}
    for one in recordings:
        call_id = one.call.call_id
        if call_id in kept or (call_id in newest and newest[call_id].ended):
            continue
        newest[call_id] = one
        held[call_id] = budgets.end(one.call, sizes) if one.ended else budgets.begin(one.call)
    _upsert_recorded(
        connection, [_row(one, b"", "", held[call_id]) for call_id, one in newest.items() if not one.ended]
    )
    ended = sorted((one for one in newest.values() if one.ended), key=lambda one: one.position)
    whole = [one for one in ended if _is_whole(one.call, sizes)]
    runs: dict[tuple[str, str], str] = {}
    for one in whole:
        name = one.call.owner, one.call.run
        if name not in runs:
            runs[name] = recorded.open_run(connection, one.call)
    for group in _groups(whole, sizes):
        texts = _texts(connection, [one.call.call_id for one in group])
        rows = []
        for one in group:
            call = one.call
            rows.append(_row(one, texts[call.call_id], runs[call.owner, call.run], held[call.call_id]))
        _upsert_recorded(connection, rows)
    if lost := [one.call.call_id for one in ended if not _is_whole(one.call, sizes)]:
        connection.execute(
            "DELETE FROM recorded_calls WHERE call_id IN (SELECT unnest($ids::VARCHAR[]))", {"ids": lost}
        )


class _Budgets:
    """What the calls of runs count in their budgets, while messages are stored in their order. Of other calls than
    these, the database knows it."""

    def __init__(self, connection: Connection, call_ids: Sequence[str]) -> None:
        self._connection = connection
        self._call_ids = call_ids
        self._before: dict[tuple[str, str], float] = {}
        """By owner and name: what other calls count. It is asked for only where a call has a budget."""
        self._held: defaultdict[tuple[str, str], dict[str, float]] = defaultdict(dict)

    def begin(self, call: Call) -> float | None:
        """What a call that begins counts; None for one that may not."""
        name = call.owner, call.run
        if call.budget_usd and name not in self._before:
            self._load(name)
        others = self._before.get(name, 0.0) + sum(
            usd for call_id, usd in self._held[name].items() if call_id != call.call_id
        )
        fits = others + call.reserved_usd <= call.budget_usd * (1 + _ROUNDING)
        found = call.reserved_usd if fits or not call.budget_usd else None
        self._held[name][call.call_id] = found or 0.0
        return found

    def end(self, call: Call, sizes: Mapping[str, tuple[int, int]]) -> float:
        """What a call that has ended counts: nothing if it is not part of a run."""
        found = call.cost_usd if call.HasField("cost_usd") else call.reserved_usd
        self._held[call.owner, call.run][call.call_id] = found if _is_whole(call, sizes) else 0.0
        return found

    def _load(self, name: tuple[str, str]) -> None:
        """What is known already of this round's calls is newer than what the database has."""
        rows = self._connection.execute(
            "SELECT CASE WHEN call_id IN (SELECT unnest($ids::VARCHAR[])) THEN call_id ELSE '' END AS one, "
            "coalesce(sum(held_usd), 0.0) FROM recorded_calls LEFT JOIN recorded_runs USING (run_id) "
            "WHERE recorded_calls.owner = $owner AND recorded_calls.name = $name AND closed_at IS NULL GROUP BY one",
            {"owner": name[0], "name": name[1], "ids": self._call_ids},
        ).fetchall()
        found = {call_id: float(usd) for call_id, usd in rows}
        self._before[name] = found.pop("", 0.0)
        self._held[name] = found | self._held[name]


def _row(one: _Recording, data: bytes, run_id: str, held_usd: float | None) -> dict[str, Any]:
    call = one.call
    return {
        "call_id": call.call_id,
        "owner": call.owner,
        "name": call.run,
        "run_id": run_id,
        "position": one.position,
        "endpoint": call.endpoint,
        "model": call.model,
        "failed": bool(recorded.error_of(call, RecordedCall.FromString(data))) if one.ended else False,
        "began_at": call.started_at.ToDatetime(),
        "bytes": len(data),
        "call": call.SerializeToString(),
        "recorded": data,
        "held_usd": held_usd,
    }


def _upsert_recorded(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        return
    connection.register("recorded_batch", pa.Table.from_pylist(rows, _RECORDED))
    connection.execute(
        "INSERT INTO recorded_calls FROM recorded_batch ON CONFLICT (call_id) DO UPDATE SET run_id = excluded.run_id, "
        "position = excluded.position, failed = excluded.failed, bytes = excluded.bytes, call = excluded.call, "
        "recorded = excluded.recorded, held_usd = excluded.held_usd WHERE recorded_calls.run_id = ''"
    )
    connection.unregister("recorded_batch")


def _kept(connection: Connection, call_ids: Sequence[str]) -> set[str]:
    """Those of the calls that are part of a run."""
    rows = connection.execute(
        "SELECT call_id FROM recorded_calls WHERE run_id <> '' AND call_id IN (SELECT unnest($ids::VARCHAR[]))",
        {"ids": call_ids},
    ).fetchall()
    return {call_id for (call_id,) in rows}


def _sizes(connection: Connection, call_ids: Sequence[str]) -> dict[str, tuple[int, int]]:
    """How many parts the texts of each call have, and how many bytes."""
    rows = connection.execute(
        "SELECT call_id, count(*), sum(octet_length(data))::BIGINT FROM call_texts "
        "WHERE call_id IN (SELECT unnest($ids::VARCHAR[])) GROUP BY call_id",
        {"ids": call_ids},
    ).fetchall()
    return {call_id: (parts, size) for call_id, parts, size in rows}


def _is_whole(call: Call, sizes: Mapping[str, tuple[int, int]]) -> bool:
    parts, size = sizes.get(call.call_id, (0, 0))
    return parts == call.texts and size > 0


def _groups(recordings: Sequence[_Recording], sizes: Mapping[str, tuple[int, int]]) -> Iterator[list[_Recording]]:
    """Calls whose texts take little memory together: those of one may have some megabytes."""
    group: list[_Recording] = []
    used = 0
    for one in recordings:
        _, size = sizes[one.call.call_id]
        if group and used + size > _GROUP_BYTES:
            yield group
            group, used = [], 0
        group.append(one)
        used += size
    if group:
        yield group


def _texts(connection: Connection, call_ids: Sequence[str]) -> Mapping[str, bytes]:
    """What each call said."""
    found: defaultdict[str, bytes] = defaultdict(bytes)
    rows = connection.execute(
        "SELECT call_id, data FROM call_texts WHERE call_id IN (SELECT unnest($ids::VARCHAR[])) ORDER BY call_id, part",
        {"ids": call_ids},
    ).fetchall()
    for call_id, data in rows:
        found[call_id] += bytes(data)
    return found
