"""`touchstone watch`: whether an endpoint still answers as it did in a reference run."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from services.words.enums import WATCH_SIGNALS
from services.words.jobs import suite_of
from services.words.refusals import counted
from services.words.watches import DAILY, DEFAULT_ERROR, DEFAULT_ITEMS, MOST_ERROR, MOST_ITEMS, said
from touchstone.v1 import watch_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_format, between, group, leaf, seed, share
from touchstone_client.command.arguments.job_ids import job_of
from touchstone_client.command.exits import DONE, FAILED
from touchstone_client.command.printing.documents import document
from touchstone_client.command.printing.figures import moment, when, whole
from touchstone_client.command.printing.output import Column, Report, Table, show
from touchstone_client.command.reports.scores import optional

_MORE = """Asks a few items of a completed job again, every day or as often as you say, and raises an alarm when the
answers are not those of that job's model any more. Items are asked on which other models' runs differ most. A failed
call never counts. The alarm stands although the answers are looked at after every run."""
_WATCHES = (
    Column("schedule_id", "watch"),
    Column("label", "label"),
    Column("model_name", "model"),
    Column("endpoint", "endpoint"),
    Column("benchmark_suite", "suite"),
    Column("reference_job_id", "reference"),
    Column("next_at", "next", when),
    Column("last_problem", "problem", lambda problem: problem or "", fold=True),
)
_RUNS = (
    Column("job_id", "run"),
    Column("created_at", "asked", when),
    Column("asked", "canaries", whole, right=True),
    Column("changed", "changed", whole, right=True),
    Column("left_out", "left out", whole, right=True),
)
_CHANGES = (
    Column("job_id", "run"),
    Column("task", "task"),
    Column("item", "item", whole, right=True),
    Column("answer_before", "reference", fold=True),
    Column("answer_now", "now", fold=True),
    Column("score_before", "score", right=True),
    Column("score_now", "now", right=True),
)


def add(commands: Any) -> None:
    verbs = group(commands, "watch", "see whether an endpoint still has the model of a reference run")
    parser = leaf(verbs, "create", "watch an endpoint against a reference run", _create, _MORE)
    parser.add_argument("reference", metavar="JOB", help="the completed job whose answers are the reference")
    words = f"a cron expression (default: '{DAILY}', every day at six)"
    parser.add_argument("--cron", default=DAILY, help=words)
    parser.add_argument("--time-zone", default="", metavar="ZONE", help="e.g. Europe/Zurich (default: UTC)")
    words = "a second run of the reference's model, which shows how much answers differ by chance"
    parser.add_argument("--again", default="", metavar="JOB", help=words)
    parser.add_argument("--endpoint", default="", help="where to ask (default: the reference's)")
    parser.add_argument("--model", default="", help="what to ask for (default: the reference's)")
    words = f"canaries of each run (default: {DEFAULT_ITEMS})"
    parser.add_argument("--items", type=between(1, MOST_ITEMS), default=DEFAULT_ITEMS, metavar="N", help=words)
    words = f"chance of a false alarm, ever; at most {MOST_ERROR:g} (default: {DEFAULT_ERROR:g})"
    parser.add_argument("--error", type=share, default=DEFAULT_ERROR, metavar="P", help=words)
    words = "seed of the order among items that tell models apart equally well"
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help=words)
    parser.add_argument("--label", default="", help="what it is for")
    parser = leaf(verbs, "list", "list watches; `schedules` pauses and deletes them", _list)
    add_format(parser)
    words = "show what the runs of a watch say; exit code 1 if it has raised the alarm"
    parser = leaf(verbs, "show", words, _show)
    parser.add_argument("watch", help="a watch's id")
    add_format(parser)


def _create(options: argparse.Namespace) -> int:
    with Client() as client:
        made = client.start_watch(
            job_of(client, options.reference),
            options.cron,
            again=job_of(client, options.again) if options.again else "",
            endpoint=options.endpoint,
            model=options.model,
            time_zone=options.time_zone,
            label=options.label,
            items=options.items,
            error=options.error,
            seed=options.seed,
        )
    print(made.schedule_id)
    watching = made.spec.watching
    known = watching.known_runs
    chosen = f"on which {known} runs of other models differ most" if known else "drawn at random"
    print(
        f"{counted(watching.total, 'item')} {chosen}, {watching.items} each time. "
        f"First: {when(moment(made.next_at))} UTC.",
        file=sys.stderr,
    )
    return DONE


def _list(options: argparse.Namespace) -> int:
    with Client() as client:
        rows = [
            (
                s.schedule_id,
                s.label,
                s.spec.model,
                s.spec.endpoint,
                suite_of(s.spec),
                s.spec.watching.reference_job_id,
                moment(s.next_at),
                s.last_problem,
            )
            for s in client.schedules()
            if s.spec.HasField("watching")
        ]
    show(Report([Table(_WATCHES, rows)], notes=[] if rows else ["There are no watches."]), options.format)
    return DONE


def _show(options: argparse.Namespace) -> int:
    with Client() as client:
        found = client.read_watch(options.watch)
    runs = [(r.job_id, moment(r.created_at), r.asked, r.changed, r.left_out) for r in found.runs]
    changes = [
        (c.job_id, c.task, c.item, c.answer_before, c.answer_now, optional(c, "score_before"), optional(c, "score_now"))
        for c in found.changes
    ]
    tables = [Table(_RUNS, runs), *([Table(_CHANGES, changes)] if changes else [])]
    written = document(found) | {"raised_by": WATCH_SIGNALS.of(found.raised_by) or None}
    show(Report(tables, notes=notes(found), document=written), options.format)
    return FAILED if found.raised_by else DONE


def notes(found: watch_pb2.Watch) -> list[str]:
    """What it says, in sentences."""
    sentences = [said(found)]
    if found.raised_by:
        at = f"after {counted(found.raised_after, 'item')}"
        sentences[0] += f" Since about {when(moment(found.since_at))} UTC (run {found.since_job_id}); seen {at}."
    if found.left_out:
        sentences.append(f"{counted(found.left_out, 'item')} without an answer left out.")
    if len(found.served) > 1 or any(not one.reference for one in found.served):
        sentences.append(f"The provider names: {', '.join(one.model for one in found.served)}.")
    return sentences
