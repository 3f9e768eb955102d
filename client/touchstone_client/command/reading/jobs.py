"""`touchstone list` and `history`: many jobs."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from services.words.enums import mode_name
from services.words.jobs import STATUSES, items_of, stage_of, states_of, status_of, suite_of, work_of
from services.words.refusals import counted
from touchstone.v1 import job_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_format, add_limit, days, leaf, project
from touchstone_client.command.exits import DONE
from touchstone_client.command.printing.figures import excerpt, moment, score, span, when
from touchstone_client.command.printing.output import Column, Report, Table, show
from touchstone_client.command.reports.scores import optional
from touchstone_client.errors import ClientError
from touchstone_client.requests import JobFilters, ScoredJob
from touchstone_client.specs import PILOT, subset_of

_COLUMNS = (
    Column("job_id", "job"),
    Column("status", ""),
    Column("phase", "status"),
    Column("model_name", "model"),
    Column("endpoint", "endpoint", extra=True),
    Column("work", "suite", lambda name: excerpt(name, 40), data=False),
    Column("benchmark_suite", ""),
    Column("dataset_name", ""),
    Column("mode", "mode"),
    Column("shots", "shots", lambda number: str(number or ""), right=True),
    Column("part", "part", data=False),
    Column("tasks", ""),
    Column("limit", ""),
    Column("score", "score", score, right=True, key=True),
    Column("interval", "95 % interval", lambda pair: span(*pair), right=True, data=False, key=True),
    Column("ci95_low", ""),
    Column("ci95_high", ""),
    Column("accuracy", "accuracy", score, right=True, extra=True),
    Column("items", "items", right=True, extra=True),
    Column("published_items", ""),
    Column("subset", ""),
    Column("labels", ""),
    Column("owner", "owner", extra=True),
    Column("project_id", "project", lambda number: str(number or ""), extra=True),
    Column("created_at", "created", when),
    Column("completed_at", ""),
    Column("not_ranked_reason", ""),
    Column("caution", ""),
    Column("remark", "remark", lambda remark: remark or "", data=False, fold=True),
)


def add(commands: Any) -> None:
    parser = leaf(commands, "list", "list jobs, newest first", _list)
    _add_filters(parser)
    parser.add_argument("--status", choices=STATUSES, action="append", default=[], help="may be repeated")
    parser.add_argument("--days", type=days, default=0, metavar="N", help="created in the last N days")
    add_limit(parser, 20, "jobs")
    add_format(parser)
    parser = leaf(commands, "history", "list the jobs of the last days with their scores", _history)
    _add_filters(parser)
    parser.add_argument("--days", type=days, default=30, metavar="N", help="(default: 30)")
    add_limit(parser, 1000, "jobs")
    add_format(parser)


def _add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default="", help="exact model id")
    parser.add_argument("--suite", default="")
    parser.add_argument("--endpoint", default="")
    parser.add_argument("--owner", default="", metavar="USER")
    parser.add_argument("--project-id", type=project, default=0, metavar="N")


def _filters(options: argparse.Namespace) -> JobFilters:
    return {
        "states": [state for word in getattr(options, "status", ()) for state in states_of(word)],
        "model": options.model,
        "suite": options.suite,
        "endpoint": options.endpoint,
        "owner": options.owner,
        "project_id": options.project_id,
    }


def _list(options: argparse.Namespace) -> int:
    with Client() as client:
        found = client.history(options.days, **_filters(options))
        table = _table(client, islice(found, options.limit))
    show(Report([table]), options.format)
    return DONE


def _history(options: argparse.Namespace) -> int:
    filters = _filters(options)
    with Client() as client:
        table = _table(client, islice(client.history(options.days, **filters), options.limit))
        shown = len(table.rows)
        total = shown if shown < options.limit else client.count_jobs(options.days, **filters)
    days = f"Last {counted(options.days, 'day')}"
    note = f"{counted(total, 'run')}{f', the newest {shown:,} here' if shown < total else ''}. {days}"
    document = {
        "history": table.records(),
        "total_runs": total,
        "date_range": days,
    }
    show(Report([table], notes=[note], document=document), options.format)
    return DONE


def _table(client: Client, found: Iterable[ScoredJob]) -> Table:
    jobs = list(found)
    tasks = _tasks(client) if any(scored.job.spec.suite.tasks for scored in jobs) else {}
    return Table(_COLUMNS, [_row(scored, tasks) for scored in jobs])


def _tasks(client: Client) -> dict[str, int]:
    """How many tasks each suite has; empty if the scheduler is unreachable, as lists work without it."""
    try:
        return {suite.suite: len(suite.tasks) for suite in client.suites()}
    except ClientError:
        return {}


def _part(job: job_pb2.Job, tasks: Mapping[str, int]) -> str:
    """2 of 9 tasks, limit 40, subset, 80 of 9,815 items, pilot; empty for whole suites and datasets."""
    spec = job.spec
    part = f"limit {spec.dataset.limit}" if spec.dataset.limit else _part_of_suite(spec.suite, tasks)
    return ", ".join(filter(None, (part, subset_of(job), "pilot" if PILOT in spec.labels else "")))


def _part_of_suite(work: job_pb2.SuiteWork, tasks: Mapping[str, int]) -> str:
    chosen = len(work.tasks)
    of = f" of {tasks[work.suite]}" if work.suite in tasks else ""
    parts = [f"{chosen}{of} {'task' if chosen == 1 and not of else 'tasks'}"] if chosen else []
    return ", ".join([*parts, f"limit {work.limit}"] if work.limit else parts)


def _row(scored: ScoredJob, tasks: Mapping[str, int]) -> Sequence[Any]:
    job, work = scored.job, scored.job.spec.suite
    averages = {metric.metric: metric for metric in scored.scores.averages}
    whole = averages.get("score")
    low, high = (optional(whole, name) if whole else None for name in ("ci95_low", "ci95_high"))
    return (
        job.job_id,
        status_of(job.state),
        stage_of(job),
        job.spec.model,
        job.spec.endpoint,
        work_of(job.spec),
        suite_of(job.spec),
        job.spec.dataset.name,
        mode_name(job.spec.mode),
        work.shots,
        _part(job, tasks),
        list(work.tasks),
        (job.spec.dataset.limit or work.limit) or None,
        optional(whole, "mean") if whole else None,
        (low, high),
        low,
        high,
        optional(averages["accuracy"], "mean") if "accuracy" in averages else None,
        items_of(job) or job.progress.items_total,
        job.published_items or None,
        job.subset,
        dict(job.spec.labels),
        job.owner,
        job.spec.project_id,
        moment(job.created_at),
        moment(job.finished_at),
        scored.scores.not_ranked_reason,
        scored.scores.caution,
        scored.scores.not_ranked_reason or scored.scores.caution,
    )
