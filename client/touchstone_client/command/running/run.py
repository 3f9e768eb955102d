"""`touchstone run`: models on a suite, or on an uploaded dataset."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from services.words.job_options import ALL
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_field, leaf
from touchstone_client.command.arguments.judging import add_judge, check_judge, judges_of
from touchstone_client.command.arguments.work import add_work, check, specs_of
from touchstone_client.command.reports.watching import add_watch, bare, follow
from touchstone_client.command.reports.watching_several import follow_several


def add(commands: Any) -> None:
    words = "evaluate models on a suite or a dataset"
    parser = leaf(
        commands, "run", words, _run, "Queues one job per model, follows the jobs to the end and prints the scores."
    )
    add_work(parser)
    parser.add_argument(
        "--request-id",
        default="",
        metavar="ID",
        help="if the command is repeated with the same id, it queues nothing twice",
    )
    add_field(parser, ALL["webhook_url"])
    add_judge(parser)
    add_watch(parser)


def _run(options: argparse.Namespace) -> int:
    check(options)
    check_judge(options)
    with Client() as client:
        judges = judges_of(client, options)
        specs = specs_of(client, options)
        for spec in specs:
            spec.judges.extend(judges)
        jobs = client.run_all(specs, options.request_id)
        for judge in judges:
            words = f"{judge.model} judges the answers of each job once it is completed: touchstone judges JOB"
            print(f"touchstone: {words}", file=sys.stderr)
        if len(jobs) == 1:
            return follow(client, jobs[0], options)
        for job in jobs:
            print(job.job_id, file=sys.stdout if bare(options) else sys.stderr, flush=True)
        return follow_several(client, jobs, options)
