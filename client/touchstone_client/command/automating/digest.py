"""`touchstone digest`: what changed in a time."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from typing import Any

from services.words.digests import DAYS, MOST_DAYS, NOTHING_BEFORE, asked, changes
from services.words.enums import COMPARISON_VERDICTS
from touchstone.v1 import digest_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_format, between, leaf, project
from touchstone_client.command.exits import DONE
from touchstone_client.command.printing.documents import document
from touchstone_client.command.printing.figures import dollars, score, whole
from touchstone_client.command.printing.output import Column, Report, Table, show
from touchstone_client.command.reports.scores import optional

_MORE = """Says of each model and suite what its newest run in a time changed against the one before: score and verdict,
items that became right or wrong, served models and versions, cost and speed. It also says which verdicts between models
turned."""
_COLUMNS = (
    Column("model", "model", key=True),
    Column("endpoint", "endpoint"),
    Column("suite", "suite"),
    Column("asked", "asked"),
    Column("runs", "runs", whole, right=True),
    Column("items", "items", whole, right=True),
    Column("score_before", "before", score, right=True),
    Column("score_after", "after", score, right=True),
    Column("verdict", "verdict"),
    Column("became_right", "now right", whole, right=True),
    Column("became_wrong", "now wrong", whole, right=True),
    Column("cost_before", "cost before", dollars, right=True),
    Column("cost_after", "after", dollars, right=True),
    Column("latency_before", "ms before", whole, right=True),
    Column("latency_after", "after", whole, right=True),
)


def add(commands: Any) -> None:
    parser = leaf(commands, "digest", "what changed in the last week, or another time", _digest, _MORE)
    words = f"days to look back (default: {DAYS})"
    parser.add_argument("--days", type=between(1, MOST_DAYS), default=DAYS, metavar="N", help=words)
    words = "when the time ends, e.g. 2026-11-30 or 2026-11-30T06:00 in UTC (default: now)"
    parser.add_argument("--to", type=_moment, default=None, metavar="DATE", help=words)
    parser.add_argument("--schedule", default="", metavar="ID", help="only runs of this schedule")
    parser.add_argument("--project-id", type=project, default=0, metavar="N", help="only this project's")
    add_format(parser)


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
        end = (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
        # As far as one may look back, there are dates.
        end - timedelta(days=MOST_DAYS)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text} is not a date. Write it as 2026-11-30 or 2026-11-30T06:00.") from None
    return end


def _digest(options: argparse.Namespace) -> int:
    with Client() as client:
        found = client.digest(options.days, options.to, options.schedule, options.project_id)
    rows = [_row(one) for one in found.series]
    show(Report([Table(_COLUMNS, rows)], notes=notes(found), document=document(found)), options.format)
    return DONE


def _row(one: digest_pb2.DigestSeries) -> list[Any]:
    before, after = one.before, one.after
    return [
        one.model,
        one.endpoint,
        one.suite,
        asked(one),
        one.runs,
        one.items or None,
        optional(before, "score"),
        optional(after, "score"),
        COMPARISON_VERDICTS.of(one.verdict).replace("_", " "),
        one.became_right if one.items else None,
        one.became_wrong if one.items else None,
        optional(before, "cost_usd"),
        optional(after, "cost_usd"),
        optional(before, "median_latency_ms"),
        optional(after, "median_latency_ms"),
    ]


def notes(found: digest_pb2.Digest) -> list[str]:
    """What the table does not say, in sentences."""
    said = [] if found.series else ["No run has completed in this time."]
    for one in found.series:
        if not one.verdict and one.words not in ("", NOTHING_BEFORE):
            said.append(f"{one.model}@{one.endpoint} on {one.suite}: {one.words}")
        said += [f"{one.model}@{one.endpoint} on {one.suite}: {what}." for what in changes(one)]
    for turned in found.turned:
        then, now = (COMPARISON_VERDICTS.of(one).replace("_", " ") for one in (turned.before, turned.after))
        said.append(f"{turned.a} against {turned.b} on {turned.suite}: the verdict was {then} and is {now}.")
    if found.left_out:
        said.append(f"{found.left_out:,} older series left out.")
    return said
