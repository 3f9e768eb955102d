"""The arguments of a decision: models, what both are asked, and how it is made. `decide` and `schedules decide` share
them."""

from __future__ import annotations

import argparse
from collections.abc import Container

from services.words.decisions import DEFAULT_ERROR, MOST_MARGIN, MOST_MODELS
from touchstone.v1 import job_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import between, seed, share
from touchstone_client.command.arguments.own import add_own, own_specs
from touchstone_client.command.arguments.work import add_work, check


def add_decision(parser: argparse.ArgumentParser, without: Container[str] = ()) -> None:
    """Leaves out the options in `without`."""
    words = "the model to compare with: its id, or model@endpoint"
    parser.add_argument("baseline", metavar="BASELINE", help=words)
    parser.add_argument("candidate", metavar="CANDIDATE", help="the model that the verdict is about")
    words = f"further models, of which the best is looked for; at most {MOST_MODELS} in all"
    parser.add_argument("others", metavar="OTHER", nargs="*", default=[], help=words)
    add_work(parser, models_elsewhere=True, without=without)
    add_own(parser)
    words = "differences of the mean score below this do not matter (default: 0, every one matters)"
    parser.add_argument("--margin", type=between(0, MOST_MARGIN, whole=False), default=0.0, metavar="D", help=words)
    words = f"chance of a wrong verdict (default: {DEFAULT_ERROR:g})"
    parser.add_argument("--error", type=share, default=DEFAULT_ERROR, metavar="P", help=words)
    parser.add_argument("--order-seed", type=seed, default=0, metavar="N", help="seed of the order of the items")


def decision_specs(client: Client, options: argparse.Namespace) -> list[job_pb2.JobSpec]:
    """A spec for each model, the baseline's first. Ends the command for arguments that do not go together; raises what
    `Client.targets` raises."""
    check(options)
    return own_specs(client, options, (options.baseline, options.candidate, *options.others))
