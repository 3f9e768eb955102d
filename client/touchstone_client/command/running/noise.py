"""`touchstone noise` asks models the same items several times, and says how many flip by chance; `touchstone replay`
asks items of an old job again."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from services.words import noise, replays
from services.words.enums import REPLAY_VERDICTS
from services.words.job_options import ALL
from services.words.refusals import counted
from touchstone.v1 import noise_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_field, add_format, add_job, between, leaf, names
from touchstone_client.command.arguments.job_ids import job_of
from touchstone_client.command.arguments.work import add_work, check, specs_of
from touchstone_client.command.exits import DONE
from touchstone_client.command.printing.documents import document
from touchstone_client.command.printing.figures import score, signed, signed_span, span
from touchstone_client.command.printing.output import Column, Report, Table, show
from touchstone_client.command.reports.scores import optional
from touchstone_client.command.reports.stored import until_stored
from touchstone_client.command.reports.watching import bare
from touchstone_client.command.reports.watching_several import code_of, ends, interrupted

_MORE = """Asks the same items several times, each time in a job of its own, and says how many scores change: by one
serving, and between servings where several models are named. They must be servings of one model. With --jobs, jobs that
are finished are read instead."""
_MORE_OF_REPLAYS = """Asks some items of a completed job again, at the same endpoint with the same parameters and
prompts, and says how many answers change, and whether more than by chance. The items are always the same. The job never
ranks. Of a job that is a replay, what it found is read."""
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

_REPLAY = (
    Column("job_id", "replay"),
    Column("replayed_job_id", "of job"),
    Column("items", "items", right=True),
    Column("share", "flips", score, right=True, key=True),
    Column("interval", "95 % interval", lambda pair: span(*pair), right=True, data=False),
    Column("low", ""),
    Column("high", ""),
    Column("measured", "by chance", score, right=True),
    Column("beyond", "beyond", signed, right=True),
    Column("beyond_interval", "95 % interval", lambda pair: signed_span(*pair), right=True, data=False),
    Column("beyond_low", ""),
    Column("beyond_high", ""),
    Column("higher", "higher", right=True),
    Column("lower", "lower", right=True),
    Column("score_then", "score then", score, right=True),
    Column("score_now", "now", score, right=True),
    Column("verdict", "verdict", key=True),
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
    words = "ask items of a completed job again, and say how many answers change"
    parser = leaf(commands, "replay", words, _replay, _MORE_OF_REPLAYS)
    add_job(parser)
    words = f"about how many, as many of each task (default: {replays.USUAL_ITEMS})"
    parser.add_argument(
        "--items", type=between(1, replays.MOST_ITEMS), default=replays.USUAL_ITEMS, metavar="N", help=words
    )
    add_field(parser, ALL["budget_usd"], ", instead of the job's")
    add_field(parser, ALL["priority"])
    words = "if the command is repeated with the same id, it queues nothing twice"
    parser.add_argument("--request-id", default="", metavar="ID", help=words)
    parser.add_argument("--no-watch", action="store_true", help="print the job's id and leave")
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
            until_stored(client, last)
            _show(client.noise([job.job_id for job in last]), options.format)
        return code


def _replay(options: argparse.Namespace) -> int:
    with Client() as client:
        job = client.job(job_of(client, options.job))
        if not job.spec.replays_job_id:
            job = client.replay(
                job.job_id,
                options.items,
                budget_usd=options.budget_usd,
                priority=options.priority or "",
                request_id=options.request_id,
            )
            print(job.job_id, file=sys.stdout if bare(options) else sys.stderr, flush=True)
            if options.no_watch:
                return DONE
        try:
            last = ends(client, [job])
        except KeyboardInterrupt:
            return interrupted()
        code = code_of(last)
        if code == DONE:
            until_stored(client, last)
            _show_replay(client.replay_result(job.job_id), options.format)
        return code


def _show_replay(found: noise_pb2.Replay, format: str) -> None:
    written = document(found) | {"verdict": REPLAY_VERDICTS.of(found.verdict) or None}
    show(Report([Table(_REPLAY, [_replay_row(found)])], notes=found.words, document=written), format)


def _replay_row(found: noise_pb2.Replay) -> list[Any]:
    measured = found.measured if found.HasField("measured") else None
    ends = (optional(found, "beyond_low"), optional(found, "beyond_high"))
    return [
        *(found.job_id, found.replayed_job_id, found.items, found.flips.share),
        *((found.flips.low, found.flips.high), found.flips.low, found.flips.high),
        measured.share if measured is not None else None,
        *(optional(found, "beyond"), ends, *ends),
        *(found.higher, found.lower, found.score_then, found.score_now),
        REPLAY_VERDICTS.of(found.verdict).replace("_", " "),
    ]


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
