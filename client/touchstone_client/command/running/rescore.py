"""`touchstone rescore`: stored answers under the present scorer, or another one."""

from __future__ import annotations

import argparse
from typing import Any

from services.words.job_options import ALL
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_field, add_job, leaf
from touchstone_client.command.arguments.job_ids import job_of
from touchstone_client.command.arguments.scoring import add_further, add_scoring, further_of, given, scoring_of
from touchstone_client.command.reports.watching import add_watch, follow


def add(commands: Any) -> None:
    words = "score a job's stored answers again, without calling the model"
    more = (
        " For uploaded rows, you can give another scorer, reference or option, and further scorers. Others stay as "
        "they were."
    )
    parser = leaf(commands, "rescore", words, _rescore, f"Makes a new job: {words}.{more}")
    add_job(parser)
    add_field(parser, ALL["reading"], " (default: as before)")
    add_scoring(parser, "the run's own")
    add_further(parser, "; replaces those of the run, and an empty text leaves them out")
    add_watch(parser)


def _rescore(options: argparse.Namespace) -> int:
    with Client() as client:
        job_id = job_of(client, options.job)
        scoring = scoring_of(options, client.job(job_id).spec.dataset.scoring) if given(options) else None
        return follow(client, client.rescore(job_id, scoring, options.reading, further_of(options)), options)
