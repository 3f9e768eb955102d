"""`touchstone decide` finds out with few calls whether a model is better than another; `touchstone decisions` reads
what was found."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from services.words.decisions import names, said_of, specs_of
from services.words.durations import time_left
from services.words.enums import DECISION_VERDICTS, RACER_STATES
from services.words.refusals import counted
from touchstone.v1 import decision_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.deciding import add_decision, decision_specs
from touchstone_client.command.arguments.declaring import add_format, add_limit, leaf
from touchstone_client.command.arguments.job_ids import job_of
from touchstone_client.command.exits import DONE, FAILED
from touchstone_client.command.printing.documents import document
from touchstone_client.command.printing.figures import dollars, signed, whole
from touchstone_client.command.printing.output import Column, Report, Table, show
from touchstone_client.command.reports.scores import optional
from touchstone_client.command.reports.stored import ended_decision
from touchstone_client.command.reports.watching import bare
from touchstone_client.command.reports.watching_several import ends, failures, interrupted

_MORE = """Asks two models the same items in one random order. Stops as soon as it is known whether the second one is
better or worse, equivalent within a margin, or unlikely to be shown to differ. The verdict holds although it is looked
for after every answer. Stopped jobs do not rank; a retry runs the rest. With more than two models, it is a race for the
best one: a model stops as soon as another one is better."""
_COLUMNS = (
    Column("decision", "decision", key=True),
    Column("baseline", "baseline"),
    Column("candidate", "candidate"),
    Column("verdict", "verdict"),
    Column("decided_at", "decided after", whole, right=True),
    Column("pairs", "pairs", whole, right=True),
    Column("items_total", "of items", whole, right=True),
    Column("difference", "difference", signed, right=True),
    Column("low", "low", signed, right=True),
    Column("high", "high", signed, right=True),
    Column("saved", "calls saved", whole, right=True, extra=True),
)
_RACERS = (
    Column("job_id", "job", key=True),
    Column("model", "model"),
    Column("state", "state"),
    Column("against", "compared with"),
    Column("beaten_at", "beaten after", whole, right=True),
    Column("pairs", "pairs", whole, right=True),
    Column("difference", "difference", signed, right=True),
    Column("low", "low", signed, right=True),
    Column("high", "high", signed, right=True),
)
_BEST = decision_pb2.Racer.STATE_BEST


def add(commands: Any) -> None:
    words = "find out whether a model is better than another, or which is the best, and stop once it is known"
    parser = leaf(commands, "decide", words, _decide, _MORE)
    add_decision(parser)
    words = "if the command is repeated with the same id, it queues nothing twice"
    parser.add_argument("--request-id", default="", metavar="ID", help=words)
    parser.add_argument("--no-watch", action="store_true", help="print the decision's id and leave")
    add_format(parser)
    words = "decisions, newest first, or one of them"
    parser = leaf(commands, "decisions", words, _decisions)
    words = "a decision's id, or part of the id of one of its jobs"
    parser.add_argument("decision", metavar="DECISION", nargs="?", default="", help=words)
    parser.add_argument("--schedule", default="", metavar="ID", help="only those that this schedule has started")
    add_limit(parser, 20, "decisions")
    add_format(parser)


def _decide(options: argparse.Namespace) -> int:
    with Client() as client:
        made = client.start_decision(
            *decision_specs(client, options),
            error=options.error,
            margin=options.margin,
            seed=options.order_seed,
            request_id=options.request_id,
        )
        print(made.decision_id, file=sys.stdout if bare(options) else sys.stderr, flush=True)
        if options.no_watch:
            return DONE
        try:
            last = ends(client, [made.baseline, made.candidate, *made.further_candidates])
            found = ended_decision(client, made.decision_id)
        except KeyboardInterrupt:
            return interrupted()
        _show_one(found, options.format)
        if found.verdict:
            return DONE
        for name, reason in failures(last):
            print(f"touchstone: {name}: {reason}", file=sys.stderr)
        return FAILED


def _decisions(options: argparse.Namespace) -> int:
    with Client() as client:
        if options.decision:
            _show_one(client.decision(job_of(client, options.decision)), options.format)
            return DONE
        rows = []
        for found in client.decisions(options.schedule):
            rows.append(_row(found))
            if len(rows) == options.limit:
                break
    show(Report([Table(_COLUMNS, rows)]), options.format)
    return DONE


def _show_one(found: decision_pb2.Decision, format: str) -> None:
    table = Table(_RACERS, _racers(found)) if found.racers else Table(_COLUMNS, [_row(found)])
    if format != "table":
        written = document(found) | {"verdict": DECISION_VERDICTS.of(found.verdict) or None}
        show(Report([table], notes=[sentence(found)], document=written), format)
        return
    print(sentence(found))
    if found.racers:
        show(Report([table]), format)


def _row(found: decision_pb2.Decision) -> list[Any]:
    if found.racers:
        called = names([racer.job.spec for racer in found.racers])
        best = next((name for name, racer in zip(called, found.racers, strict=True) if racer.state == _BEST), "")
        models = [called[0], counted(len(called) - 1, "other")]
    else:
        models, best = names((found.baseline.spec, found.candidate.spec)), ""
    return [
        found.decision_id,
        *models,
        " ".join(filter(None, (DECISION_VERDICTS.of(found.verdict), best))),
        found.decided_at or None,
        found.pairs,
        found.items_total,
        *(optional(found, name) for name in ("difference", "low", "high")),
        found.saved.items if found.HasField("saved") else None,
    ]


def _racers(found: decision_pb2.Decision) -> list[list[Any]]:
    called = names([racer.job.spec for racer in found.racers])
    by_job = dict(zip((racer.job.job_id for racer in found.racers), called, strict=True))
    return [
        [
            racer.job.job_id,
            name,
            RACER_STATES.of(racer.state).replace("_", " "),
            by_job.get(racer.against_job_id, ""),
            racer.beaten_at or None,
            racer.pairs or None,
            *(optional(racer, field) for field in ("difference", "low", "high")),
        ]
        for name, racer in zip(called, found.racers, strict=True)
    ]


def sentence(found: decision_pb2.Decision) -> str:
    """What was found, and what it saved."""
    side = found.baseline.spec.deciding
    parts = [said_of(found, names(specs_of(found)))]
    if found.HasField("difference"):
        share = f"{100 * (1 - side.error):.4g} %"
        parts.append(f": {signed(found.difference)} ({share}: {signed(found.low)} to {signed(found.high)})")
    counted_to = found.decided_at or found.pairs
    parts.append(f", after {counted_to:,} of {counted(found.items_total, 'item')}.")
    if found.failed:
        parts.append(f" {counted(found.failed, 'item')} without an answer left out.")
    if found.note:
        parts.append(f" {found.note}")
    saved = found.saved
    if saved.items and found.verdict:
        what = [counted(saved.items, "call")]
        what += [f"{whole(saved.tokens)} tokens"] if saved.HasField("tokens") else []
        what += [dollars(saved.cost_usd)] if saved.HasField("cost_usd") else []
        what += [time_left(saved.seconds)] if saved.seconds else []
        parts.append(f" Saved about {', '.join(what)}.")
    return "".join(parts)
