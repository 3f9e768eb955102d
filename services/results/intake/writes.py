"""Everything that is written to DuckDB. Each function runs inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from services.errors import NotFoundError
from services.results.imports import store as imports
from services.results.runs import job_reads
from services.results.scores.job_result import RULES, Computed
from services.results.storage import archived_items, item_rows, run_scores, text_retention
from services.results.storage.database import Connection, deleted_among, first_row, query
from services.words import refusals
from services.words.jobs import ENDED_EARLY, mode_of, suite_of
from touchstone.v1 import item_result_pb2, job_pb2, metric_pb2, results_service_pb2
from touchstone.v1.item_result_pb2 import OUTCOME_INFRASTRUCTURE_ERROR

_EVENTS = pa.schema(
    [
        ("event_id", pa.string()),
        ("job_id", pa.string()),
        ("occurred_at", pa.timestamp("us")),
        ("actor", pa.string()),
        ("action", pa.string()),
        ("event", pa.binary()),
    ]
)
_COUNTS = (
    f"SELECT task, count(*), count(*) FILTER (outcome = {OUTCOME_INFRASTRUCTURE_ERROR}) FROM items "
    "WHERE job_id = $job_id AND list_contains($tasks::VARCHAR[], task) GROUP BY task"
)


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a stream is stored. `created` distinguishes a stream from a later one with the same name."""

    stream: str
    created: str
    sequence: int


def read_mark(connection: Connection, stream: str) -> Mark:
    found = first_row(connection, "SELECT * FROM positions WHERE stream = $stream", {"stream": stream})
    return Mark(*found) if found else Mark(stream, "", 0)


def write_mark(connection: Connection, mark: Mark) -> None:
    connection.execute(
        "INSERT INTO positions VALUES ($stream, $created, $sequence) "
        "ON CONFLICT (stream) DO UPDATE SET created = excluded.created, sequence = excluded.sequence",
        {"stream": mark.stream, "created": mark.created, "sequence": mark.sequence},
    )


def insert_items(connection: Connection, batches: Sequence[item_result_pb2.ItemResultBatch]) -> None:
    """Stores item results that are all new, at half the cost of `store_items`.

    Raises duckdb.ConstraintException when one is; the transaction is void then.
    """
    _write_items(connection, batches, "intake/insert_items")


def store_items(connection: Connection, batches: Sequence[item_result_pb2.ItemResultBatch]) -> None:
    """Stores item results; see queries/intake/store_items.sql for what replaces what."""
    _write_items(connection, batches, "intake/store_items")


def _write_items(connection: Connection, batches: Sequence[item_result_pb2.ItemResultBatch], statement: str) -> None:
    # Answers that were under way, or that a stream has again after its database was lost.
    deleted = deleted_among(connection, {batch.job_id for batch in batches})
    batches = [batch for batch in batches if batch.job_id not in deleted]
    table = item_rows.table(batches)
    if table.num_rows == 0:
        return
    connection.register("batch", table)
    connection.execute(query(statement))
    # Not after a failure: in a void transaction this fails, too, and would hide the cause. The next batch takes the
    # name.
    connection.unregister("batch")
    for batch in batches:
        # A job also finds its own answers, for rows that ask the same.
        for source in sorted({item.source_job for item in batch.items} - {"", batch.job_id}):
            _note_source(connection, batch.job_id, source)
    count_late(connection, {batch.job_id for batch in batches})


def store_events(connection: Connection, events: Sequence[job_pb2.JobEvent]) -> None:
    """Appends to the audit trail and moves jobs to their newest state; repeated and late events change nothing, and
    neither do those of deleted jobs."""
    connection.register("events_batch", _events_table({event.event_id: event for event in events}.values()))
    connection.execute("INSERT INTO events SELECT * FROM events_batch ON CONFLICT (event_id) DO NOTHING")
    connection.unregister("events_batch")
    for event in events:
        if event.job.HasField("deleted_at"):
            _delete_job(connection, event)
    deleted = deleted_among(connection, {event.job.job_id for event in events})
    newest: dict[str, job_pb2.JobEvent] = {}
    for event in events:
        if event.job.job_id in deleted:
            continue
        text_retention.note_end(connection, event)
        imports.note_job(connection, event.job)
        before = newest.setdefault(event.job.job_id, event)
        if _place(event) > _place(before):
            newest[event.job.job_id] = event
    for job_id, event in newest.items():
        _store_job(connection, event.job, event.event_id)
        run_scores.refresh(connection, job_id)


