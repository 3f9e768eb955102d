"""`touchstone bench definition`: the definition of an experiment, as `bench collect` takes it again."""

from __future__ import annotations

import argparse
from typing import Any

from services.experiments import stored_definition
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import leaf
from touchstone_client.command.bench.board import add_experiment
from touchstone_client.command.exits import DONE
from touchstone_client.errors import InvalidError


def add(verbs: Any) -> None:
    words = "print the definition of an experiment"
    more = "Prints the definition of an experiment, which `bench collect` takes again. For admins."
    parser = leaf(verbs, "definition", words, _definition, more)
    add_experiment(parser)
    formats = stored_definition.FORMATS
    parser.add_argument("--format", choices=formats, default=formats[0], help=f"how to print (default: {formats[0]})")


def _definition(options: argparse.Namespace) -> int:
    with Client() as client:
        definition = client.experiment_definition(options.experiment)
    try:
        print(stored_definition.written(definition, options.format), end="")
    except ModuleNotFoundError as error:
        raise InvalidError.of("YAML needs the package PyYAML. Install it, or use --format json.") from error
    return DONE
