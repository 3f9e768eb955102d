"""`touchstone rerun`: repeats only items that were truncated, unparsed, refused or failed."""

from __future__ import annotations

import argparse
from typing import Any

from services.words.job_options import ALL
from services.words.sampling import PARAMETERS, RAISED
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_field, add_job, leaf
from touchstone_client.command.arguments.job_ids import job_of
from touchstone_client.command.reports.watching import add_watch, follow
from touchstone_client.specs import RERUN


def add(commands: Any) -> None:
    words = "run items of a job with certain outcomes again, and reuse its other answers"
    parser = leaf(commands, "rerun", words, _rerun, f"Makes a new job: {words}.")
    add_job(parser)
    parser.add_argument(
        "--outcome", choices=[*RERUN], action="append", required=True, help="how those items ended; may be repeated"
    )
    for name in RAISED:
        add_field(parser, PARAMETERS[name], ", instead of the job's and no lower")
    add_field(parser, ALL["budget_usd"], ", instead of the job's")
    add_watch(parser)


def _rerun(options: argparse.Namespace) -> int:
    outcomes = [RERUN[word] for word in options.outcome]
    with Client() as client:
        job_id = job_of(client, options.job)
        job = client.rerun(job_id, outcomes, options.max_tokens, options.context_length, options.budget_usd)
        return follow(client, job, options)
