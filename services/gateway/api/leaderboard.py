"""`GET /leaderboard`: configurations ranked by one metric, in one mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request

from services.errors import InvalidRequestError, NotFoundError
from services.gateway import context, jobs
from services.gateway.api.figures import MODES, mode_name
from services.gateway.api.query import choice, count
from services.gateway.api.results import interval, is_bounded
from services.gateway.catalogue import Catalogue
from services.gateway.responses import JSONResponse
from touchstone.v1 import metric_pb2, results_service_pb2, suite_pb2

SUITE_SCORE = "score"


async def leaderboard(request: Request) -> JSONResponse:
    """Baselines are ranked after the models, runs without a score stand apart. 400 for an unknown suite or metric."""
    ctx, caller = context.of(request), context.identity(request)
    query = request.query_params
    suite, metric = query.get("suite") or "glue", query.get("metric") or "accuracy"
    limit = count(query, "limit", 10)
    mode = MODES[choice(query, "mode", tuple(MODES)) or "generate"]
    item_set = query.get("item_set", "")
    call = results_service_pb2.GetLeaderboardRequest(
        suite=suite, metric=metric, limit=limit, mode=mode, item_set=item_set
    )
    try:
        answer = await ctx.backend.ask(ctx.backend.results.GetLeaderboard, call, caller)
    except NotFoundError:
        answer = results_service_pb2.GetLeaderboardResponse()
    if not answer.entries:
        await require_known(ctx.catalogue, suite, metric)
    elif answer.metrics and metric not in (SUITE_SCORE, *answer.metrics):
        raise unknown_metric(metric, answer.metrics)
    ranked: list[metric_pb2.LeaderboardEntry] = []
    unranked: list[metric_pb2.LeaderboardEntry] = []
    for entry in answer.entries:
        (unranked if entry.not_ranked_reason else ranked).append(entry)
    last = max((entry.rank for entry in ranked), default=0)
    rows = []
    for entry in ranked:
        if not entry.rank:
            last += 1
        rows.append({"rank": entry.rank or last, **_row(entry)})
    floors = sum(not entry.rank for entry in ranked)
    return JSONResponse(
        {
            "leaderboard": rows[:limit],
            "total_models": answer.total_models + floors,
            "last_updated": jobs.iso(answer.last_updated),
            "suite": suite,
            "metric": metric,
            "mode": mode_name(mode),
            "subset": answer.subset,
            "item_set": answer.item_set,
            "not_ranked": [{**_row(entry), "reason": entry.not_ranked_reason} for entry in unranked],
        }
    )


async def require_known(catalogue: Catalogue, suite: str, metric: str) -> suite_pb2.Suite:
    """The installed suite. Raises InvalidRequestError for an unknown suite, or a metric that no task of it has."""
    known = await catalogue.suite(suite)
    metrics = {spec.metric for task in known.tasks for spec in task.metrics}
    if metric != SUITE_SCORE and metric not in metrics:
        raise unknown_metric(metric, sorted(metrics))
    return known


def unknown_metric(metric: str, known: Sequence[str]) -> InvalidRequestError:
    names = ", ".join(dict.fromkeys([SUITE_SCORE, *known]))
    return InvalidRequestError(f"Unknown metric {metric[:80]!r}. Metrics of this suite: {names}.", "metric")


def _row(entry: metric_pb2.LeaderboardEntry) -> dict[str, Any]:
    return {
        "model": entry.model,
        "score": entry.score.mean if entry.score.HasField("mean") else None,
        "provider": entry.endpoint,
        "benchmark_count": entry.run_count,
        "ci95": interval(entry.score),
        **({"bounds": [entry.score.bound_low, entry.score.bound_high]} if is_bounded(entry.score) else {}),
        "task_count": entry.task_count,
        "baseline": entry.baseline,
        "mode": mode_name(entry.mode),
        "configuration": entry.configuration,
        "job_id": entry.job_id,
        "completed_at": jobs.iso(entry.completed_at),
    }
