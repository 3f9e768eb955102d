"""`GET /leaderboard`: configurations ranked by one metric, in one mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from services.errors import InvalidRequestError, NotFoundError
from services.gateway import jobs
from services.gateway.api import figures
from services.gateway.api.checks import one_of, text
from services.gateway.api.endpoint import Call, Endpoint
from services.gateway.api.figures import MODES, WEIGHTINGS, mode_name, weighting_name
from services.gateway.api.metrics import CAUTION, UNREAD, cautioned, interval, is_bounded, mean_of
from services.gateway.api.query import PROJECT, Parameter, limit
from services.gateway.api.schema import (
    BOOLEAN,
    COUNT,
    NUMBER,
    STRING,
    TIME,
    UUID,
    Schema,
    about,
    array,
    enum,
    null,
    pair,
    shape,
)
from services.gateway.catalogue import Catalogue
from services.gateway.responses import JSONResponse
from touchstone.v1 import metric_pb2, results_service_pb2

SUITE_SCORE = "score"
_USUAL = "accuracy"
"""The document's metric where none is asked for."""


async def leaderboard(call: Call) -> JSONResponse:
    """Baselines follow the models and rank only where they are alone, runs without a rank stand apart. 400 for an
    unknown suite, metric or item set."""
    query = call.query
    suite, most = query["suite"], query["limit"]
    metric = query["metric"] or (SUITE_SCORE if jobs.is_dataset(suite) else _USUAL)
    mode = MODES[query["mode"]]
    request = results_service_pb2.GetLeaderboardRequest(
        suite=suite,
        metric=metric,
        limit=most,
        mode=mode,
        item_set=query["item_set"],
        endpoint=query["endpoint"],
        project_id=query["project_id"],
        weighting=WEIGHTINGS.get(query["weighting"]),
    )
    try:
        answer = await call.ask(call.ctx.backend.results.GetLeaderboard, request)
        if not query["metric"] and answer.metrics and metric not in (SUITE_SCORE, *answer.metrics):
            metric = request.metric = SUITE_SCORE
            answer = await call.ask(call.ctx.backend.results.GetLeaderboard, request)
    except NotFoundError:
        answer = results_service_pb2.GetLeaderboardResponse()
    if not answer.entries:
        await require_known(call.ctx.catalogue, suite, metric)
        if query["endpoint"]:
            await call.ctx.catalogue.require_endpoint(query["endpoint"])
    elif answer.metrics and metric not in (SUITE_SCORE, *answer.metrics):
        raise unknown_metric(metric, answer.metrics)
    ranked: list[metric_pb2.LeaderboardEntry] = []
    unranked: list[metric_pb2.LeaderboardEntry] = []
    for entry in answer.entries:
        (unranked if entry.not_ranked_reason else ranked).append(entry)
    return JSONResponse(
        {
            "leaderboard": [{"rank": entry.rank or None, **_row(entry)} for entry in ranked[:most]],
            "total_models": answer.total_models,
            "last_updated": jobs.iso(answer.last_updated),
            "suite": suite,
            "metric": metric,
            "weighting": weighting_name(answer.weighting),
            "suite_weighting": weighting_name(answer.suite_weighting),
            "mode": mode_name(mode),
            "subset": answer.subset,
            "item_set": answer.item_set,
            "items": answer.items,
            "published_items": answer.published_items or None,
            "item_sets": [_item_set(one) for one in answer.item_sets],
            "metrics": list(answer.metrics),
            "places_pending": answer.places_pending,
            "not_ranked": [
                {**_row(entry), "reason": entry.not_ranked_reason, "mark": entry.mark or None} for entry in unranked
            ],
        }
    )


async def require_known(catalogue: Catalogue, suite: str, metric: str) -> None:
    """Raises InvalidRequestError for an unknown suite, or a metric that no task of it has. A dataset, of which nothing
    is there yet, may have any."""
    if jobs.is_dataset(suite):
        return
    known = await catalogue.suite(suite)
    metrics = {spec.metric for task in known.tasks for spec in task.metrics}
    if metric != SUITE_SCORE and metric not in metrics and not known.open:
        raise unknown_metric(metric, sorted(metrics))


def unknown_metric(metric: str, known: Sequence[str]) -> InvalidRequestError:
    names = ", ".join(dict.fromkeys([SUITE_SCORE, *known]))
    return InvalidRequestError(f"Unknown metric {metric[:80]!r}. Metrics of this suite: {names}.", "metric")


def _row(entry: metric_pb2.LeaderboardEntry) -> dict[str, Any]:
    return {
        "model": entry.model,
        "score": mean_of(entry.score),
        "provider": entry.endpoint,
        "benchmark_count": entry.run_count,
        "ci95": interval(entry.score),
        **({"bounds": [entry.score.bound_low, entry.score.bound_high]} if is_bounded(entry.score) else {}),
        **({"answered_score": entry.score.answered_mean} if entry.score.HasField("answered_mean") else {}),
        "rank_range": [entry.rank_low, entry.rank_high] if entry.rank_low else None,
        **cautioned(entry),
        "trend": _trend(entry),
        "task_count": entry.task_count,
        "baseline": entry.baseline,
        "mode": mode_name(entry.mode),
        "shots": entry.shots,
        "repeats": max(1, entry.repeats),
        "configuration": entry.configuration,
        "name": entry.name or None,
        "alias": entry.alias or None,
        "job_id": entry.job_id,
        "project_id": entry.project_id,
        "completed_at": jobs.iso(entry.completed_at),
        "receipt": figures.receipt(entry.receipt),
    }


