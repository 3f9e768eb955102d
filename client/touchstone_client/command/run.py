"""`touchstone run`: models on a suite, or on an uploaded dataset."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from touchstone_client.client import Client
from touchstone_client.command.arguments import leaf
from touchstone_client.command.watching import add_watch, bare, follow
from touchstone_client.command.watching_several import follow_several
from touchstone_client.command.work import add_work, check, specs_of


def add(commands: Any) -> None:
    words = "evaluate models on a suite or a dataset"
    parser = leaf(commands, "run", words, _run, "Queues a job a model, follows them to their end and prints scores.")
    add_work(parser)
    parser.add_argument(
        "--request-id", default="", metavar="ID", help="repeated with the same id, the command queues nothing twice"
    )
    parser.add_argument("--webhook-url", default="", metavar="URL", help="told when the job is finished")
    add_watch(parser)


def _run(options: argparse.Namespace) -> int:
    check(options)
    with Client() as client:
        specs = specs_of(client, options)
        for spec in specs:
            spec.webhook_url = options.webhook_url
        jobs = client.run_all(specs, options.request_id)
        if len(jobs) == 1:
            return follow(client, jobs[0], options)
        for job in jobs:
            print(job.job_id, file=sys.stdout if bare(options) else sys.stderr, flush=True)
        return follow_several(client, jobs, options)
