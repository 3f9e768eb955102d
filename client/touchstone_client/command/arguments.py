"""Arguments that several verbs share, and how a verb is declared."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from touchstone_client.command.exits import REFUSED
from touchstone_client.command.output import FORMATS

Do = Callable[[argparse.Namespace], int]


class Parser(argparse.ArgumentParser):
    """`refused` is the exit code for arguments that cannot be."""

    refused = REFUSED

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(self.refused, f"{self.prog}: error: {message}\n")


def leaf(commands: Any, name: str, words: str, do: Do, description: str = "") -> Parser:
    """A verb that `do` runs. `words` stand in the list of verbs; they are the description, too, unless one is given."""
    sentence = description or f"{words[0].upper()}{words[1:]}."
    parser: Parser = commands.add_parser(name, help=words, description=sentence, allow_abbrev=False)
    parser.set_defaults(do=do, parser=parser)
    return parser


def group(commands: Any, name: str, words: str) -> Any:
    """A verb that has verbs of its own."""
    parser = commands.add_parser(name, help=words, description=f"{words[0].upper()}{words[1:]}.", allow_abbrev=False)
    return parser.add_subparsers(metavar="verb", required=True)


def add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=FORMATS, default="table", help="how to print (default: table)")


def add_limit(parser: argparse.ArgumentParser, default: int, what: str) -> None:
    parser.add_argument("--limit", type=count, default=default, metavar="N", help=f"most {what} (default: {default})")


def names(text: str) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def count(text: str) -> int:
    """1 or more: a limit of 0 would mean all, which nobody asks for by writing a 0."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("it must be a whole number from 1; leave it out for all")
    return int(text)


def json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"it is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError('it must be a JSON object, such as {"num_gpu": 1}')
    return value


def share(text: str) -> float:
    """A difference in a metric's own range, 0 < x < 1."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError("it must be a number between 0 and 1, such as 0.01")
    return value


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError("it must be a number of seconds above 0")
    return value
