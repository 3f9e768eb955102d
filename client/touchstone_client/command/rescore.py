"""`touchstone rescore`: stored answers under the present scorer."""

from __future__ import annotations

import argparse
from typing import Any

from touchstone_client.client import Client
from touchstone_client.command.arguments import leaf
from touchstone_client.command.watching import add_watch, follow


def add(commands: Any) -> None:
    words = "score a job's stored answers again, without asking the model"
    parser = leaf(commands, "rescore", words, _rescore, f"Makes a new job: {words}.")
    parser.add_argument("job", help="a finished job's id")
    add_watch(parser)


def _rescore(options: argparse.Namespace) -> int:
    with Client() as client:
        return follow(client, client.rescore(options.job), options)
