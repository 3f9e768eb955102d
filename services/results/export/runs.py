"""Jobs with what they have measured, as exports of jobs and of metrics go through them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.results.runs import job_lists, job_reads, marks
from services.results.storage import run_scores, text_retention
from services.results.storage.database import Connection, query
from services.results.visibility import Visibility
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2

JOBS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Run:
    """A job. `result` is what it measured, None while its present attempt is not sealed unless asked for as of now;
    `averages` are those over tasks, with the number of tasks, once it is sealed."""

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
        jobs, asked.page_token = job_lists.read_page(connection, asked, visible)
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
    marked, dropped = marks.present(connection, job_ids), text_retention.all_dropped_at(connection, job_ids)
    for job_id, result in results.items():
        if job_id in marked:
            marks.put_on(result, marked[job_id])
        result.texts_dropped = dropped.get(job_id, "")
    return results


def _runs(
    connection: Connection, jobs: Sequence[job_pb2.Job], results: dict[str, metric_pb2.JobResult]
) -> Iterator[Run]:
    names = _names(connection, jobs)
    averages = _averages(connection, jobs)
    for job in jobs:
        result = results.get(job.job_id)
        sealed = result is not None and result.sealed
        yield Run(
            job,
            result,
            averages[job.job_id] if sealed else [],
            *names.get(job.receipt.configuration, ("", "")),
        )


def _averages(
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
