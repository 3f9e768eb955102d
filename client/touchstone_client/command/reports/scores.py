"""What a job measured, as `run`, `status --watch` and `results` print it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from services.words import refusals
from services.words.enums import READINGS, WEIGHTINGS
from services.words.jobs import reused_without_digest, status_of, work_of
from services.words.refusals import counted
from touchstone.v1 import job_pb2, metric_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.scoring import words
from touchstone_client.command.printing.documents import document
from touchstone_client.command.printing.figures import dollars, listed_on, lost, moment, score, span
from touchstone_client.command.printing.labels import labels
from touchstone_client.command.printing.output import Column, Report, Table, show
from touchstone_client.errors import ClientError
from touchstone_client.specs import subset_of

_COLUMNS = (
    Column("task", "task"),
    Column("metric", "metric"),
    Column("mean", "mean", score, right=True, key=True),
    Column("interval", "95 % interval", lambda pair: span(*pair), right=True, data=False, key=True),
    Column("stderr", "", score),
    Column("ci95_low", "", score),
    Column("ci95_high", "", score),
    Column("bound_low", "", score),
    Column("bound_high", "", score),
    Column("answered_mean", "", score),
    Column("n", "n", right=True),
    Column("note", "note", lambda note: note or ""),
)


def print_scores(client: Client, job: job_pb2.Job, format: str) -> None:
    """The job's metrics; if there are none yet, a sentence on stderr. Further notes also go there."""
    try:
        result = client.result(job.job_id)
    except ClientError as error:
        print(f"touchstone: no scores yet: {error.message}", file=sys.stderr)
        return
    table = metrics(result)
    # For a dataset without references, only the outcomes of its rows can be shown.
    facts = None if table.rows else _outcomes(job, result)
    show(Report([table] if table.rows else [], facts=facts, document=_document(job, result), csv=table), format)
    _tell(job, result)


def print_several(client: Client, jobs: Sequence[job_pb2.Job], format: str) -> None:
    """As `print_scores`, one table per job."""
    called = labels(jobs)
    results = [(job, client.result(job.job_id)) for job in jobs]
    tables = [replace(metrics(result), title=called[job.job_id]) for job, result in results]
    rows = [(job.job_id, job.spec.model, *row) for job, result in results for row in metrics(result).rows]
    columns = (Column("job_id", "job"), Column("model_name", "model"), *_COLUMNS)
    filled = [table for table in tables if table.rows]
    show(Report(filled, document=[_document(job, result) for job, result in results], csv=Table(columns, rows)), format)
    for job, result in results:
        _tell(job, result, f"{called[job.job_id]}: ")


def _tell(job: job_pb2.Job, result: metric_pb2.JobResult, whose: str = "") -> None:
    if result.items_reused:
        print(f"touchstone: {whose}{counted(result.items_reused, 'answer')} came from the store.", file=sys.stderr)
    if reused_without_digest(job, result):
        print(f"touchstone: {whose}{refusals.REUSED_WITHOUT_DIGEST}", file=sys.stderr)
    if result.not_ranked_reason:
        print(f"touchstone: {whose}not ranked: {result.not_ranked_reason}", file=sys.stderr)
    elif result.caution:
        print(f"touchstone: {whose}{result.caution}. They count as wrong.", file=sys.stderr)
    if offer := _offer(result):
        print(f"touchstone: {whose}{offer}", file=sys.stderr)


def _offer(result: metric_pb2.JobResult) -> str:
    """Which layer would read how many unread answers, and the command for that."""
    if not result.offer or result.texts_dropped:
        return ""
    again = f"touchstone rescore {result.job_id} --reading {READINGS.of(result.offered_reading)}"
    return f"{result.offer} Without a call: {again}"


def _outcomes(job: job_pb2.Job, result: metric_pb2.JobResult) -> dict[str, str]:
    """The outcomes of the items, their time and their cost."""
    counts = result.outcomes
    facts = {field.name.replace("_", " "): getattr(counts, field.name) for field in counts.DESCRIPTOR.fields}
    return {name: f"{count:,}" for name, count in facts.items() if count} | _taken(job, result)


def _taken(job: job_pb2.Job, result: metric_pb2.JobResult) -> dict[str, str]:
    """Tokens and money."""
    cost = (dollars(result.cost_usd), listed_on(job.receipt.prices)) if result.HasField("cost_usd") else ()
    known = {
        "tokens in": _tokens(result.input_tokens, result.input_untold),
        "tokens out": _tokens(result.output_tokens, result.output_untold),
        "cost": ", ".join(filter(None, cost)),
    }
    return {name: words for name, words in known.items() if words}


def _tokens(counted: int, untold: int) -> str:
    if not counted:
        return ""
    return f"{counted:,}" + (f", without {untold:,} answers that do not report theirs" if untold else "")


def report(job: job_pb2.Job, result: metric_pb2.JobResult) -> Report:
    """The job with its metrics."""
    facts = {
        "job": job.job_id,
        "status": status_of(job.state) + (", incomplete" if job.incomplete else ""),
        "model": f"{job.spec.model} at {job.spec.endpoint}",
        "suite": ", ".join(filter(None, (work_of(job.spec), subset_of(job)))),
        "scored by": words(job.spec.dataset.scoring) if job.spec.HasField("dataset") else "",
        "also scored by": "; ".join(map(words, job.spec.dataset.further)),
        "created": moment(job.created_at),
        "finished": moment(job.finished_at),
        "configuration": job.receipt.configuration,
        "why": job.reason,
        "not ranked": result.not_ranked_reason,
        "caution": result.caution,
        "unread": _offer(result),
        "mark": f"{result.mark}: {result.mark_reason}" if result.mark else "",
        "score": result.score_rule,
        **(_outcomes(job, result) if job.spec.HasField("dataset") else _taken(job, result)),
        "may be charged": lost(job),
        **{f"label {name}": text for name, text in sorted(job.spec.labels.items())},
    }
    known = {name: value for name, value in facts.items() if value}
    return Report([metrics(result)], facts=known, document=_document(job, result))


def metrics(result: metric_pb2.JobResult) -> Table:
    """One row per task and metric, then averages, then the suite's score."""
    rows = [_row(task.task, metric) for task in result.tasks for metric in task.metrics]
    rows += [_row(_averaged(average), average.metric) for average in result.averages]
    if result.HasField("suite_score"):
        rows.append(_row("all", result.suite_score))
    return Table(_COLUMNS, rows)


def _averaged(average: metric_pb2.Average) -> str:
    """What a figure is the mean of: "STEM over items"."""
    words = next((f" over {word}" for word, rule in WEIGHTINGS.items() if rule == average.weighting), "")
    return (average.category or "all") + words


def _row(task: str, metric: metric_pb2.Metric) -> Sequence[Any]:
    low, high = optional(metric, "ci95_low"), optional(metric, "ci95_high")
    return (
        task,
        metric.metric,
        optional(metric, "mean"),
        (low, high),
        optional(metric, "stderr"),
        low,
        high,
        optional(metric, "bound_low"),
        optional(metric, "bound_high"),
        optional(metric, "answered_mean"),
        metric.n,
        metric.undefined_reason,
    )


def optional(message: Any, name: str) -> Any:
    """An optional field, None where it is absent."""
    return getattr(message, name) if message.HasField(name) else None


def _document(job: job_pb2.Job, result: metric_pb2.JobResult) -> dict[str, Any]:
    return {"job_id": job.job_id, "status": status_of(job.state), "job": document(job), "result": document(result)}
