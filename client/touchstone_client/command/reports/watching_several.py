"""Follows several jobs at once: one bar each on a terminal, else one line per job and state."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from services.words.jobs import is_finished
from touchstone.v1 import job_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.flags import in_flags
from touchstone_client.command.exits import DONE, FAILED, INTERRUPTED
from touchstone_client.command.printing.labels import labels
from touchstone_client.command.reports.scores import print_several
from touchstone_client.command.reports.watching import figures, line
from touchstone_client.errors import ClientError
from touchstone_client.watching import Watch

_FIRST_S, _EVERY_S = 0.1, 1.0
"""Pauses between two requests: short at first, as short jobs are soon over."""


def follow_several(client: Client, jobs: Sequence[job_pb2.Job], options: argparse.Namespace) -> int:
    """Waits for jobs whose ids are printed, unless told not to, then prints their scores. Returns the exit code."""
    if options.no_watch:
        return DONE
    try:
        last = ends(client, jobs)
    except KeyboardInterrupt:
        return interrupted()
    print_several(client, [job for job in last if job.state == job_pb2.Job.STATE_COMPLETED], options.format)
    return code_of(last)


def interrupted() -> int:
    print(
        "\ntouchstone: stopped watching; the jobs continue. To see them: touchstone status --watch. To stop one: "
        "touchstone cancel JOB.",
        file=sys.stderr,
    )
    return INTERRUPTED


def ends(client: Client, jobs: Sequence[job_pb2.Job]) -> list[job_pb2.Job]:
    """The jobs once all are finished, in their order; stderr shows their progress."""
    called = labels(jobs)
    states = together(client, jobs)
    shown = _bars(states, called) if sys.stderr.isatty() else _lines(states, called)
    last = {job.job_id: job for job in jobs} | shown
    return [last[job.job_id] for job in jobs]


def together(client: Client, jobs: Sequence[job_pb2.Job]) -> Iterator[list[job_pb2.Job]]:
    """The jobs, after a while about once per second, until all are finished, with one request for all live ones. Waits
    while a scheduler restarts, as `Client.watch` does."""
    known = {job.job_id: job for job in jobs}
    watch = Watch("", None)
    pause = _FIRST_S
    while True:
        try:
            queue = client.queue()
            live = {job.job_id: job for job in (*queue.running, *queue.scoring, *queue.pending)}
            for job_id, last in known.items():
                if job_id in live:
                    known[job_id] = live[job_id]
                elif not is_finished(last):
                    known[job_id] = client.job(job_id)
                watch.heard(known[job_id])
        except ClientError as error:
            if watch.forgotten(error):
                raise
        yield [*known.values()]
        if all(is_finished(job) for job in known.values()):
            return
        time.sleep(pause)
        pause = min(2 * pause, _EVERY_S)


def code_of(jobs: Sequence[job_pb2.Job]) -> int:
    """FAILED unless every job is complete; the reasons go to stderr."""
    failed = failures(jobs)
    for name, reason in failed:
        print(f"touchstone: {name}: {in_flags(reason)}", file=sys.stderr)
    return FAILED if failed or any(job.incomplete for job in jobs) else DONE


def failures(jobs: Sequence[job_pb2.Job]) -> list[tuple[str, str]]:
    """The finished jobs that are not completed: what each is called, and why."""
    called = labels(jobs)
    bad = [job for job in jobs if job.state != job_pb2.Job.STATE_COMPLETED]
    return [(called[job.job_id], job.reason or "the job was cancelled.") for job in bad]


def _bars(states: Iterator[list[job_pb2.Job]], called: Mapping[str, str]) -> dict[str, job_pb2.Job]:
    last: dict[str, job_pb2.Job] = {}
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[figures]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True, highlight=False), transient=True) as bars:
        names = {job_id: name.replace("[", "\\[") for job_id, name in called.items()}
        tasks = {job_id: bars.add_task(names[job_id], total=None, figures="") for job_id in called}
        for jobs in states:
            for job in jobs:
                last[job.job_id] = job
                progress = job.progress
                bars.update(
                    tasks[job.job_id],
                    total=progress.items_total or None,
                    completed=progress.items_done,
                    figures=figures(job) or progress.current_step,
                )
    for job in last.values():
        print(f"{called[job.job_id]}: {line(job)}", file=sys.stderr)
    return last


def _lines(states: Iterator[list[job_pb2.Job]], called: Mapping[str, str]) -> dict[str, job_pb2.Job]:
    last: dict[str, job_pb2.Job] = {}
    seen: dict[str, int] = {}
    for jobs in states:
        for job in jobs:
            if seen.get(job.job_id) != job.state:
                print(f"{called[job.job_id]}: {line(job)}", file=sys.stderr, flush=True)
            seen[job.job_id] = job.state
            last[job.job_id] = job
    return last
