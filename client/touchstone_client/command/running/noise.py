"""`touchstone noise` asks models the same items several times, and says how many flip by chance."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from services.words import noise
from services.words.refusals import counted
from touchstone.v1 import noise_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_format, between, leaf, names
from touchstone_client.command.arguments.job_ids import job_of
from touchstone_client.command.arguments.work import add_work, check, specs_of
from touchstone_client.command.exits import DONE
from touchstone_client.command.printing.documents import document
from touchstone_client.command.printing.figures import score, span
from touchstone_client.command.printing.output import Column, Report, Table, show
from touchstone_client.command.reports.scores import optional
from touchstone_client.command.reports.watching import bare
from touchstone_client.command.reports.watching_several import code_of, ends, interrupted

_MORE = """Asks the same items several times, each time in a job of its own, and says how many scores change: by one
serving, and between servings where several models are named. They must be servings of one model. With --jobs, jobs that
are finished are read instead."""
_USUAL, _MOST = 3, 20
_SERVINGS = (
    Column("model", "model", key=True),
    Column("endpoint", "endpoint"),
    Column("job_id", "job"),
    Column("repeats", "askings", right=True),
    Column("score", "score", score, right=True, key=True),
)
_FIGURES = (
    Column("task", "task", lambda task: task or "all", key=True),
    Column("items", "items", right=True),
    Column("reasking", "flips, asked again", score, right=True, key=True),
    Column("reasking_interval", "95 % interval", lambda pair: span(*pair), right=True, data=False),
    Column("reasking_low", ""),
    Column("reasking_high", ""),
    Column("servings", "flips, servings", score, right=True),
    Column("servings_interval", "95 % interval", lambda pair: span(*pair), right=True, data=False),
    Column("servings_low", ""),
    Column("servings_high", ""),
    Column("floor", "two runs differ by", score, right=True),
    *(
        Column(f"variance_{name}", title, score, right=True, extra=True)
        for name, title in (
            ("items", "variance: items"),
            ("reasking", "re-asking"),
            ("runs", "runs"),
            ("servings", "servings"),
            ("interaction", "interaction"),
        )
    ),
)


def add(commands: Any) -> None:
    words = "ask the same items several times, and say how many answers change"
    parser = leaf(commands, "noise", words, _noise, _MORE)
    words = "a model's id, or model@endpoint; several servings of one model may be named"
    parser.add_argument("models", metavar="MODEL", nargs="*", help=words)
    work = add_work(parser, models_elsewhere=True, without=("repeats",))
    words = "read these finished jobs instead, separated by commas"
    work.add_argument("--jobs", type=names, default=[], metavar="JOB,JOB", help=words)
    parser.set_defaults(more="models")
    words = f"how often each model is asked, each time in a job of its own (default: {_USUAL})"
    parser.add_argument("--repeats", dest="askings", type=between(1, _MOST), default=_USUAL, metavar="N", help=words)
    words = "if the command is repeated with the same id, it queues nothing twice"
    parser.add_argument("--request-id", default="", metavar="ID", help=words)
    parser.add_argument("--no-watch", action="store_true", help="print the jobs' ids and leave")
    add_format(parser)


def _noise(options: argparse.Namespace) -> int:
    check(options)
    if bool(options.jobs) == bool(options.models):
        options.parser.error("name models with --suite or --dataset, or finished jobs with --jobs")
    if options.any_job:
        options.parser.error("--reuse takes stored answers, and noise is measured by asking again")
    with Client() as client:
        if options.jobs:
            _show(client.noise([job_of(client, word) for word in options.jobs]), options.format)
            return DONE
        specs = specs_of(client, options)
        if len(specs) * options.askings < 2:
            options.parser.error("ask at least twice: raise --repeats, or name several servings")
        jobs = client.run_all([spec for spec in specs for _ in range(options.askings)], options.request_id)
        for job in jobs:
            print(job.job_id, file=sys.stdout if bare(options) else sys.stderr, flush=True)
        if options.no_watch:
            return DONE
        try:
            last = ends(client, jobs)
        except KeyboardInterrupt:
            return interrupted()
        code = code_of(last)
        if code == DONE:
            _show(client.noise([job.job_id for job in last]), options.format)
        return code


def _show(found: noise_pb2.Noise, format: str) -> None:
    show(report(found), format)


def report(found: noise_pb2.Noise) -> Report:
    """The figures of all tasks and of each, and the runs that they come from."""
    runs = [
        (serving.model, serving.endpoint, run.job_id, run.repeats, run.score)
        for serving in found.servings
        for run in serving.runs
    ]
    return Report(
        [Table(_FIGURES, [_row(one) for one in (found.total, *found.tasks)]), Table(_SERVINGS, runs, "Runs")],
        notes=[*noise.sentences(found.total), *found.notes],
        document=document(found),
        heading=f"{found.suite}, {counted(found.total.items, 'item')}",
    )


def _row(one: noise_pb2.NoiseFigures) -> list[Any]:
    row: list[Any] = [one.title or one.task, one.items]
    for name in ("reasking", "servings"):
        known = getattr(one, name) if one.HasField(name) else None
        ends = (known.low, known.high) if known is not None else (None, None)
        row += [known.share if known is not None else None, ends, *ends]
    parts = [optional(one.variance, name) for name in ("reasking", "runs", "servings", "interaction")]
    return [*row, optional(one, "floor"), one.variance.items if one.HasField("variance") else None, *parts]
