"""`touchstone rerun`: again only what was cut, not read, refused or failed."""

from __future__ import annotations

import argparse
from typing import Any

from touchstone_client.client import Client
from touchstone_client.command.arguments import leaf
from touchstone_client.command.watching import add_watch, follow
from touchstone_client.specs import RERUN


def add(commands: Any) -> None:
    words = "ask again for the items of a job that ended badly, and take its other answers"
    parser = leaf(commands, "rerun", words, _rerun, f"Makes a new job: {words}.")
    parser.add_argument("job", help="a finished job's id")
    parser.add_argument(
        "--outcome", choices=[*RERUN], action="append", required=True, help="how those items ended; may be repeated"
    )
    words = "most tokens of an answer, instead of the job's"
    parser.add_argument("--max-tokens", "--num-predict", type=int, metavar="N", help=words)
    words = "context window, instead of the job's"
    parser.add_argument("--context-length", "--num-ctx", type=int, metavar="N", help=words)
    add_watch(parser)


def _rerun(options: argparse.Namespace) -> int:
    outcomes = [RERUN[word] for word in options.outcome]
    with Client() as client:
        job = client.rerun(options.job, outcomes, options.max_tokens, options.context_length)
        return follow(client, job, options)
