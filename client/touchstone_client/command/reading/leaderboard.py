"""`touchstone leaderboard`: configurations ranked on one suite."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from services.words.enums import MODES, WEIGHTINGS
from services.words.refusals import counted
from touchstone.v1 import metric_pb2, results_service_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_format, add_limit, leaf, project
from touchstone_client.command.exits import DONE
from touchstone_client.command.printing.documents import document
from touchstone_client.command.printing.figures import moment, places, score, signed, span, when
from touchstone_client.command.printing.output import Column, Report, Table, show
from touchstone_client.command.reports.scores import optional
from touchstone_client.errors import InvalidError, NotFoundError

_COLUMNS = (
    Column("rank", "rank", lambda rank: str(rank or ""), right=True),
    Column("rank_range", "places", lambda pair: places(*pair) if pair else "", right=True),
    Column("model", "model", key=True),
    Column("provider", "endpoint", extra=True),
    Column("called", "configuration", data=False),
    Column("name", ""),
    Column("alias", ""),
    Column("score", "", score, right=True, key=True),
    Column("interval", "95 % interval", lambda pair: span(*pair), right=True, data=False, key=True),
    Column("ci95_low", ""),
    Column("ci95_high", ""),
    Column("bound_low", ""),
    Column("bound_high", ""),
    Column("answered_score", "if read", score, right=True),
    Column("benchmark_count", "runs", right=True, extra=True),
    Column("task_count", "tasks", right=True, extra=True),
    Column("trend", "since last", lambda value: "" if value is None else signed(value), right=True),
    Column("job_id", "job"),
    Column("configuration", ""),
    Column("completed_at", "completed", when, extra=True),
    Column("baseline", ""),
    Column("not_ranked_reason", ""),
    Column("caution", ""),
    Column("remark", "", lambda remark: remark or "", data=False),
)
_USUAL, _SCORE = "accuracy", "score"
_SHORT = 12
"""Characters of a configuration's hash in tables."""


def add(commands: Any) -> None:
    parser = leaf(commands, "leaderboard", "rank models on a suite", _leaderboard)
    parser.add_argument("--suite", default="glue", help="(default: glue)")
    parser.add_argument("--metric", default="", help="a metric, or score (default: accuracy where there is one)")
    words = "what has equal weight (default: as in the suite's own rule)"
    parser.add_argument("--weighting", choices=[*WEIGHTINGS], default="", help=words)
    parser.add_argument("--mode", choices=[*MODES], default="generate")
    parser.add_argument("--endpoint", "--provider", default="", help="only this endpoint's models")
    parser.add_argument("--project-id", type=project, default=0, metavar="N", help="only this project's runs")
    parser.add_argument("--item-set", default="", metavar="HASH", help="the item set to rank on (default: full runs)")
    add_limit(parser, 10, "ranked rows")
    add_format(parser)


def _leaderboard(options: argparse.Namespace) -> int:
    with Client() as client:
        metric = options.metric or _USUAL
        try:
            board = _board(client, options, metric)
        except (InvalidError, NotFoundError):
            if options.metric:
                raise
            # The suite may have no accuracy; other errors are raised again by the next call.
            metric = _SCORE
            board = _board(client, options, metric)
    columns = [
        replace(column, title={"score": _headed(metric, board), "remark": "remark"}.get(column.name, column.title))
        for column in _COLUMNS
    ]
    table = Table(columns, [_row(entry) for entry in board.entries])
    show(Report([table], notes=_notes(board, options.suite), document=_document(board)), options.format)
    return DONE


def _board(client: Client, options: argparse.Namespace, metric: str) -> results_service_pb2.GetLeaderboardResponse:
    return client.leaderboard(
        options.suite,
        metric,
        mode=options.mode,
        limit=options.limit,
        item_set=options.item_set,
        endpoint=options.endpoint,
        project_id=options.project_id,
        weighting=options.weighting,
    )


def _headed(metric: str, board: results_service_pb2.GetLeaderboardResponse) -> str:
    """The metric, with its weighting: "score over items"."""
    return next((f"{metric} over {word}" for word, rule in WEIGHTINGS.items() if rule == board.weighting), metric)


def _row(entry: metric_pb2.LeaderboardEntry) -> Sequence[Any]:
    mean, low, high = (optional(entry.score, name) for name in ("mean", "ci95_low", "ci95_high"))
    previous = optional(entry, "previous_mean")
    return (
        entry.rank or None,
        [entry.rank_low, entry.rank_high] if entry.rank_low else None,
        entry.model,
        entry.endpoint,
        _called(entry),
        entry.name,
        entry.alias,
        mean,
        (low, high),
        low,
        high,
        optional(entry.score, "bound_low"),
        optional(entry.score, "bound_high"),
        optional(entry.score, "answered_mean") if entry.caution else None,
        entry.run_count,
        entry.task_count,
        None if mean is None or previous is None else mean - previous,
        entry.job_id,
        entry.configuration,
        moment(entry.completed_at),
        entry.baseline,
        entry.not_ranked_reason,
        entry.caution,
        "baseline" if entry.baseline else entry.not_ranked_reason or entry.caution,
    )


def _called(entry: metric_pb2.LeaderboardEntry) -> str:
    """What distinguishes configurations of one model: name and alias, else the beginning of the hash."""
    return ", ".join(filter(None, (entry.name, entry.alias))) or entry.configuration[:_SHORT]


def _document(board: results_service_pb2.GetLeaderboardResponse) -> dict[str, Any]:
    """The answer, with null for missing ranks."""
    made = document(board)
    for entry in made["entries"]:
        entry.update({name: entry[name] or None for name in ("rank", "rank_low", "rank_high")})
    return made


def _notes(board: results_service_pb2.GetLeaderboardResponse, suite: str) -> list[str]:
    if not board.entries:
        return [f"No finished run of {suite} matches. Start one: touchstone run --suite {suite} --model MODEL"]
    notes = [f"{counted(board.total_models, 'configuration')} ranked on {counted(board.items, 'item')}."]
    if board.subset:
        notes.append(f"Subset: {board.items:,} of {counted(board.published_items, 'item')}.")
    if any(entry.caution for entry in board.entries):
        notes.append(
            "Unparsed and truncated answers count as wrong; “if read” is the score if they were as good as the others."
        )
    if board.places_pending:
        notes.append("Rank ranges are still being computed. Try again in a moment.")
    return notes
