"""`touchstone judge`: a model judges the stored answers of a job by a rubric."""

from __future__ import annotations

import argparse
from typing import Any

from services.words.job_options import ALL
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_field, add_job, count, leaf, of_files
from touchstone_client.command.arguments.job_ids import job_of
from touchstone_client.command.arguments.judging import RUBRIC, rubric_of
from touchstone_client.command.arguments.sampling import add_sampling, parameters_of
from touchstone_client.command.reports.watching import add_watch, follow


def add(commands: Any) -> None:
    words = "let a model judge a completed job's answers by a rubric, or compare them with another job's"
    more = (
        "Makes a new job: a model judges a completed job's stored answers by a rubric. With --against, it says "
        "which of two jobs' answers are better."
    )
    parser = leaf(commands, "judge", words, _judge, more)
    add_job(parser)
    words = "the judge's id, or model@endpoint"
    parser.add_argument("--model", required=True, metavar="MODEL", help=words)
    words = "an endpoint's name, or its kind when only one has it; not needed where only one has the model"
    parser.add_argument("--endpoint", "--provider", default="", help=words)
    of_files(parser.add_argument("--rubric", default="", metavar="FILE", help=RUBRIC))
    words = "another completed job: compare its answers with these, each pair in both orders"
    parser.add_argument("--against", default="", metavar="JOB", help=words)
    words = "judgements of each answer (default: 1)"
    parser.add_argument("--repeats", type=count, default=0, metavar="N", help=words)
    add_field(parser, ALL["budget_usd"], "; needs known prices, and --max-tokens")
    add_field(parser, ALL["priority"])
    add_sampling(parser)
    words = "if the command is repeated with the same id, it queues nothing twice"
    parser.add_argument("--request-id", default="", metavar="ID", help=words)
    add_watch(parser)


def _judge(options: argparse.Namespace) -> int:
    if not (options.rubric or options.against):
        options.parser.error("a judge needs --rubric, unless it compares with another job: --against")
    rubric = rubric_of(options.rubric) if options.rubric else None
    with Client() as client:
        (target,) = client.targets([options.model], options.endpoint)
        job = client.judge(
            job_of(client, options.job),
            endpoint=target.endpoint,
            model=target.model,
            rubric=rubric,
            against=job_of(client, options.against) if options.against else "",
            priority=options.priority,
            request_id=options.request_id,
            sampling=parameters_of(options),
            repeats=options.repeats,
            budget_usd=options.budget_usd,
        )
        return follow(client, job, options)
