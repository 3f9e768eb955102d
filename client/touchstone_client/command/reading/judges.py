"""`touchstone judges`: what judges found in a job's answers, and how people agree on them."""

from __future__ import annotations

import argparse
from typing import Any

from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_format, add_job, leaf
from touchstone_client.command.arguments.job_ids import job_of
from touchstone_client.command.exits import DONE
from touchstone_client.command.printing.output import show
from touchstone_client.command.reports import judging


def add(commands: Any) -> None:
    words = "show what judges found in a job's answers, and how people agree"
    parser = leaf(commands, "judges", words, _judges)
    add_job(parser)
    add_format(parser)


def _judges(options: argparse.Namespace) -> int:
    with Client() as client:
        job_id = job_of(client, options.job)
        runs, outside, people = client.judges(job_id), client.outside_judges(job_id), client.people_agreement(job_id)
    none = f"No judge of job {job_id}. To start one: touchstone judge {job_id} --model MODEL --rubric FILE"
    show(judging.report(runs, outside, people, none), options.format)
    return DONE
