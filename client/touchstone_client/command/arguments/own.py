"""The argument that sets something for one of several models: `--set 2:temperature=0.7`."""

from __future__ import annotations

import argparse
import copy
from collections.abc import Sequence

from services.words.job_options import ALL
from touchstone.v1 import job_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import Parser, add_field
from touchstone_client.command.arguments.sampling import add_sampling
from touchstone_client.command.arguments.work import specs_of

_OPTION = "--set"


def add_own(parser: argparse.ArgumentParser) -> None:
    words = (
        "for model number N only: a parameter such as temperature or max-tokens, shots, custom-config, or a dataset of "
        "the same rows with another template; may be repeated"
    )
    parser.add_argument(_OPTION, dest="own", type=_own, action="append", default=[], metavar="N:NAME=VALUE", help=words)


def own_specs(client: Client, options: argparse.Namespace, models: Sequence[str]) -> list[job_pb2.JobSpec]:
    """A spec for each model, with what is set for it. Ends the command for what cannot be set; raises what
    `Client.targets` raises."""
    parser = Parser(prog=f"{options.parser.prog} {_OPTION}", add_help=False, allow_abbrev=False)
    if options.suite:
        add_field(parser, ALL["shots"])
    else:
        parser.add_argument("--dataset")
    add_sampling(parser)
    if wrong := next((number for number, _, _ in options.own if number > len(models)), 0):
        options.parser.error(f"{_OPTION} {wrong}: there are {len(models)} models")
    specs = []
    for number, model in enumerate(models, 1):
        own = copy.copy(options)
        own.models = [model]
        # With "=", as a value may begin with a hyphen.
        parser.parse_args([f"--{name}={value}" for of, name, value in options.own if of == number], own)
        specs += specs_of(client, own)
    return specs


def _own(text: str) -> tuple[int, str, str]:
    number, colon, rest = text.partition(":")
    name, equals, value = rest.partition("=")
    if not (colon and equals and number.isascii() and number.isdigit() and int(number) and name):
        raise argparse.ArgumentTypeError("it must be N:NAME=VALUE, such as 2:temperature=0.7")
    return int(number), name.replace("_", "-"), value
