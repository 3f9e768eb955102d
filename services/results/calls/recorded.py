"""Recorded runs: calls that a user makes under one name. Each function runs inside the caller's transaction.

A call belongs to the run of its name that is open when its end is stored. The end of a run is on the same stream as the
calls, so reading the stream again gives the same runs. Texts stay until the run's jobs are created, a week
without that, and within the store's bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from services.errors import NotFoundError
from services.results import paging
from services.results.storage.database import Connection, first_row
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.call_pb2 import Call, RecordedCall, RecordedRun, RunEnd

KEPT = timedelta(days=7)
_LONGEST_CALL = timedelta(hours=1)
"""What has not ended for longer has lost its evaluator."""
CHUNK = 64
"""Calls per read; each may take some megabytes."""
_TEXTS_KEPT = timedelta(days=1)


# -- storing -------------------------------------------------------------------------------------------------------


def _cost(connection: Connection, call: Call) -> float:
    """What the other calls of a call's run count, those under way among them."""
    ((found,),) = connection.execute(
        "SELECT coalesce(sum(held_usd), 0.0) FROM recorded_calls LEFT JOIN recorded_runs USING (run_id) "
        "WHERE recorded_calls.owner = $owner AND recorded_calls.name = $name AND closed_at IS NULL "
        "AND call_id <> $call_id",
        {"owner": call.owner, "name": call.run, "call_id": call.call_id},
    ).fetchall()
    return float(found)


def admitted(connection: Connection, call_id: str) -> pb.AdmitCallResponse:
    """Whether the budget allows a call, which was decided when its beginning was stored. Raises NotFoundError for one
    that is not stored."""
    row = first_row(
        connection,
        "SELECT call, held_usd IS NOT NULL, position FROM recorded_calls WHERE call_id = $id",
        {"id": call_id},
    )
    if row is None:
        raise NotFoundError(f"Call {call_id} not found.")
    call = Call.FromString(row[0])
    return pb.AdmitCallResponse(
        admitted=row[1], cost_usd=_cost(connection, call), other_models=_other_models(connection, call, row[2])
    )


def _other_models(connection: Connection, call: Call, position: int) -> int:
    """As in AdmitCallResponse. Calls under way count if they began before this one, so that of two new models that are
    called at once the first one is admitted."""
    ((found, known),) = connection.execute(
        "SELECT count(DISTINCT (model, endpoint)), coalesce(bool_or(model = $model AND endpoint = $endpoint), false) "
        "FROM recorded_calls LEFT JOIN recorded_runs USING (run_id) WHERE recorded_calls.owner = $owner "
        "AND recorded_calls.name = $name AND closed_at IS NULL AND call_id <> $call_id "
        "AND (run_id <> '' OR (position < $position AND held_usd IS NOT NULL AND began_at > $since))",
        {
            "model": call.model,
            "endpoint": call.endpoint,
            "owner": call.owner,
            "name": call.run,
            "call_id": call.call_id,
            "position": position,
            "since": _now() - _LONGEST_CALL,
        },
    ).fetchall()
    return 0 if known else int(found)


def error_of(call: Call, recorded: RecordedCall) -> str:
    """Why a call that has ended has no answer; empty where it has one."""
    if call.outcome == Call.OUTCOME_ANSWERED:
        return recorded.error
    return call.error or "The call failed."


def end(connection: Connection, ended: RunEnd, position: int) -> None:
    """Closes a run. A second end changes nothing, but may say that the run was deleted."""
    run = _run(connection, ended.run_id)
    if run is None:
        return
    if run.HasField("closed_at"):
        if ended.discarded:
            where = {"run_id": run.run_id}
            connection.execute("UPDATE recorded_runs SET discarded = true WHERE run_id = $run_id", where)
        return
    run.closed_at.CopyFrom(ended.ended_at)
    connection.execute(
        "UPDATE recorded_runs SET closed_at = $closed_at, discarded = $discarded, last_position = $position, "
        "run = $run WHERE run_id = $run_id",
        {
            "run_id": run.run_id,
            "closed_at": ended.ended_at.ToDatetime(),
            "discarded": ended.discarded,
            "position": position,
            "run": run.SerializeToString(),
        },
    )
    # Calls whose evaluator was lost: what is reserved for them must not count in the next run.
    connection.execute(
        "DELETE FROM recorded_calls WHERE run_id = '' AND owner = $owner AND name = $name AND began_at < $lost",
        {"owner": run.owner, "name": run.name, "lost": ended.ended_at.ToDatetime() - _LONGEST_CALL},
    )


