"""`touchstone side-by-side`: answers of several jobs to the same rows."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from services.words import chat
from services.words.enums import DIFF_PARTS
from services.words.jobs import status_of
from services.words.refusals import counted
from touchstone.v1 import results_service_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.conditions import add_conditions, conditions
from touchstone_client.command.arguments.declaring import JOB, add_format, count, leaf
from touchstone_client.command.arguments.job_ids import job_of
from touchstone_client.command.exits import DONE
from touchstone_client.command.printing.documents import document, told
from touchstone_client.command.printing.figures import MISSING, dollars, excerpt, listed_on, score, span, whole
from touchstone_client.command.printing.labels import labels
from touchstone_client.command.printing.marks import ADDED, REMOVED, Part
from touchstone_client.command.printing.output import Column, Report, Table, show
from touchstone_client.command.reading.items import outcome_of, verdict_of
from touchstone_client.command.reports.scores import optional
from touchstone_client.specs import SIDE_BY_SIDE_FILTERS

Response = results_service_pb2.ListSideBySideResponse
Row = results_service_pb2.SideBySideRow
_ABOUT_ONE = ("only-right", "only-wrong")
_PAGE, _PAGE_WITH_DIFFS = 50, 20
_ON_A_TERMINAL = 20
_MARKS = {"removed": REMOVED, "added": ADDED}
_RUNS = (
    Column("run", "run", data=False),
    Column("job_id", "job"),
    Column("status", "status", extra=True),
    Column("rows", "rows", right=True),
    Column("mean_score", "score", score, right=True, key=True),
    Column("interval", "95 % interval", lambda pair: span(*pair), right=True, data=False, key=True),
    Column("only_right", "only right", right=True),
    Column("only_wrong", "only wrong", right=True),
    Column("mean_latency_ms", "ms", whole, right=True),
    Column("input_tokens", "tokens in", right=True, extra=True),
    Column("output_tokens", "tokens out", right=True),
    Column("cost_usd", "cost", dollars, right=True),
)
_CSV = tuple(
    Column(name, name)
    for name in (
        "custom_id", "task", "item", "repeat", "agree", "job_id", "model_name", "outcome", "correct", "score",
        "prediction", "reference", "response", "latency_ms", "input_tokens", "output_tokens", "cost_usd", "verdict",
    )
)  # fmt: skip
_ANSWERS = (
    Column("run", "run"),
    Column("right", "right"),
    Column("ms", "ms", whole, right=True, extra=True),
    Column("output_tokens", "tokens", right=True, extra=True),
    Column("answer", "answer", lambda parts: parts, fold=True, whole=True),
)


def add(commands: Any) -> None:
    words = "show the answers of two to four jobs to the same rows"
    parser = leaf(commands, "side-by-side", words, _side_by_side)
    parser.add_argument("jobs", nargs="+", metavar="JOB", help=f"two to four of: {JOB}")
    parser.set_defaults(more="jobs")
    words = "which rows; only-right and only-wrong are about --only (default: all)"
    parser.add_argument("--filter", choices=[*SIDE_BY_SIDE_FILTERS], default="all", help=words)
    words = "the job that is the only one right or wrong (default: the first)"
    parser.add_argument("--only", default="", metavar="JOB", help=words)
    words = "show what differs from the first job's answer, word by word"
    parser.add_argument("--diff", action="store_true", help=words)
    add_conditions(parser)
    words = f"most rows (default: {_ON_A_TERMINAL} on a terminal, else all)"
    parser.add_argument("--limit", type=count, default=0, metavar="N", help=words)
    add_format(parser)


def _side_by_side(options: argparse.Namespace) -> int:
    if not 2 <= len(options.jobs) <= 4:
        options.parser.error("name two to four jobs")
    with Client() as client:
        job_ids = [job_of(client, job) for job in options.jobs]
        filters = conditions(options)
        filters["filter"] = options.filter
        only = job_of(client, options.only) if options.only else job_ids[0]
        limit = options.limit or _usual_limit(options.format)
        most = _PAGE_WITH_DIFFS if options.diff else _PAGE
        pages = client.side_by_side(
            job_ids,
            only_job_id=only if options.filter in _ABOUT_ONE else "",
            diffs=options.diff,
            page_size=min(most, limit or most),
            **filters,
        )
        told = next(pages)
        while (not limit or len(told.rows) < limit) and (page := next(pages, None)):
            told.rows.extend(page.rows)
    if limit:
        del told.rows[limit:]
    show(_report(told, options.diff), options.format)
    return DONE


def _usual_limit(format: str) -> int:
    """People look at some rows; programs and files get all, which 0 means."""
    return _ON_A_TERMINAL if format in ("table", "markdown") and sys.stdout.isatty() else 0


def _report(told: Response, diff: bool) -> Report:
    called = labels([run.job for run in told.runs])
    runs = Table(_RUNS, [_run(run, called) for run in told.runs], "Runs")
    rows = [_with_diff(row, called) for row in told.rows] if diff else [_beside(told.rows, called)]
    shown = (
        (f"{len(told.rows):,} of {counted(told.total_size, 'row')} that match.")
        if told.total_size
        else "No rows match."
    )
    if 0 < len(told.rows) < told.total_size:
        shown += f" {told.total_size - len(told.rows):,} more: --limit {told.total_size}."
    of_all = f"{counted(told.count_all, 'row')}: {told.count_agree:,} agree"
    if any(run.HasField("mean_score") for run in told.runs):
        of_all += f", {told.count_all_right:,} all right, {told.count_all_wrong:,} all wrong"
    known = document(told)
    del known["next_page_token"]
    table = Table(_CSV, [line for row in told.rows for line in _lines(row, told.runs)])
    priced = [run for run in told.runs if run.HasField("cost_usd") and listed_on(run.job.receipt.prices)]
    listed = [f"{called[run.job.job_id]}: cost at the {listed_on(run.job.receipt.prices)}." for run in priced]
    return Report([runs, *rows], notes=[f"{of_all}.", shown, *listed], document=known, csv=table)


def _run(run: results_service_pb2.SideBySideRun, called: Mapping[str, str]) -> Sequence[Any]:
    return (
        called[run.job.job_id],
        run.job.job_id,
        status_of(run.job.state),
        run.rows,
        optional(run, "mean_score"),
        (optional(run, "score_ci95_low"), optional(run, "score_ci95_high")),
        run.only_right,
        run.only_wrong,
        run.mean_latency_ms,
        told(run, "input_tokens"),
        told(run, "output_tokens"),
        optional(run, "cost_usd"),
    )


def _beside(rows: Sequence[Row], called: Mapping[str, str]) -> Table:
    """One line per row, one column per answer."""
    answers = [Column(job_id, name, lambda words: excerpt(words, 80), fold=True) for job_id, name in called.items()]
    columns = (Column("row", "row"), Column("agree", "agree"), *answers)
    lines = [
        (_name(row), row.agree, *(f"{_right(stored, ': ')}{_answer(stored)}" for stored in row.items)) for row in rows
    ]
    return Table(columns, lines, "Rows")


def _with_diff(row: Row, called: Mapping[str, str]) -> Table:
    lines = []
    for place, (name, stored) in enumerate(zip(called.values(), row.items, strict=True)):
        parts = row.diffs[place].parts if place < len(row.diffs) else ()
        cell = [Part(part.text, _MARKS.get(DIFF_PARTS.of(part.kind), "")) for part in parts] or [Part(_answer(stored))]
        result = stored.result
        there = bool(result.outcome)
        lines.append(
            (
                name,
                _right(stored),
                result.latency_ms if there else None,
                told(result, "output_tokens") if there else None,
                cell,
            )
        )
    return Table(_ANSWERS, lines, f"{_name(row)}{'' if row.agree else ', not agreed'}")


def _name(row: Row) -> str:
    """The row's own id, else its number."""
    return row.custom_id or f"{row.task} {row.item}{f' ({row.repeat})' if row.repeat else ''}"


