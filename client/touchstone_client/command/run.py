"""`touchstone run`: one model on one suite."""

from __future__ import annotations

import argparse
from typing import Any

from touchstone_client.client import Client
from touchstone_client.command.arguments import leaf
from touchstone_client.command.sampling import add_how, add_what, spec_of
from touchstone_client.command.watching import add_watch, follow


def add(commands: Any) -> None:
    words = "evaluate a model on a suite"
    parser = leaf(commands, "run", words, _run, "Queues a job, follows it to its end and prints its scores.")
    add_what(parser)
    add_how(parser)
    parser.add_argument("--request-id", default="", metavar="ID", help="repeated runs with the same id make one job")
    parser.add_argument("--webhook-url", default="", metavar="URL", help="told when the job is finished")
    add_watch(parser)


def _run(options: argparse.Namespace) -> int:
    with Client() as client:
        spec = spec_of(client, options)
        spec.webhook_url = options.webhook_url
        return follow(client, client.run(spec, options.request_id), options)
