"""`touchstone status` and `results`: one job."""

from __future__ import annotations

import argparse
from typing import Any

from touchstone.v1 import job_pb2
from touchstone_client.client import Client
from touchstone_client.command import scores
from touchstone_client.command.arguments import add_format, leaf
from touchstone_client.command.documents import document
from touchstone_client.command.exits import DONE
from touchstone_client.command.figures import MISSING, left, rate, text
from touchstone_client.command.output import Column, Report, Table, show
from touchstone_client.command.scores import optional
from touchstone_client.command.watching import watch
from touchstone_client.specs import status

_TASKS = (
    Column("task", "task"),
    Column("items_done", "done", right=True),
    Column("items_total", "of", right=True),
    Column("items_failed", "failed", right=True),
    Column("running", "running"),
)


def add(commands: Any) -> None:
    parser = leaf(commands, "status", "show how far a job is", _status)
    parser.add_argument("job", help="a job's id")
    words = "follow it to its end, then print its scores and end with its exit code"
    parser.add_argument("--watch", "--poll", "-w", action="store_true", help=words)
    add_format(parser)
    parser = leaf(commands, "results", "show what a job has measured so far", _results)
    parser.add_argument("job", help="a job's id")
    add_format(parser)


def _status(options: argparse.Namespace) -> int:
    with Client() as client:
        if options.watch:
            return watch(client, options.job, options.format)
        job = client.job(options.job)
    show(report(job), options.format)
    return DONE


def _results(options: argparse.Namespace) -> int:
    with Client() as client:
        show(scores.report(client.job(options.job), client.result(options.job)), options.format)
    return DONE


def report(job: job_pb2.Job) -> Report:
    """Live figures: the same as on the Job page and in REST."""
    progress = job.progress
    facts = {
        "job": job.job_id,
        "status": status(job),
        "step": progress.current_step,
        "why": job.reason,
        "queue": f"place {progress.queue_position}" if progress.queue_position else "",
        "items": f"{progress.items_done:,} of {progress.items_total:,}" if progress.items_total else "",
        "failed": text(progress.items_failed) if progress.items_failed else "",
        "items/s": rate(progress.items_per_second),
        "tokens/s": rate(progress.tokens_per_second),
        "time": left(progress),
    }
    rows = [(t.task, t.items_done, t.items_total, t.items_failed, t.running) for t in progress.tasks]
    brief = {
        "job_id": job.job_id,
        "status": status(job),
        "reason": job.reason,
        "incomplete": job.incomplete,
        "eta_s": optional(progress, "eta_s"),
        "progress": document(progress),
    }
    known = {name: value for name, value in facts.items() if value and value != MISSING}
    return Report([Table(_TASKS, rows)], facts=known, document=brief)