def _right(stored: results_service_pb2.StoredItem, after: str = "") -> str:
    """Right, wrong, or a graded score; empty for an answer without a score."""
    correct, graded = dict(stored.result.statistics).get("correct"), optional(stored, "score")
    if correct is not None:
        return ("right" if correct == 1 else "wrong") + after
    return "" if graded is None else f"{score(graded)}{after}"


def _answer(stored: results_service_pb2.StoredItem) -> str:
    result = stored.result
    return chat.answer_text(result.response, result.tool_calls) or (f"({result.error})" if result.error else MISSING)


def _lines(row: Row, runs: Sequence[results_service_pb2.SideBySideRun]) -> list[Sequence[Any]]:
    return [
        (
            row.custom_id,
            row.task,
            row.item,
            row.repeat,
            row.agree,
            run.job.job_id,
            run.job.spec.model,
            _outcome(stored),
            dict(stored.result.statistics).get("correct"),
            optional(stored, "score"),
            stored.result.prediction,
            stored.result.reference,
            chat.answer_text(stored.result.response, stored.result.tool_calls),
            stored.result.latency_ms,
            told(stored.result, "input_tokens"),
            told(stored.result, "output_tokens"),
            optional(stored.result, "cost_usd"),
            verdict_of(stored),
        )
        for run, stored in zip(runs, row.items, strict=True)
    ]


def _outcome(stored: results_service_pb2.StoredItem) -> str:
    return outcome_of(stored.result.outcome) if stored.result.outcome else ""
