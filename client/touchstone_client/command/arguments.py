"""Arguments that several verbs share, and how a verb is declared."""

from __future__ import annotations

import argparse
import errno
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from touchstone_client.command.exits import REFUSED
from touchstone_client.command.output import FORMATS

Do = Callable[[argparse.Namespace], int]
_MOST_USAGE = 4
"""Lines of a verb's arguments that are shown above what is wrong with them."""
JOB = "a job's id, its beginning or end, or last for the newest"
_FILES = {"bash": "_shtab_compgen_files", "zsh": "_files"}
"""As shtab.FILE, which is read only where completion is asked for."""


class Parser(argparse.ArgumentParser):
    """`refused` is the exit code for arguments that cannot be."""

    refused = REFUSED

    def error(self, message: str) -> NoReturn:
        usage = self.format_usage()
        if usage.count("\n") > _MOST_USAGE:
            # What is wrong would stand under two dozen lines of what there is.
            usage = f"usage: {self.prog} [arguments]; {self.prog} --help lists them\n"
        self.exit(self.refused, f"{usage}{self.prog}: error: {message}\n")


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


def add_job(parser: argparse.ArgumentParser, words: str = JOB) -> None:
    parser.add_argument("job", metavar="JOB", help=words)


def of_system(error: OSError) -> str:
    """Which file and why, without the system's number."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    why = "the disk is full. Make room and run it again." if full else error.strerror
    return ": ".join(filter(None, (str(error.filename or ""), why))) if why else str(error)


def of_files(action: argparse.Action) -> argparse.Action:
    """Shells complete it with files."""
    vars(action)["complete"] = _FILES
    return action


class Suggestions(tuple[str, ...]):
    """Choices that shells offer, while any other word is accepted, too."""

    __slots__ = ()

    def __contains__(self, word: object) -> bool:
        return True


_MOST_COUNT, _MOST_ID = 2**31 - 1, 2**63 - 1


def names(text: str) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def count(text: str) -> int:
    """1 or more: a limit of 0 would mean all, which nobody asks for by writing a 0."""
    return _between(1, _MOST_COUNT, text)


def whole(text: str) -> int:
    """0 or more."""
    return _between(0, _MOST_COUNT, text)


def days(text: str) -> int:
    """As many as a calendar has room for."""
    return _between(1, 36_500, text)


def project(text: str) -> int:
    """A project's number."""
    return _between(0, _MOST_ID, text)


def seed(text: str) -> int:
    """Of either sign."""
    return _between(-_MOST_ID - 1, _MOST_ID, text)


def finite(text: str) -> float:
    """A number that is neither infinite nor NaN."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError("it must be a number")
    return value


def _between(low: int, high: int, text: str) -> int:
    known = re.fullmatch(r"-?[0-9]{1,20}", text, re.ASCII)
    if not known or not low <= int(text) <= high:
        raise argparse.ArgumentTypeError(f"it must be a whole number from {low:,} to {high:,}")
    return int(text)


def money(text: str) -> float:
    """US dollars above 0."""
    return _above_zero(text, "an amount of US dollars")


def pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError("it must be KEY=VALUE")
    return key, value


def text_or_file(text: str) -> str:
    """The text, or the content of the file after an @."""
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text(encoding="utf-8")
    except OSError as error:
        raise argparse.ArgumentTypeError(of_system(error)) from None
    except UnicodeDecodeError:
        raise argparse.ArgumentTypeError(f"{text[1:]} is not UTF-8 text") from None


def whole_span(text: str) -> tuple[int | None, int | None]:
    """10..200, 10.., ..200 or 10, both ends included."""
    return _span(text, int)


def span(text: str) -> tuple[float | None, float | None]:
    """0.5..1, 0.5.., ..1 or 0.5, both ends included."""
    return _span(text, float)


def _span(text: str, number: Callable[[str], Any]) -> tuple[Any, Any]:
    low, dots, high = text.partition("..")
    try:
        first = number(low) if low else None
        last = (number(high) if high else None) if dots else first
    except ValueError:
        first = last = None
    if first is None and last is None:
        raise argparse.ArgumentTypeError("it must be LOW..HIGH, where one end may be left out, or one number")
    if first is not None and last is not None and not first <= last:
        raise argparse.ArgumentTypeError(f"{low} is above {high}")
    return first, last


def json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"it is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError('it must be a JSON object, such as {"num_gpu": 1}')
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return made


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON value")


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
    return _above_zero(text, "a number of seconds")


def _above_zero(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"it must be {what} above 0")
    return value
