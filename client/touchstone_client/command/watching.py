"""Follows a job in the terminal: its id and its scores on stdout, how far it is on stderr."""

from __future__ import annotations

import argparse
import sys

from touchstone.v1 import job_pb2, metric_pb2
from touchstone_client.client import Client
from touchstone_client.command.exits import DONE, FAILED
from touchstone_client.errors import ClientError

_CLEAR = "\r\x1b[K"


def add_watch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-watch", action="store_true", help="print the job's id and leave")


def follow(client: Client, job: job_pb2.Job, options: argparse.Namespace) -> int:
    """Prints the id, waits for the end unless told not to, prints the scores. Returns the exit code."""
    print(job.job_id, flush=True)
    if options.no_watch:
        return DONE
    live = sys.stderr.isatty()
    shown: object = None
    last = job
    for last in client.watch(job.job_id):
        # In a log each line stays, so one a state must do.
        news = _line(last) if live else last.state
        if news != shown:
            print(
                f"{_CLEAR}{_line(last)}" if live else _line(last), end="" if live else "\n", file=sys.stderr, flush=True
            )
        shown = news
    if live:
        print(file=sys.stderr)
    if last.state != job_pb2.Job.STATE_COMPLETED:
        print(f"touchstone: {last.reason}", file=sys.stderr)
        return FAILED
    _print_scores(client, last)
    return FAILED if last.incomplete else DONE


def _line(job: job_pb2.Job) -> str:
    progress = job.progress
    share = f"{progress.items_done:,} of {progress.items_total:,} items, " if progress.items_total else ""
    return f"{share}{progress.current_step}"


def _print_scores(client: Client, job: job_pb2.Job) -> None:
    try:
        result = client.result(job.job_id)
    except ClientError as error:
        print(f"touchstone: no scores yet: {error.message}", file=sys.stderr)
        return
    for task in result.tasks:
        for metric in task.metrics:
            print(f"{task.task}\t{metric.metric}\t{_value(metric)}\t{metric.n}")
    if result.HasField("suite_score"):
        print(f"score\t\t{_value(result.suite_score)}\t{result.suite_score.n}")
    if result.items_reused:
        print(f"touchstone: {result.items_reused:,} answers were taken from the store.", file=sys.stderr)
    if result.not_ranked_reason:
        print(f"touchstone: not ranked: {result.not_ranked_reason}", file=sys.stderr)


def _value(metric: metric_pb2.Metric) -> str:
    return f"{metric.mean:.4f}" if metric.HasField("mean") else metric.undefined_reason
