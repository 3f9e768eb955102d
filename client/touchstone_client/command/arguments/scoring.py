"""The arguments that say how answers to uploaded rows are scored."""

from __future__ import annotations

import argparse
from typing import Any

from services.words import phrases
from services.words.fields import decimal
from services.words.job_options import ALL
from services.words.scorers import OPTIONS, USUAL, ScoringOptions
from services.words.scorers import scoring_of as scoring_made
from touchstone.v1 import job_pb2, scoring_pb2
from touchstone_client.command.arguments.declaring import add_field, json_object
from touchstone_client.specs import changed_scoring

_SHARE = "tolerance_is_relative"
"""It has no separate flag: a tolerance may be a percentage."""


def add_scoring(parser: argparse.ArgumentParser, unsaid: str) -> None:
    """`unsaid` is the help's text on what scores without a scorer."""
    more = {"scorer": f" (default: {unsaid})", "tolerance": ", e.g. 0.01, or 1%% of the reference"}
    for name, option in OPTIONS.items():
        if name == "tolerance":
            parser.add_argument(*option.flags, type=_tolerance, metavar="T", help=f"{option.help}{more[name]}")
        elif name != _SHARE:
            add_field(parser, option, more.get(name, ""))
    # An empty text counts as given.
    parser.set_defaults(**dict.fromkeys(OPTIONS))


def add_further(parser: argparse.ArgumentParser, more: str = "") -> None:
    """`more` continues the help."""
    field = ALL["further"]
    words = f"a further scorer, reported and not scored: its name, or JSON with its options; may be repeated{more}"
    parser.add_argument(*field.flags, dest=field.name, type=_further, action="append", metavar="SCORER", help=words)


def further_of(options: argparse.Namespace) -> list[scoring_pb2.Scoring] | None:
    """The further scorers; None if the argument is not given, empty if it is an empty text."""
    return None if options.further is None else [scoring for scoring in options.further if scoring is not None]


def given(options: argparse.Namespace) -> ScoringOptions:
    """What the arguments say."""
    found: Any = {name: getattr(options, name) for name in OPTIONS if getattr(options, name) is not None}
    if options.tolerance is not None:
        found["tolerance"], found[_SHARE] = options.tolerance
    made: ScoringOptions = found
    return made


def scoring_of(options: argparse.Namespace, known: scoring_pb2.Scoring | None = None) -> scoring_pb2.Scoring | None:
    """A known scoring, such as a dataset's own, changed by the arguments; None if they are not given."""
    asked = given(options)
    return changed_scoring(known or scoring_pb2.Scoring(), **asked) if asked else None


def words(scoring: scoring_pb2.Scoring) -> str:
    """numeric within 1 % against answer."""
    parts = [scoring.scorer or USUAL]
    if scoring.tolerance:
        relative = scoring.tolerance_is_relative
        parts.append(f"within {100 * scoring.tolerance:g} %" if relative else f"within {scoring.tolerance:g}")
    if scoring.fields:
        parts.append(f"of the fields {', '.join(scoring.fields)}")
    if scoring.choices:
        parts.append(f"among {', '.join(scoring.choices)}")
    if scoring.schema:
        parts.append("with a schema of its own")
    if scoring.reference_field:
        parts.append(f"against {scoring.reference_field}")
    if scoring.group_field:
        parts.append(f"in groups by {scoring.group_field}")
    if scoring.answer_pattern:
        first = " first" if scoring.answer_match == scoring_pb2.ANSWER_MATCH_FIRST else ""
        parts.append(f"of the match of {scoring.answer_pattern}{first}")
    return " ".join(parts)


def last_messages(done: job_pb2.LastAssistant) -> str:
    """What became of final messages from the assistant; empty if no row had one."""
    return f"the assistant's last message {phrases.LAST_ASSISTANT[done]}" if done in phrases.LAST_ASSISTANT else ""


def _further(text: str) -> scoring_pb2.Scoring | None:
    if not text:
        return None
    asked = json_object(text) if text.startswith("{") else {"scorer": text}
    if unknown := sorted(asked.keys() - OPTIONS.keys()):
        raise argparse.ArgumentTypeError(f"{unknown[0]} is not an option of scorers. Use {', '.join(OPTIONS)}")
    for name, value in asked.items():
        try:
            scoring_made({name: value})
        except (KeyError, TypeError, ValueError):
            raise argparse.ArgumentTypeError(f"{value!r} is not a valid {name}") from None
    return scoring_made(asked)


def _tolerance(text: str) -> tuple[float, bool]:
    relative = text.endswith("%")
    value: float | str = text
    if (number := decimal(text.removesuffix("%"))) is not None:
        value = number / (100 if relative else 1)
    if problem := OPTIONS["tolerance"].problem(value, "it"):
        raise argparse.ArgumentTypeError(f"{problem.removesuffix('.')}, or a share of the reference such as 1%")
    assert isinstance(value, float)
    return value, relative
