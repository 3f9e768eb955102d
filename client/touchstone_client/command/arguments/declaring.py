"""Arguments that several verbs share, and how a verb is declared."""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from services.words.fields import (
    INT32_MAX,
    INT64_MAX,
    Choice,
    Field,
    Number,
    OpenChoice,
    Pattern,
    Switch,
    TextList,
    TextTable,
    decimal,
)
from services.words.sampling import PARAMETERS, Parameter
from touchstone_client.command.exits import REFUSED
from touchstone_client.command.printing.output import FORMATS
from touchstone_client.errors import InvalidError

Do = Callable[[argparse.Namespace], int]
_MOST_USAGE = 4
"""Lines of a verb's usage that are shown above an error."""
JOB = "a job's id, its beginning or end, or last for the newest"
_FILES = {"bash": "_shtab_compgen_files", "zsh": "_files"}
"""As shtab.FILE, which is imported only for completion."""


class Parser(argparse.ArgumentParser):
    """`refused` is the exit code for invalid arguments."""

    refused = REFUSED

    def error(self, message: str) -> NoReturn:
        usage = self.format_usage()
        if usage.count("\n") > _MOST_USAGE:
            # The error would be below two dozen lines of usage.
            usage = f"usage: {self.prog} [arguments]; {self.prog} --help lists them\n"
        self.exit(self.refused, f"{usage}{self.prog}: error: {message}\n")


def leaf(commands: Any, name: str, words: str, do: Do, description: str = "") -> Parser:
    """A verb that `do` runs. `words` are its help in the list of verbs, and its description unless one is given."""
    sentence = description or f"{words[0].upper()}{words[1:]}."
    parser: Parser = commands.add_parser(name, help=words, description=sentence, allow_abbrev=False)
    parser.set_defaults(do=do, parser=parser)
    return parser


def group(commands: Any, name: str, words: str) -> Any:
    """A verb with subcommands."""
    parser = commands.add_parser(name, help=words, description=f"{words[0].upper()}{words[1:]}.", allow_abbrev=False)
    return parser.add_subparsers(metavar="verb", required=True)


def add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=FORMATS, default="table", help="how to print (default: table)")


def add_limit(parser: argparse.ArgumentParser, default: int, what: str) -> None:
    parser.add_argument("--limit", type=count, default=default, metavar="N", help=f"most {what} (default: {default})")


def add_job(parser: argparse.ArgumentParser, words: str = JOB) -> None:
    parser.add_argument("job", metavar="JOB", help=words)


def of_system(error: OSError) -> str:
    """Which file failed and why, without the system's error number."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    why = "the disk is full. Free some space and run the command again." if full else error.strerror
    return ": ".join(filter(None, (str(error.filename or ""), why))) if why else str(error)


def read_file(file: str, most_bytes: int) -> tuple[str, bytes]:
    """How a file is called, and what it holds; - is standard input. Raises InvalidError for more than `most_bytes`, and
    OSError."""
    place = "standard input" if file == "-" else file
    with contextlib.ExitStack() as stack:
        opened = sys.stdin.buffer if file == "-" else stack.enter_context(Path(file).open("rb"))
        data = opened.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise InvalidError.of(f"{place} has more than {most_bytes:,} bytes. Shorten it.")
    return place, data


def of_files(action: argparse.Action) -> argparse.Action:
    """Shells complete it with files."""
    vars(action)["complete"] = _FILES
    return action


class Suggestions(tuple[str, ...]):
    """Choices that shells complete; any other word is also accepted."""

    __slots__ = ()

    def __contains__(self, word: object) -> bool:
        return True


def names(text: str) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def count(text: str) -> int:
    """1 or more: a limit of 0 would mean all, which nobody expects of a 0."""
    return _between(1, INT32_MAX, text)


def whole(text: str) -> int:
    """0 or more."""
    return _between(0, INT32_MAX, text)


def days(text: str) -> int:
    """At most as many as a calendar has room for."""
    return _between(1, 36_500, text)


def project(text: str) -> int:
    """A project's number."""
    return _between(0, INT64_MAX, text)


def add_field(parser: argparse.ArgumentParser, field: Field, more: str = "") -> None:
    """An argument for a declared field, with all of its names. `more` continues its help. If the argument is not given,
    its value is empty, or None for a sampling parameter and for a number that must be above its low end."""
    add = parser.add_argument
    known: dict[str, Any] = {"dest": dest(field), "help": f"{field.help}{more}"}
    match field:
        case Number():

            def read(text: str) -> Any:
                return _checked(text, field)

            default = None if isinstance(field, Parameter) or field.above else 0
            add(*field.flags, type=read, default=default, metavar="N", **known)
        case OpenChoice():
            add(*field.flags, choices=Suggestions(field.words), default="", **known)
        case Choice():
            add(*field.flags, choices=[*field.words], default="", **known)
        case Switch():
            add(*field.flags, action="store_true", **known)
        case TextList():
            add(*field.flags, type=names, default=[], metavar="A,B", **known)
        case TextTable():
            add(*field.flags, type=pair, action="append", default=[], metavar="KEY=VALUE", **known)
        case Pattern():
            add(*field.flags, default="", metavar="REGEX", **known)
        case _:
            add(*field.flags, default="", metavar="TEXT", **known)


def dest(field: Field) -> str:
    """The name of an argument's value in the parsed arguments: the sample's seed differs from the model's."""
    return field.flag.replace("-", "_") if field.name in PARAMETERS and field.flag else field.name


def seed(text: str) -> int:
    """Of either sign."""
    return _between(-INT64_MAX - 1, INT64_MAX, text)


def between(low: int, high: float, *, whole: bool = True) -> Callable[[str], int | float]:
    """Reads numbers from `low` to `high`, both included."""
    field = Number("", "", low, high, whole=whole)
    return lambda text: _checked(text, field)


def _between(low: int, high: int, text: str) -> int:
    return int(_checked(text, Number("", "", low, high, whole=True)))


def _checked(text: str, field: Number) -> int | float:
    """The number in the text. Raises ArgumentTypeError for a text without a number, or a number outside the field's
    range."""
    value: int | float | str = text
    if field.whole and re.fullmatch(r"-?[0-9]{1,20}", text, re.ASCII):
        value = int(text)
    elif not field.whole and (number := decimal(text)) is not None:
        value = number
    if problem := field.problem(value, "it"):
        raise argparse.ArgumentTypeError(problem.removesuffix("."))
    assert not isinstance(value, str)
    return value


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
        raise argparse.ArgumentTypeError("it must be LOW..HIGH, LOW.., ..HIGH, or one number")
    if first is not None and last is not None and not first <= last:
        raise argparse.ArgumentTypeError(f"{low} is above {high}")
    return first, last


def json_value(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"it is not JSON: {error}") from None


def json_object(text: str) -> dict[str, Any]:
    value = json_value(text)
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError('it must be a JSON object, such as {"num_gpu": 1}')
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("an object has the same name twice")
    return made


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON value")


def share(text: str) -> float:
    """A difference in a metric's own range, 0 < x < 1."""
    value = decimal(text) or 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError("it must be a number between 0 and 1, such as 0.01")
    return value


def seconds(text: str) -> float:
    return _above_zero(text, "a number of seconds")


def _above_zero(text: str, what: str) -> float:
    value = decimal(text) or 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"it must be {what} above 0")
    return value