def _trend(entry: metric_pb2.LeaderboardEntry) -> dict[str, Any] | None:
    """Against the configuration's run before; None without one."""
    if not entry.HasField("previous_mean") or not entry.score.HasField("mean"):
        return None
    change = entry.score.mean - entry.previous_mean
    return {
        "previous": entry.previous_mean,
        "previous_job_id": entry.previous_job_id,
        "change": change,
        "direction": "up" if change > 0 else "down" if change < 0 else "same",
    }


def _item_set(one: results_service_pb2.ItemSet) -> dict[str, Any]:
    return {
        "item_set": one.item_set,
        "items": one.items,
        "published_items": one.published_items or None,
        "subset": one.subset,
        "configurations": one.configurations,
        "scoring": one.scoring or None,
        "tasks": list(one.tasks),
    }


_ROW: dict[str, Schema] = {
    "rank": about(
        null({"type": "integer", "minimum": 1}),
        "1..n without gaps; null for baselines, which follow the models and rank only where no model does.",
    ),
    "model": STRING,
    "score": about(
        null(NUMBER),
        "Mean of the metric over the items, or the tasks, that have it; metric=score is the suite's score.",
    ),
    "provider": STRING,
    "benchmark_count": about(COUNT, "Completed runs of this configuration on the suite."),
    "ci95": null(pair(NUMBER)),
    "bounds": pair(NUMBER),
    "answered_score": about(
        NUMBER, "What the score would be had the unanswered items been as good as the answered ones of their task."
    ),
    "rank_range": about(
        null(pair(COUNT)),
        "Places that the data and unanswered items leave open; null without a rank, alone, or while `places_pending`.",
    ),
    "caution": CAUTION,
    "unread": UNREAD,
    "trend": about(
        null(
            shape(
                {
                    "previous": NUMBER,
                    "previous_job_id": STRING,
                    "change": NUMBER,
                    "direction": enum("up", "down", "same"),
                },
                name="Trend",
            )
        ),
        "Against the configuration's run before this one.",
    ),
    "task_count": COUNT,
    "baseline": BOOLEAN,
    "mode": figures.MODE,
    "shots": COUNT,
    "repeats": COUNT,
    "configuration": STRING,
    "name": null(STRING),
    "alias": null(STRING),
    "job_id": UUID,
    "project_id": COUNT,
    "completed_at": null(TIME),
    "receipt": figures.RECEIPT,
}
_SOMETIMES = ("bounds", "answered_score")
_UNRANKED = {name: schema for name, schema in _ROW.items() if name != "rank"} | {
    "reason": STRING,
    "mark": about(null(enum("invalidated")), "Where somebody took the run itself out of rankings."),
}
_ITEM_SET = {
    "item_set": STRING,
    "items": COUNT,
    "published_items": null(COUNT),
    "subset": BOOLEAN,
    "configurations": COUNT,
    "scoring": about(null(STRING), "How answers are scored or read, where that may differ."),
    "tasks": array(STRING),
}
MODE = Parameter("mode", one_of(*MODES), "Runs in this mode; the two are never ranked together.", "generate")
WEIGHTING = Parameter(
    "weighting", one_of(*WEIGHTINGS), "What counts alike in the metric; as the suite's authors have it when left out."
)
BOARD = Endpoint(
    "GET",
    "/leaderboard",
    leaderboard,
    "getLeaderboard",
    "Configurations ranked by one metric, by their newest complete run.",
    answer=shape(
        {
            "leaderboard": array(shape(_ROW, name="LeaderboardRow", optional=_SOMETIMES)),
            "total_models": about(
                COUNT, "Ranked configurations before the limit; baselines count only where they rank."
            ),
            "last_updated": null(TIME),
            "suite": STRING,
            "metric": STRING,
            "weighting": about(figures.WEIGHTING, "What counts alike in every score here; null of a single task."),
            "suite_weighting": about(
                figures.WEIGHTING, "The suite's own rule, by which its runs are ranked by default."
            ),
            "mode": figures.MODE,
            "subset": BOOLEAN,
            "item_set": STRING,
            "items": COUNT,
            "published_items": null(COUNT),
            "item_sets": about(array(shape(_ITEM_SET, name="ItemSet")), "Item sets that have complete runs."),
            "metrics": about(array(STRING), "Metrics that could be asked for."),
            "places_pending": about(
                BOOLEAN, "Every `rank_range` is null as they are still being computed; ask again in a moment."
            ),
            "not_ranked": array(shape(_UNRANKED, name="UnrankedRow", optional=_SOMETIMES)),
        },
        name="Leaderboard",
    ),
    query=(
        Parameter("suite", text(200), "Suite.", "glue"),
        Parameter(
            "metric", text(100), f"{SUITE_SCORE}, or a metric; {_USUAL} where the suite has it when left out.", ""
        ),
        WEIGHTING,
        limit(10),
        MODE,
        Parameter("item_set", text(200), "Rank runs of these items; whole runs when absent.", ""),
        Parameter("endpoint", text(200), "Only runs at this endpoint.", ""),
        PROJECT,
    ),
    gives={"job_id": "/leaderboard/0/job_id"},
)
