"""`touchstone cancel`, `retry`, `delete` and `mark`: actions on a job."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from services.words.enums import MARKS
from services.words.jobs import status_of, work_of
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_job, leaf
from touchstone_client.command.arguments.job_ids import job_of
from touchstone_client.command.exits import DONE
from touchstone_client.command.reports.watching import add_watch, follow
from touchstone_client.errors import InvalidError


def add(commands: Any) -> None:
    parser = leaf(commands, "cancel", "cancel a job; its stored answers are kept", _cancel)
    add_job(parser)
    words = "run the missing items of a failed, cancelled or incomplete job"
    parser = leaf(commands, "retry", words, _retry)
    add_job(parser)
    add_watch(parser)
    parser = leaf(commands, "delete", "delete a finished job with its answers and scores", _delete)
    add_job(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask; required where nobody can answer")
    parser = leaf(commands, "mark", "take a finished run out of rankings and comparisons, or back in", _mark)
    add_job(parser)
    parser.add_argument("mark", choices=[*MARKS])
    parser.add_argument("--reason", default="", help="the reason; required unless valid")
    parser.add_argument("--superseded-by", default="", metavar="JOB", help="the run that replaces it")


def _cancel(options: argparse.Namespace) -> int:
    with Client() as client:
        job = client.cancel(job_of(client, options.job))
    print(f"{job.job_id} is {status_of(job.state)}.")
    return DONE


def _retry(options: argparse.Namespace) -> int:
    with Client() as client:
        return follow(client, client.retry(job_of(client, options.job)), options)


def _delete(options: argparse.Namespace) -> int:
    with Client() as client:
        job = client.job(job_of(client, options.job))
        if not options.yes and not _agreed(f"Delete job {job.job_id} ({job.spec.model} on {work_of(job.spec)})?"):
            print(f"{job.job_id} is kept.")
            return DONE
        client.delete(job.job_id)
    print(f"{job.job_id} is deleted.")
    return DONE


def _agreed(question: str) -> bool:
    """Raises InvalidError where nobody can answer."""
    if not sys.stdin.isatty():
        raise InvalidError.of("Deleting cannot be undone. Repeat the command with --yes.")
    return input(f"{question} Its answers and scores cannot be restored. [y/N] ").strip().lower() in ("y", "yes")


def _mark(options: argparse.Namespace) -> int:
    with Client() as client:
        instead = job_of(client, options.superseded_by) if options.superseded_by else ""
        result = client.mark(job_of(client, options.job), options.mark, options.reason, instead)
    print(f"{result.job_id} is {result.mark or 'valid'}.")
    return DONE
