"""`touchstone rerun`: again only what was cut, not read, refused or failed."""

from __future__ import annotations

import argparse
from typing import Any

from touchstone_client.client import Client
from touchstone_client.command.arguments import add_job, count, leaf, money
from touchstone_client.command.job_ids import job_of
from touchstone_client.command.watching import add_watch, follow
from touchstone_client.specs import RERUN


def add(commands: Any) -> None:
    words = "ask again for the items of a job that ended badly, and take its other answers"
    parser = leaf(commands, "rerun", words, _rerun, f"Makes a new job: {words}.")
    add_job(parser)
    parser.add_argument(
        "--outcome", choices=[*RERUN], action="append", required=True, help="how those items ended; may be repeated"
    )
    words = "most tokens of an answer, instead of the job's"
    parser.add_argument("--max-tokens", "--num-predict", type=count, metavar="N", help=words)
    words = "context window, instead of the job's"
    parser.add_argument("--context-length", "--num-ctx", type=count, metavar="N", help=words)
    words = "most that the new job may cost in US dollars, instead of the job's"
    parser.add_argument("--budget-usd", type=money, metavar="USD", help=words)
    add_watch(parser)


def _rerun(options: argparse.Namespace) -> int:
    outcomes = [RERUN[word] for word in options.outcome]
    with Client() as client:
        job_id = job_of(client, options.job)
        job = client.rerun(job_id, outcomes, options.max_tokens, options.context_length, options.budget_usd)
        return follow(client, job, options)
