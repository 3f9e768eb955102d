"""`touchstone status` and `results`: one job, or all live ones."""

from __future__ import annotations

import argparse
from typing import Any

from services.words.jobs import stage_of, status_of, work_of
from touchstone.v1 import job_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import JOB, add_format, add_job, leaf
from touchstone_client.command.arguments.job_ids import job_of
from touchstone_client.command.exits import DONE
from touchstone_client.command.printing.documents import document
from touchstone_client.command.printing.figures import MISSING, cost, left, rate, text
from touchstone_client.command.printing.output import Column, Report, Table, show
from touchstone_client.command.reading.installation import live
from touchstone_client.command.reports import scores
from touchstone_client.command.reports.scores import optional
from touchstone_client.command.reports.watching import watch
from touchstone_client.command.reports.watching_several import code_of, ends, interrupted
from touchstone_client.specs import subset_of

_TASKS = (
    Column("task", "task"),
    Column("items_done", "done", right=True),
    Column("items_total", "of", right=True),
    Column("items_failed", "failed", right=True),
    Column("running", "running"),
)


def add(commands: Any) -> None:
    parser = leaf(commands, "status", "show a job's progress, or that of all running and waiting jobs", _status)
    parser.add_argument("job", metavar="JOB", nargs="?", default="", help=f"{JOB}; without it, all live ones")
    words = "follow to the end, then print the scores and exit with the job's exit code"
    parser.add_argument("--watch", "--poll", "-w", action="store_true", help=words)
    add_format(parser)
    parser = leaf(commands, "results", "show a job's scores so far", _results)
    add_job(parser)
    add_format(parser)


def _status(options: argparse.Namespace) -> int:
    with Client() as client:
        if not options.job:
            return _all(client, options)
        job_id = job_of(client, options.job)
        if options.watch:
            return watch(client, job_id, options.format)
        job = client.job(job_id)
    show(report(job), options.format)
    return DONE


def _all(client: Client, options: argparse.Namespace) -> int:
    """The jobs that are live now; later ones are left out while watching."""
    queue = client.queue()
    jobs = [*queue.running, *queue.scoring, *queue.pending]
    code = DONE
    if options.watch and jobs:
        try:
            jobs = ends(client, jobs)
        except KeyboardInterrupt:
            return interrupted()
        code = code_of(jobs)
    notes = [] if jobs else ["No jobs are running or waiting."]
    show(Report([live(jobs)], notes=notes), options.format)
    return code


def _results(options: argparse.Namespace) -> int:
    with Client() as client:
        job_id = job_of(client, options.job)
        show(scores.report(client.job(job_id), client.result(job_id)), options.format)
    return DONE


def report(job: job_pb2.Job) -> Report:
    """Live figures: the same as on the Job page and in REST."""
    progress = job.progress
    facts = {
        "job": job.job_id,
        "status": stage_of(job),
        "model": f"{job.spec.model} at {job.spec.endpoint}",
        "suite": ", ".join(filter(None, (work_of(job.spec), subset_of(job)))),
        "step": progress.current_step,
        "why": job.reason,
        "queue": f"place {progress.queue_position}" if progress.queue_position else "",
        "items": f"{progress.items_done:,} of {progress.items_total:,}" if progress.items_total else "",
        "failed": text(progress.items_failed) if progress.items_failed else "",
        "items/s": rate(progress.items_per_second),
        "tokens/s": rate(progress.tokens_per_second),
        "time": left(progress),
        "cost": cost(job),
        **{f"label {name}": text for name, text in sorted(job.spec.labels.items())},
    }
    rows = [(t.task, t.items_done, t.items_total, t.items_failed, t.running) for t in progress.tasks]
    brief = {
        "job_id": job.job_id,
        "status": status_of(job.state),
        "phase": stage_of(job),
        "reason": job.reason,
        "incomplete": job.incomplete,
        "eta_s": optional(progress, "eta_s"),
        "progress": document(progress),
    }
    known = {name: value for name, value in facts.items() if value and value != MISSING}
    return Report([Table(_TASKS, rows)], facts=known, document=brief)
