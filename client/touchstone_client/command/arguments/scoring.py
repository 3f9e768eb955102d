"""The arguments that say how answers to uploaded rows are scored."""

from __future__ import annotations

import argparse
from typing import Any

from services.words import phrases
from services.words.enums import ANSWER_MATCHES
from services.words.scorers import SCORERS, USUAL
from touchstone.v1 import job_pb2, scoring_pb2
from touchstone_client.command.arguments.declaring import names
from touchstone_client.specs import changed_scoring

_OPTIONS = ("scorer", "reference_field", "fields", "choices", "answer_pattern", "answer_match")


def add_scoring(parser: argparse.ArgumentParser, unsaid: str) -> None:
    """`unsaid` is what scores where no scorer is given."""
    add = parser.add_argument
    add("--scorer", choices=[*SCORERS], help=f"how answers are scored (default: {unsaid})")
    words = "metadata field or column with the right answer (default: the row's own reference)"
    add("--reference-field", metavar="FIELD", help=words)
    words = "of numeric: largest difference that counts as equal, e.g. 0.01, or 1%% of the reference"
    add("--tolerance", type=_tolerance, metavar="T", help=words)
    add("--fields", type=names, metavar="A,B.C", help="of json: the fields to compare; without it, the reference's")
    add("--choices", type=names, metavar="A,B", help="of choice: the answers to choose from (default: A to J)")
    words = "pattern that extracts the answer from the response with its first group"
    add("--answer-pattern", metavar="REGEX", help=words)
    words = "which match of --answer-pattern is the answer, last or first (default: last)"
    add("--answer-match", type=_match, metavar="MATCH", help=words)


def given(options: argparse.Namespace) -> dict[str, Any]:
    """What the arguments say, by the names in the proto."""
    found = {name: getattr(options, name) for name in _OPTIONS if getattr(options, name) is not None}
    if options.tolerance is not None:
        found["tolerance"], found["tolerance_is_relative"] = options.tolerance
    return found


def scoring_of(options: argparse.Namespace, known: scoring_pb2.Scoring | None = None) -> scoring_pb2.Scoring | None:
    """What the arguments make of a known way of scoring, such as a dataset's own; None where they say nothing."""
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
    if scoring.reference_field:
        parts.append(f"against {scoring.reference_field}")
    if scoring.answer_pattern:
        first = " first" if scoring.answer_match == scoring_pb2.ANSWER_MATCH_FIRST else ""
        parts.append(f"of the match of {scoring.answer_pattern}{first}")
    return " ".join(parts)


def last_messages(done: job_pb2.LastAssistant) -> str:
    """What became of last messages of the assistant's; empty where no row had one."""
    return f"the assistant's last message {phrases.LAST_ASSISTANT[done]}" if done in phrases.LAST_ASSISTANT else ""


def _match(text: str) -> scoring_pb2.AnswerMatch:
    if text not in ANSWER_MATCHES:
        raise argparse.ArgumentTypeError("it may be last or first")
    return ANSWER_MATCHES[text]


def _tolerance(text: str) -> tuple[float, bool]:
    relative = text.endswith("%")
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError("it must be 0 or more, or a share of the reference such as 1%")
    return (value / 100 if relative else value), relative