def open_run(connection: Connection, call: Call) -> str:
    """The open run of the call's name, which the call opens if there is none."""
    where = {"owner": call.owner, "name": call.run}
    found = first_row(
        connection,
        "SELECT run_id FROM recorded_runs WHERE owner = $owner AND name = $name AND closed_at IS NULL",
        where,
    )
    if found is not None:
        return str(found[0])
    connection.execute(
        "INSERT INTO recorded_runs VALUES ($run_id, $owner, $name, $at, NULL, false, 0, NULL, NULL)",
        where | {"run_id": call.call_id, "at": call.started_at.ToDatetime()},
    )
    return call.call_id


# -- reading -------------------------------------------------------------------------------------------------------


def list_runs(connection: Connection, request: pb.ListRecordedRunsRequest, owner: str) -> pb.ListRecordedRunsResponse:
    """The open ones. Raises InvalidRequestError for a bad page."""
    size = paging.page_size(request.page_size, default=100, most=1000)
    filter_ = paging.page_filter(request)
    after = paging.decode_token(request.page_token, filter_, (int, str)) or (None, None)
    rows = connection.execute(
        "SELECT run_id FROM recorded_runs WHERE owner = $owner AND closed_at IS NULL AND "
        "($after_at IS NULL OR (opened_at, run_id) < ($after_at::TIMESTAMP, $after_id)) "
        "ORDER BY opened_at DESC, run_id DESC LIMIT $size",
        {
            "owner": owner,
            "after_at": paging.time_of(after[0]) if after[0] is not None else None,
            "after_id": after[1],
            "size": size + 1,
        },
    ).fetchall()
    found = [run for (run_id,) in rows if (run := _run(connection, run_id)) is not None]
    runs, token = paging.fill_page(found, size, filter_, lambda run: [run.opened_at.ToMicroseconds(), run.run_id])
    return pb.ListRecordedRunsResponse(runs=runs, next_page_token=token)


def newest(connection: Connection, owner: str, name: str) -> RecordedRun:
    """The open run of that name, or the one that was closed last. Raises NotFoundError."""
    found = first_row(
        connection,
        "SELECT run_id FROM recorded_runs WHERE owner = $owner AND name = $name AND NOT discarded "
        "ORDER BY closed_at DESC NULLS FIRST LIMIT 1",
        {"owner": owner, "name": name},
    )
    run = _run(connection, found[0]) if found is not None else None
    if run is None:
        raise NotFoundError(
            f"No recorded run has the name {name[:100]!r}. Send the header X-Touchstone-Run with a call to begin one."
        )
    return run


def closed_before(connection: Connection, run: RecordedRun) -> list[RecordedRun]:
    """Closed runs of the same name whose texts are stored, the oldest first."""
    rows = connection.execute(
        "SELECT run FROM recorded_runs WHERE owner = $owner AND name = $name AND run_id <> $run_id "
        "AND closed_at IS NOT NULL AND NOT discarded AND dropped_at IS NULL ORDER BY closed_at",
        {"owner": run.owner, "name": run.name, "run_id": run.run_id},
    ).fetchall()
    return [RecordedRun.FromString(data) for (data,) in rows]


def get(connection: Connection, run_id: str) -> RecordedRun:
    """Raises NotFoundError."""
    run = _run(connection, run_id)
    if run is None:
        raise NotFoundError(f"Recorded run {run_id} not found.")
    return run


def calls(connection: Connection, run_id: str) -> Iterator[tuple[Call, RecordedCall]]:
    """In the order in which they ended."""
    after = -1
    while True:
        rows = connection.execute(
            "SELECT position, call, recorded FROM recorded_calls WHERE run_id = $run_id AND position > $after "
            "ORDER BY position LIMIT $most",
            {"run_id": run_id, "after": after, "most": CHUNK},
        ).fetchall()
        for position, call, recorded in rows:
            after = position
            yield Call.FromString(call), RecordedCall.FromString(recorded)
        if len(rows) < CHUNK:
            return


def some(connection: Connection, call_ids: Sequence[str]) -> dict[str, tuple[Call, RecordedCall]]:
    """Calls by id. Raises NotFoundError where their run was dropped."""
    rows = connection.execute(
        "SELECT call_id, call, recorded FROM recorded_calls WHERE call_id IN (SELECT unnest($ids::VARCHAR[]))",
        {"ids": call_ids},
    ).fetchall()
    if len(rows) < len(call_ids):
        raise NotFoundError("The texts of the recorded run were deleted while it was closed.")
    return {call_id: (Call.FromString(call), RecordedCall.FromString(kept)) for call_id, call, kept in rows}