def _delete_job(connection: Connection, event: job_pb2.JobEvent) -> None:
    job = event.job
    forget_job(connection, job.job_id, job.owner, event.actor, job.deleted_at.ToDatetime())


def forget_job(connection: Connection, job_id: str, owner: str, deleted_by: str, deleted_at: datetime) -> None:
    """Leaves nothing of a job but its events, what people said of it, and whose answers others took from it: marks and
    annotations are numbered through all jobs. `deleted_at` is in UTC without a zone."""
    connection.execute(
        "INSERT INTO deleted_jobs VALUES ($job_id, $owner, $deleted_by, $deleted_at) ON CONFLICT DO NOTHING",
        {"job_id": job_id, "owner": owner, "deleted_by": deleted_by, "deleted_at": deleted_at},
    )
    run_scores.remove(connection, job_id)
    for table in ("jobs", "seals", "metrics", "answer_texts", "items"):
        connection.execute(f"DELETE FROM {table} WHERE job_id = $job_id", {"job_id": job_id})
    archived_items.forget(connection, job_id)
    # Nothing will take its answers any more.
    connection.execute("UPDATE imports SET done = true WHERE job_id = $job_id", {"job_id": job_id})


def _place(event: job_pb2.JobEvent) -> tuple[int, str]:
    """Events are ordered as in intake/delete_older_job.sql."""
    return len(event.event_id), event.event_id


def _events_table(events: Iterable[job_pb2.JobEvent]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "event_id": event.event_id,
                "job_id": event.job.job_id,
                "occurred_at": event.occurred_at.ToDatetime(),
                "actor": event.actor,
                "action": event.action,
                "event": event.SerializeToString(),
            }
            for event in events
        ],
        _EVENTS,
    )


def store_seal(
    connection: Connection, job: job_pb2.Job, computed: Computed, sealed_at: datetime
) -> results_service_pb2.SealJobResponse:
    """Stores a seal, its metrics and which run now represents its configuration; returns what is stored.

    An attempt is sealed once: if this or a later one is, nothing changes. Raises NotFoundError for a deleted job.
    """
    if deleted_among(connection, [job.job_id]):
        raise NotFoundError(refusals.not_found("Benchmark job", job.job_id))
    sealed = job_reads.sealed_result(connection, job.job_id, job.attempt)
    return write_seal(connection, job, computed, sealed_at) if sealed is None else sealed


def write_seal(
    connection: Connection, job: job_pb2.Job, computed: Computed, sealed_at: datetime
) -> results_service_pb2.SealJobResponse:
    """The same, replacing any existing seal."""
    again = job_reads.sealed_result(connection, job.job_id, 0) is not None
    _store_job(connection, job, "")
    connection.execute(
        query("intake/store_seal"),
        {
            "job_id": job.job_id,
            "attempt": job.attempt,
            "sealed_at": sealed_at.astimezone(UTC).replace(tzinfo=None),
            "missing": computed.missing,
            "infrastructure_errors": computed.errors,
            "complete": computed.missing + computed.errors == 0,
            "suite": suite_of(job.spec),
            "mode": mode_of(job.spec),
            "item_set": job.item_set,
            "subset": job.subset,
            "configuration": job.receipt.configuration,
            "result": computed.result.SerializeToString(),
            "not_ranked_reason": computed.result.not_ranked_reason,
            "caution": computed.result.caution,
            "rules": RULES,
        },
    )
    if again:
        connection.execute("DELETE FROM metrics WHERE job_id = $job_id", {"job_id": job.job_id})
    for task in computed.result.tasks:
        for place, metric in enumerate(task.metrics):
            _store_metric(connection, job.job_id, task.task, metric, place, 1)
    for place, (metric, tasks) in enumerate(computed.averages):
        _store_metric(connection, job.job_id, "", metric, place, tasks)
    run_scores.add(connection, job)
    return results_service_pb2.SealJobResponse(
        missing=computed.missing, infrastructure_errors=computed.errors, result=computed.result
    )


