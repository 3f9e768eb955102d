"""Exported jobs: a row each, with their averages, and what they rest on; and how exports go through jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from operator import attrgetter, itemgetter
from typing import Any

from services import numbers
from services.results.export.tables import Column, Kind, Table, Value, finite, number, table, time
from services.results.runs import job_reads
from services.results.storage import run_scores, text_retention
from services.results.storage.database import Connection, query
from services.results.visibility import Visibility
from services.words import suites
from services.words.enums import OUTCOMES, PREFERENCES, PRICE_SOURCES, WEIGHTINGS, mode_name
from services.words.jobs import reused_without_digest, status_of, suite_of
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2, suite_pb2
from touchstone.v1.suite_pb2 import Weighting

JOBS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Run:
    """A job. `result` is what it measured, None until its present attempt is sealed, unless the state as of now is
    asked for; `averages` are those over tasks, with the number of tasks, once it is sealed."""

    job: job_pb2.Job
    result: metric_pb2.JobResult | None
    averages: Sequence[tuple[int, metric_pb2.Metric]]
    name: str
    alias: str


def chosen(
    connection: Connection, request: results_service_pb2.ResultsServiceListJobsRequest, visible: Visibility
) -> Iterator[Run]:
    """The jobs that ListJobs would list, newest first."""
    asked = results_service_pb2.ResultsServiceListJobsRequest()
    asked.CopyFrom(request)
    asked.with_scores, asked.page_size, asked.page_token = False, JOBS_AT_ONCE, ""
    while True:
        jobs, asked.page_token = job_reads.read_page(connection, asked, visible)
        yield from _runs(connection, jobs, _sealed(connection, [job.job_id for job in jobs]))
        if not asked.page_token:
            return


def one(connection: Connection, job_id: str, visible: Visibility) -> Run:
    """One job with what it has measured so far. Raises NotFoundError."""
    job = job_reads.get_job(connection, job_id, visible)
    (run,) = _runs(connection, [job], {job_id: job_reads.get_job_result(connection, job_id, visible)})
    return run


def _sealed(connection: Connection, job_ids: Sequence[str]) -> dict[str, metric_pb2.JobResult]:
    """As GetJobResult gives them."""
    rows = connection.execute(query("export/sealed_results"), {"job_ids": job_ids}).fetchall()
    results = {job_id: metric_pb2.JobResult.FromString(blob) for job_id, blob in rows}
    marked, dropped = job_reads.uncounted(connection, job_ids), text_retention.all_dropped_at(connection, job_ids)
    for job_id, result in results.items():
        if job_id in marked:
            job_reads.put_mark_on(result, marked[job_id])
        result.texts_dropped = dropped.get(job_id, "")
    return results


def _runs(
    connection: Connection, jobs: Sequence[job_pb2.Job], results: dict[str, metric_pb2.JobResult]
) -> Iterator[Run]:
    names = _names(connection, jobs)
    averages = _sealed_averages(connection, jobs)
    for job in jobs:
        result = results.get(job.job_id)
        sealed = result is not None and result.sealed
        yield Run(
            job,
            result,
            averages[job.job_id] if sealed else [],
            *names.get(job.receipt.configuration, ("", "")),
        )


def _sealed_averages(
    connection: Connection, jobs: Sequence[job_pb2.Job]
) -> defaultdict[str, list[tuple[int, metric_pb2.Metric]]]:
    found: defaultdict[str, list[tuple[int, metric_pb2.Metric]]] = defaultdict(list)
    if jobs:
        times = [job.created_at.ToDatetime() for job in jobs]
        where = {"job_ids": [job.job_id for job in jobs], "first": min(times), "last": max(times)}
        text = query("export/sealed_averages").format(metric=", ".join(run_scores.METRIC_COLUMNS))
        for job_id, tasks, *metric in connection.execute(text, where).fetchall():
            found[job_id].append((tasks, run_scores.metric_of(metric)))
    return found


def _names(connection: Connection, jobs: Sequence[job_pb2.Job]) -> dict[str, tuple[str, str]]:
    rows = connection.execute(
        "SELECT configuration, name, alias FROM configuration_names "
        "WHERE configuration IN (SELECT unnest($configurations::VARCHAR[]))",
        {"configurations": list({job.receipt.configuration for job in jobs})},
    ).fetchall()
    return {configuration: (name, alias) for configuration, name, alias in rows}


FIGURES = ("mean", "stderr", "ci95_low", "ci95_high", "bound_low", "bound_high", "answered_mean")


def _text(name: str, read: Callable[[job_pb2.Job], str]) -> Column[Run]:
    return Column(name, Kind.TEXT, lambda run: read(run.job))


def _whole(name: str, read: Callable[[job_pb2.Job], int]) -> Column[Run]:
    return Column(name, Kind.WHOLE, lambda run: read(run.job))


def _measured(name: str, kind: Kind, read: Callable[[metric_pb2.JobResult], Value]) -> Column[Run]:
    """Empty until the measurement is final."""
    missing = "" if kind is Kind.TEXT else None
    return Column(name, kind, lambda run: missing if run.result is None else read(run.result))


def _receipt(name: str) -> Column[Run]:
    return _text(name, attrgetter(f"receipt.{name}"))


def _time(name: str, field: str) -> Column[Run]:
    return Column(name, Kind.TIME, lambda run: time(run.job, field))


WHO: tuple[Column[Run], ...] = (
    _text("job_id", lambda job: job.job_id),
    _text("status", lambda job: status_of(job.state)),
    _text("owner", lambda job: job.owner),
    _whole("project_id", lambda job: job.spec.project_id),
    _time("created_at", "created_at"),
    _time("completed_at", "finished_at"),
    _text("suite", lambda job: suite_of(job.spec)),
    _text("model", lambda job: job.spec.model),
    _text("endpoint", lambda job: job.spec.endpoint),
    Column("configuration_name", Kind.TEXT, lambda run: run.name),
    Column("configuration_alias", Kind.TEXT, lambda run: run.alias),
    Column("baseline", Kind.FLAG, lambda run: run.job.baseline),
    Column("sealed", Kind.FLAG, lambda run: run.result is not None and run.result.sealed),
    Column("incomplete", Kind.FLAG, lambda run: run.job.incomplete),
    _measured("not_ranked_reason", Kind.TEXT, lambda result: result.not_ranked_reason),
    _measured("caution", Kind.TEXT, lambda result: result.caution),
    _measured("mark", Kind.TEXT, lambda result: result.mark),
    _measured("mark_reason", Kind.TEXT, lambda result: result.mark_reason),
    _measured("superseded_by", Kind.TEXT, lambda result: result.superseded_by),
)
"""Columns that rows of jobs and of metrics begin with."""

RECEIPT: tuple[Column[Run], ...] = (
    _text("mode", lambda job: _mode(job.spec.mode)),
    _whole("shots", lambda job: job.spec.suite.shots),
    _whole("repeats", lambda job: max(1, job.spec.suite.repeats)),
    _whole("limit", lambda job: job.spec.suite.limit),
    _whole("seed", lambda job: job.spec.suite.seed),
    _text("item_set", lambda job: job.item_set),
    Column("subset", Kind.FLAG, lambda run: run.job.subset),
    *map(_receipt, ("configuration", "endpoint_kind", "server", "model_digest", "software", "parameters", "template")),
    *map(_receipt, ("setup", "source_job")),
    _whole("concurrency", lambda job: job.receipt.concurrency),
    _measured("served_models", Kind.OBJECT, lambda result: list(result.served_models)),
)
"""Columns that rows of jobs and of metrics end with."""


def _mode(mode: suite_pb2.Mode) -> str:
    return mode_name(mode)


def _score(field: str) -> Column[Run]:
    def read(run: Run) -> Value:
        score = next((metric for _, metric in run.averages if metric.metric == "score"), None)
        return None if score is None else number(score, field)

    return Column("score" if field == "mean" else f"score_{field}", Kind.NUMBER, read)


def _score_over(rule: Weighting) -> Column[Run]:
    """Empty where the score comes from a single task, as both rules give the same."""
    name = suites.average_name("score", rule)

    def read(run: Run) -> Value:
        score = next((metric for _, metric in run.averages if metric.metric == name), None)
        return None if score is None else number(score, "mean")

    return Column(name.replace(" ", "_"), Kind.NUMBER, read)


def _tokens(side: str) -> Column[Run]:
    """Also empty where no answer has them."""

    def read(result: metric_pb2.JobResult) -> Value:
        tokens, untold = getattr(result, f"{side}_tokens"), getattr(result, f"{side}_untold")
        return None if untold and not tokens else tokens

    return _measured(f"{side}_tokens", Kind.WHOLE, read)


def _price(side: str) -> Column[Run]:
    """US dollars per million tokens; empty where they are not known."""

    def read(run: Run) -> Value:
        receipt = run.job.receipt
        return finite(getattr(receipt.prices, side)) if receipt.HasField("prices") else None

    return Column(f"{side}_price", Kind.NUMBER, read)


def _averages(run: Run) -> Value:
    """By metric, over the tasks that have it."""
    return {
        metric.metric: {"tasks": tasks, "n": metric.n, **{field: number(metric, field) for field in FIGURES}}
        for tasks, metric in run.averages
        if metric.metric != "score" and not suites.parted(metric.metric)[1]
    }


COLUMNS_OF_JOBS: tuple[Column[Run], ...] = (
    *WHO,
    *map(_score, FIGURES),
    _measured("weighting", Kind.TEXT, lambda result: WEIGHTINGS.of(result.weighting)),
    *map(_score_over, WEIGHTINGS.values()),
    Column("averages", Kind.OBJECT, _averages),
    _whole("tasks", lambda job: len(job.plan)),
    _whole("items", lambda job: sum(plan.items for plan in job.plan)),
    _whole("published_items", lambda job: job.published_items),
    *(_measured(name, Kind.WHOLE, attrgetter(f"outcomes.{name}")) for name in OUTCOMES),
    _measured("items_reused", Kind.WHOLE, attrgetter("items_reused")),
    Column(
        "reused_without_digest",
        Kind.FLAG,
        lambda run: None if run.result is None else reused_without_digest(run.job, run.result),
    ),
    *map(_tokens, ("input", "output")),
    *(_measured(name, Kind.WHOLE, attrgetter(name)) for name in ("reasoning_tokens", "input_untold", "output_untold")),
    _measured("cost_usd", Kind.NUMBER, lambda result: numbers.job_usd(number(result, "cost_usd"))),
    *map(_price, ("input", "output")),
    _text("price_source", lambda job: PRICE_SOURCES.of(job.receipt.prices.source)),
    _text("price_as_of", attrgetter("receipt.prices.as_of")),
    _text("price_table", attrgetter("receipt.prices.table_digest")),
    *(
        _measured(name, Kind.NUMBER, attrgetter(name))
        for name in ("latency_p50_ms", "latency_p95_ms", "ttft_p50_ms", "ttft_p95_ms")
    ),
    Column("elapsed_s", Kind.NUMBER, lambda run: run.job.progress.elapsed_s),
    _time("started_at", "started_at"),
    _whole("attempt", lambda job: job.attempt),
    _text("error", lambda job: job.reason),
    _measured("texts_dropped", Kind.TEXT, lambda result: result.texts_dropped),
    *RECEIPT,
)


_PREFERENCE: tuple[Column[dict[str, Value]], ...] = tuple(
    Column(name, kind, itemgetter(name))
    for name, kind in (
        *((name, Kind.TEXT) for name in ("task", "custom_id", "choice", "preferred", "author")),
        *(("item", Kind.WHOLE), ("repeat", Kind.WHOLE), ("blind", Kind.FLAG), ("judged_at", Kind.TIME)),
        *(("jobs", Kind.OBJECT), ("models", Kind.OBJECT)),
    )
)


def preferences(connection: Connection, job_id: str, visible: Visibility) -> Table:
    """What people prefer of this job's answers to rows and other jobs', in the order in which they said it; what was
    taken back, and what names a deleted job, is left out. Raises NotFoundError."""
    job_reads.get_job(connection, job_id, visible)
    rows = connection.execute(
        "SELECT jobs, task, item, repeat, custom_id, choice, preferred, blind, author, judged_at "
        "FROM present_preferences p WHERE contains(jobs, $job_id) "
        "AND NOT EXISTS (SELECT 1 FROM deleted_jobs d WHERE contains(p.jobs, d.job_id)) ORDER BY number",
        {"job_id": job_id},
    ).fetchall()
    models: dict[str, str] = {}

    def model(name: str) -> str:
        if name not in models:
            models[name] = job_reads.get_job(connection, name).spec.model
        return models[name]

    def told(row: tuple[Any, ...]) -> dict[str, Value]:
        jobs, *place, custom_id, choice, preferred, blind, author, judged_at = row
        names = jobs.split(",")
        return {
            "jobs": names,
            "models": [model(name) for name in names],
            **dict(zip(("task", "item", "repeat"), place, strict=True)),
            "custom_id": custom_id,
            "choice": PREFERENCES.of(choice),
            "preferred": preferred,
            "blind": blind,
            "author": author,
            "judged_at": judged_at.replace(tzinfo=UTC),
        }

    return table(_PREFERENCE, map(told, rows))


def jobs(runs: Iterable[Run]) -> Table:
    return table(COLUMNS_OF_JOBS, runs)
