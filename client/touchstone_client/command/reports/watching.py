"""Follows jobs in the terminal: ids and scores on stdout, progress on stderr."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from services.words.refusals import counted
from touchstone.v1 import job_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_format
from touchstone_client.command.arguments.flags import in_flags
from touchstone_client.command.exits import DONE, FAILED, INTERRUPTED
from touchstone_client.command.printing.figures import dollars, left, lost, rate
from touchstone_client.command.reports.judging import print_judge
from touchstone_client.command.reports.scores import print_scores


def add_watch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-watch", action="store_true", help="print the job's id and leave")
    add_format(parser)


def follow(client: Client, job: job_pb2.Job, options: argparse.Namespace) -> int:
    """Prints the id, waits for the end unless told not to, prints the scores. Returns the exit code.

    In the formats for programs, the id is part of the final document, and on stderr before.
    """
    print(job.job_id, file=sys.stdout if bare(options) else sys.stderr, flush=True)
    return DONE if options.no_watch else watch(client, job.job_id, options.format)


def bare(options: argparse.Namespace) -> bool:
    """Whether ids are printed on stdout as they are: not before a document for programs."""
    return options.no_watch or options.format in ("table", "markdown")


def watch(client: Client, job_id: str, format: str) -> int:
    """Shows the job's progress until it is finished, then its scores. Ctrl-C ends the watching, not the job."""
    try:
        job = shown(client.watch(job_id))
    except KeyboardInterrupt:
        print(
            f"\ntouchstone: stopped watching; the job continues. To see it: touchstone status {job_id} --watch. To "
            f"stop it: touchstone cancel {job_id}.",
            file=sys.stderr,
        )
        return INTERRUPTED
    if job.state != job_pb2.Job.STATE_COMPLETED:
        print(f"touchstone: {in_flags(job.reason) or 'the job was cancelled.'}", file=sys.stderr)
        return FAILED
    (print_judge if job.spec.HasField("judging") else print_scores)(client, job, format)
    return FAILED if job.incomplete else DONE


def shown(states: Iterator[job_pb2.Job]) -> job_pb2.Job:
    """The last of the states, which stderr shows as they come: a bar on a terminal, else one line per step."""
    return _bar(states) if sys.stderr.isatty() else _lines(states)


def _bar(states: Iterator[job_pb2.Job]) -> job_pb2.Job:
    last = job_pb2.Job()
    columns = (BarColumn(bar_width=32), TextColumn("{task.fields[figures]}"), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True, highlight=False), transient=True) as bar:
        task = bar.add_task("", total=None, figures="")
        for last in states:
            progress = last.progress
            bar.update(
                task,
                description=progress.current_step.replace("[", "\\["),
                total=progress.items_total or None,
                completed=progress.items_done,
                figures=figures(last),
            )
    print(line(last), file=sys.stderr)
    return last


def _lines(states: Iterator[job_pb2.Job]) -> job_pb2.Job:
    """In a log every line stays, so there is only one per state."""
    last, seen = job_pb2.Job(), job_pb2.Job.STATE_UNSPECIFIED
    for last in states:
        if last.state != seen:
            print(line(last), file=sys.stderr, flush=True)
        seen = last.state
    return last


def figures(job: job_pb2.Job) -> str:
    """812 of 2,000 items · 47.3 items/s · 22 min left (18–27)."""
    progress = job.progress
    parts = [f"{progress.items_done:,} of {counted(progress.items_total, 'item')}"] if progress.items_total else []
    if progress.queue_position:
        parts.append(f"place {progress.queue_position} in the queue")
    if progress.items_per_second > 0:
        parts.append(f"{rate(progress.items_per_second)} items/s")
    if remaining := left(progress):
        parts.append(remaining)
    if progress.items_failed:
        parts.append(f"{progress.items_failed:,} failed")
    if progress.cost_usd:
        budget = f" of {dollars(job.spec.budget_usd)}" if job.spec.budget_usd else ""
        parts.append(f"{dollars(progress.cost_usd)}{budget}")
    if lost_calls := lost(job):
        parts.append(lost_calls)
    return " · ".join(parts)


def line(job: job_pb2.Job) -> str:
    known = figures(job)
    return f"{known} · {job.progress.current_step}" if known else job.progress.current_step