def _run(connection: Connection, run_id: str) -> RecordedRun | None:
    row = first_row(
        connection, "SELECT owner, name, opened_at, run FROM recorded_runs WHERE run_id = $id", {"id": run_id}
    )
    if row is None:
        return None
    owner, name, opened_at, stored = row
    if stored is not None:
        return RecordedRun.FromString(stored)
    run = RecordedRun(run_id=run_id, name=name, owner=owner)
    run.opened_at.FromDatetime(opened_at)
    ((run.calls, run.failed, run.bytes, run.cost_usd, last_at, models),) = connection.execute(
        "SELECT count(*), count(*) FILTER (failed), coalesce(sum(bytes), 0)::BIGINT, "
        "coalesce(sum(held_usd), 0.0), max(began_at), "
        "list_sort(list(DISTINCT model || '@' || endpoint)) FROM recorded_calls WHERE run_id = $id",
        {"id": run_id},
    ).fetchall()
    run.last_at.FromDatetime(last_at or opened_at)
    run.models.extend(models or ())
    since = _now() - _LONGEST_CALL
    ((run.unfinished, held),) = connection.execute(
        "SELECT count(*) FILTER (began_at > $since AND held_usd IS NOT NULL), coalesce(sum(held_usd), 0.0) "
        "FROM recorded_calls "
        "WHERE run_id = '' AND owner = $owner AND name = $name",
        {"owner": owner, "name": name, "since": since},
    ).fetchall()
    run.cost_usd += held
    return run


def _now() -> datetime:
    """UTC without a zone."""
    return datetime.now(UTC).replace(tzinfo=None)


# -- deleting ------------------------------------------------------------------------------------------------------


def stale(connection: Connection, max_bytes: int, now: datetime) -> list[RecordedRun]:
    """Open runs without a call for a week, and the oldest ones beyond the bound; 0 means no bound."""
    rows = connection.execute(
        "SELECT run_id, sum(bytes)::BIGINT, max(began_at) < $oldest "
        "FROM recorded_calls JOIN recorded_runs USING (run_id) "
        "WHERE closed_at IS NULL GROUP BY run_id ORDER BY max(began_at) DESC, run_id",
        {"oldest": now - KEPT},
    ).fetchall()
    used, found = 0, []
    for run_id, size, over in rows:
        used += size
        if over or (max_bytes and used > max_bytes):
            found.append(run_id)
            used -= size
    return [run for run_id in found if (run := _run(connection, run_id)) is not None]


def closed(connection: Connection) -> list[tuple[RecordedRun, int, bool]]:
    """Closed runs whose texts are stored, with the position of their end, and whether they were discarded."""
    rows = connection.execute(
        "SELECT run, last_position, discarded FROM recorded_runs WHERE closed_at IS NOT NULL AND dropped_at IS NULL"
    ).fetchall()
    return [(RecordedRun.FromString(run), position, discarded) for run, position, discarded in rows]


def drop(connection: Connection, run_id: str, now: datetime) -> None:
    """Deletes what a run has recorded."""
    where = {"run_id": run_id}
    connection.execute("UPDATE recorded_runs SET dropped_at = $now WHERE run_id = $run_id", where | {"now": now})
    connection.execute("DELETE FROM recorded_calls WHERE run_id = $run_id", where)


def has_texts(connection: Connection) -> bool:
    texts = "SELECT 1 WHERE exists(FROM call_texts) OR exists(FROM recorded_calls WHERE run_id = '')"
    return first_row(connection, texts, {}) is not None


def forget_texts(connection: Connection, now: datetime) -> None:
    """Deletes parts whose call has ended, and parts and beginnings of calls that never will."""
    connection.execute(
        "DELETE FROM call_texts WHERE kept_at < $oldest "
        "OR call_id IN (SELECT call_id FROM calls WHERE outcome <> $begun)",
        {"oldest": now - _TEXTS_KEPT, "begun": Call.OUTCOME_UNSPECIFIED},
    )
    # While its run is open, a lost call counts in the budget.
    connection.execute(
        "DELETE FROM recorded_calls WHERE run_id = '' AND began_at < $oldest AND (coalesce(held_usd, 0) = 0 OR "
        "began_at < $old AND (owner, name) NOT IN (SELECT owner, name FROM recorded_runs WHERE closed_at IS NULL))",
        {"oldest": now - _TEXTS_KEPT, "old": now - KEPT},
    )
