"""`touchstone bench compare`: the leaderboard of an experiment."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from services.experiments import documents
from services.words import rubrics
from services.words.enums import EXPERIMENT_SOURCES
from services.words.refusals import counted
from touchstone.v1 import results_service_pb2
from touchstone.v1.rubric_pb2 import RubricCriterion
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_format, leaf
from touchstone_client.command.exits import DONE
from touchstone_client.command.printing.figures import MISSING, dollars, p_value, places, rate
from touchstone_client.command.printing.output import Column, Report, Table, show

Board = results_service_pb2.GetExperimentResponse
_WIDE = 24
"""Characters from which a model's name may take several lines."""
_SOURCES = {
    "judge": "Scores are those of the judge {judge}.",
    "people": "Scores are people's.",
    "combined": "Scores are people's, estimated from their ratings and the judge {judge}.",
    "ratings": "Scores are people's, estimated from their ratings alone: no judge has scored these answers.",
}


def add(verbs: Any) -> None:
    words = "rank the models and prompts of an experiment"
    parser = leaf(verbs, "compare", words, _compare, "Ranks the models and prompts of an experiment. For admins.")
    add_experiment(parser)
    words = "whose scores rank (default: a judge's where one has scored answers, else people's)"
    parser.add_argument("--source", choices=[*EXPERIMENT_SOURCES], default="", help=words)
    words = "the judge, as endpoint/model (default: the first one)"
    parser.add_argument("--judge", default="", metavar="JUDGE", help=words)
    add_format(parser)
    for name in ("json", "csv"):
        words = f"the same as --format {name}"
        parser.add_argument(f"--{name}", dest="format", action="store_const", const=name, help=words)