def _store_job(connection: Connection, job: job_pb2.Job, event_id: str) -> None:
    stored = counted(connection, job)
    connection.execute(query("intake/delete_older_job"), {"job_id": job.job_id, "event_id": event_id})
    connection.execute(
        query("intake/store_job"),
        {
            "job_id": job.job_id,
            "event_id": event_id,
            "owner": job.owner,
            "project_id": job.spec.project_id,
            "suite": suite_of(job.spec),
            "endpoint": job.spec.endpoint,
            "model": job.spec.model,
            "state": int(job.state),
            "attempt": job.attempt,
            "created_at": job.created_at.ToDatetime(),
            "job": stored.SerializeToString(),
            "baseline": job.baseline,
            "incomplete": job.incomplete,
            "finished_at": job.finished_at.ToDatetime() if job.HasField("finished_at") else None,
            "planned": sum(task.items * max(1, task.repeats) for task in job.plan) if job.plan else None,
            "started_at": job.started_at.ToDatetime() if job.HasField("started_at") else None,
            "decides": job.spec.HasField("deciding") and not job.spec.deciding.candidate,
            "schedule_id": job.spec.schedule_id,
        },
    )
    if job.spec.reuse.job_id:
        _note_source(connection, job.job_id, job.spec.reuse.job_id)


def _note_source(connection: Connection, job_id: str, source: str) -> None:
    """The sources of a job's answers."""
    connection.execute(
        "INSERT INTO run_sources VALUES ($job_id, $source) ON CONFLICT DO NOTHING",
        {"job_id": job_id, "source": source},
    )


def _store_metric(
    connection: Connection, job_id: str, task: str, metric: metric_pb2.Metric, place: int, tasks: int
) -> None:
    connection.execute(
        "INSERT INTO metrics VALUES ($job_id, $task, $metric, $place, $tasks, $n, $mean, $stderr, "
        "$ci95_low, $ci95_high, $bound_low, $bound_high, $method, $undefined_reason, $answered_mean)",
        {
            "job_id": job_id,
            "task": task,
            "metric": metric.metric,
            "place": place,
            "tasks": tasks,
            "n": metric.n,
            "mean": metric.mean if metric.HasField("mean") else None,
            "stderr": metric.stderr if metric.HasField("stderr") else None,
            "ci95_low": metric.ci95_low if metric.HasField("ci95_low") else None,
            "ci95_high": metric.ci95_high if metric.HasField("ci95_high") else None,
            "bound_low": metric.bound_low if metric.HasField("bound_low") else None,
            "bound_high": metric.bound_high if metric.HasField("bound_high") else None,
            "method": metric.method,
            "undefined_reason": metric.undefined_reason,
            "answered_mean": metric.answered_mean if metric.HasField("answered_mean") else None,
        },
    )


def counted(connection: Connection, job: job_pb2.Job) -> job_pb2.Job:
    """The job with the counts of its stored items where it failed or was cancelled; any other as it is. Answers
    that were under way arrive after the event of its end, whose counts would otherwise stay wrong.
    """
    if job.state not in ENDED_EARLY or not job.plan:
        return job
    if archived_items.find(connection, job.job_id) is not None:
        # Counted when they left.
        return _as_counted(connection, job)
    tasks = [plan.task for plan in job.plan]
    rows = connection.execute(_COUNTS, {"job_id": job.job_id, "tasks": tasks}).fetchall()
    stored = {task: (items, errors) for task, items, errors in rows}
    corrected = job_pb2.Job()
    corrected.CopyFrom(job)
    progress = corrected.progress
    progress.items_done = sum(items for items, _ in stored.values())
    progress.items_failed = sum(errors for _, errors in stored.values())
    for task in progress.tasks:
        task.items_done, task.items_failed = stored.get(task.task, (0, 0))
    return corrected


def _as_counted(connection: Connection, job: job_pb2.Job) -> job_pb2.Job:
    """The job with the counts that it has in the database."""
    found = first_row(connection, "SELECT job FROM jobs WHERE job_id = $job_id", {"job_id": job.job_id})
    known = job_pb2.Job.FromString(found[0]) if found is not None else job
    if known.attempt != job.attempt:
        return job
    corrected = job_pb2.Job()
    corrected.CopyFrom(job)
    corrected.progress.CopyFrom(known.progress)
    return corrected


def count_late(connection: Connection, job_ids: Iterable[str]) -> None:
    """Corrects the counts of jobs that had ended early before this transaction stored items of theirs."""
    for job_id in job_ids:
        found = first_row(
            connection,
            "SELECT job FROM jobs WHERE job_id = $job_id AND list_contains($states::UTINYINT[], state)",
            {"job_id": job_id, "states": [int(state) for state in ENDED_EARLY]},
        )
        if found is not None:
            job = counted(connection, job_pb2.Job.FromString(found[0])).SerializeToString()
            connection.execute("UPDATE jobs SET job = $job WHERE job_id = $job_id", {"job_id": job_id, "job": job})
            # It is archived again, with these answers.
            connection.execute("UPDATE archived_jobs SET signature = '' WHERE job_id = $job_id", {"job_id": job_id})