def add_experiment(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--experiment", required=True, metavar="NAME", help="the experiment's name")


def _compare(options: argparse.Namespace) -> int:
    with Client() as client:
        board = client.experiment(options.experiment, options.source, options.judge)
    show_board(board, options.format)
    return DONE


def show_board(board: Board, format: str) -> None:
    """Prints a leaderboard."""
    show(report_of(board), format)


def report_of(board: Board) -> Report:
    """A leaderboard as it is printed."""
    tables = [_rows(board)]
    if any(model.HasField("mean") for model in board.models):
        tables.append(_models(board))
    return Report(tables, notes=[*_notes(board)], document=documents.leaderboard(board))


def _rows(board: Board) -> Table:
    criteria = list(board.experiment.rubric.criteria)
    wide = any(len(row.model) > _WIDE for row in board.rows)
    columns = (
        Column("rank", "rank", lambda rank: str(rank or ""), right=True),
        Column("model", "model", key=True, fold=wide),
        Column("prompt", "prompt", key=True),
        *_figure("composite", "score", key=True),
        Column("places", "places", lambda pair: places(*pair), right=True, data=False),
        Column("rank_low", ""),
        Column("rank_high", ""),
        Column("scored", "scored", right=True),
        Column("answered", "of", right=True),
        *(
            column
            for one in criteria
            for column in _figure(f"criteria.{one.name}", one.name, criterion=one, interval=False)
        ),
        *_figure("diversity", "diversity", interval=False),
        *_figure("to_first", ""),
        Column("p_value", "p", lambda value: "" if value is None else p_value(value), right=True, extra=True),
        Column("latency_s", "seconds", rate, right=True, extra=True),
        Column("tokens_per_s", "tokens/s", lambda value: rate(value or 0), right=True, extra=True),
        Column("cost_usd", "cost", dollars, right=True, extra=True),
        Column("rows", ""),
        Column("errors", "errors", lambda count: str(count or ""), right=True, extra=True),
        Column("judge_failures", "unjudged", lambda count: str(count or ""), right=True, extra=True),
        Column("provider", "endpoint", extra=True),
        Column("job_id", ""),
    )
    return Table(columns, [_row(row, criteria) for row in board.rows])


def _figure(
    name: str, title: str, *, criterion: RubricCriterion | None = None, interval: bool = True, key: bool = False
) -> Iterator[Column]:
    """The columns of a figure and its interval. Tables show criteria on their own scales."""

    def shown(value: float | None) -> str:
        if value is None:
            return MISSING
        return _three(value) if criterion is None else _minus(f"{rubrics.on_scale(criterion, value):.2f}")

    yield Column(name, title, shown, right=True, key=key)
    if interval and title:
        yield Column("interval", "95 % interval", lambda ends: _span(*ends), right=True, data=False, key=key)
    yield Column(f"{name}_low", "")
    yield Column(f"{name}_high", "")


def _row(row: results_service_pb2.ExperimentRow, criteria: Sequence[RubricCriterion]) -> list[Any]:
    known = {one.criterion: one.score for one in row.criteria}
    composite = _ends(row, "composite")
    return [
        row.rank or None,
        row.model,
        row.prompt,
        composite[0],
        composite[1:],
        *composite[1:],
        (row.rank_low, row.rank_high),
        row.rank_low or None,
        row.rank_high or None,
        row.scored,
        row.answered,
        *(value for one in criteria for value in _of(known.get(one.name))),
        *_ends(row, "diversity"),
        *_of(row.to_first.difference if row.HasField("to_first") else None),
        row.to_first.p_value if row.HasField("to_first") else None,
        row.latency_s,
        row.tokens_per_s or None,
        row.cost_usd if row.HasField("cost_usd") else None,
        row.rows,
        row.errors,
        row.judge_failures,
        row.endpoint,
        row.job_id,
    ]


def _models(board: Board) -> Table:
    columns = (
        Column("model", "model"),
        *_figure("mean", "mean", key=True),
        Column("best_prompt", "best prompt", key=True),
        Column("best", "score", _three, right=True),
        Column("worst_prompt", "worst prompt"),
        Column("worst", "score", _three, right=True),
        Column("provider", "endpoint", extra=True),
    )
    rows = [
        (
            model.model,
            *(mean := _ends(model, "mean"))[:1],
            mean[1:],
            *mean[1:],
            model.best_prompt or None,
            model.best if model.best_prompt else None,
            model.worst_prompt or None,
            model.worst if model.worst_prompt else None,
            model.endpoint,
        )
        for model in sorted(board.models, key=lambda one: -one.mean.value)
    ]
    return Table(columns, rows, title="Models over all prompts")


def _notes(board: Board) -> Iterator[str]:
    name = board.experiment.name
    source = EXPERIMENT_SOURCES.of(board.source)
    marked, jobs = len(board.uncounted_job_ids), len(board.experiment.jobs)
    if marked and marked == jobs:
        yield "No scores: every job is marked invalid or superseded."
        return
    if marked:
        yield f"{marked:,} of {counted(jobs, 'job')} marked invalid or superseded: no scores of theirs count."
    if board.live_judges:
        verb = "judges" if len(board.live_judges) == 1 else "judge"
        yield f"{', '.join(board.live_judges)} still {verb}. The same command shows the scores later."
    if not source:
        if not board.live_judges:
            yield f"No scores yet. To rate the answers: touchstone bench export --experiment {name} --export FILE"
        return
    yield _SOURCES[source if board.judge or source == "people" else "ratings"].format(judge=board.judge)
    whole = [model for model in board.models if model.HasField("mean")]
    if len(whole) > 1 and board.prompts_compared:
        highest = max(model.mean.value for model in whole)
        best = [model.model for model in whole if model.mean.value == highest]
        prompts = counted(board.prompts_compared, "prompt")
        if len(best) == 1:
            yield f"{best[0]} has the highest mean, and is first with {board.prompts_with_same_first} of {prompts}."
        else:
            yield f"{len(best):,} models share the highest mean."
    if unknown := sum(not row.rank and row.job_id not in board.uncounted_job_ids for row in board.rows):
        yield f"{counted(unknown, 'combination')} without scores may have any place, also the first."
    failed = sum(row.judge_failures for row in board.rows)
    if failed and source != "people":
        yield f"{counted(failed, 'answer')} could not be judged. They move no score."


def _ends(message: Any, name: str) -> tuple[float | None, float | None, float | None]:
    return _of(getattr(message, name) if message.HasField(name) else None)


def _of(interval: results_service_pb2.Interval | None) -> tuple[float | None, float | None, float | None]:
    """The value with the ends of its interval."""
    return (None, None, None) if interval is None else (interval.value, interval.low, interval.high)


def _three(value: float | None) -> str:
    return MISSING if value is None else _minus(f"{value:.3f}")


def _span(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{_three(low)} to {_three(high)}"


def _minus(number: str) -> str:
    return number.replace("-", "−")
