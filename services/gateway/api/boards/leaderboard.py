"""`GET /leaderboard`: configurations ranked by one metric, in one mode."""

from __future__ import annotations

from typing import Any

from services.gateway.api.answers import job_results, members
from services.gateway.api.answers.metrics import CAUTION, UNREAD, cautioned, interval, mean_of
from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.fields.checks import one_of, text
from services.gateway.fields.query import ENDPOINT, PROJECT, Parameter, limit
from services.gateway.fields.schema import (
    BOOLEAN,
    COUNT,
    NUMBER,
    STRING,
    TIME,
    Schema,
    about,
    array,
    enum,
    null,
    pair,
    shape,
)
from services.gateway.http.responses import JSONResponse
from services.gateway.reads import jobs
from services.gateway.reads.questions import SUITE_SCORE, ask_leaderboard, has_metric, require_answered
from services.gateway.reads.values import cost, is_bounded
from services.words.enums import MODES, WEIGHTINGS, mode_name, weighting_name
from touchstone.v1 import metric_pb2, results_service_pb2

_USUAL = "accuracy"
"""The document's metric if none is requested."""


async def leaderboard(call: Call) -> JSONResponse:
    """Baselines follow the models and rank only if there are no models; runs without a rank are listed separately. 400
    for an unknown suite, metric or item set."""
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
    answer = await ask_leaderboard(call.ctx.backend, request, call.caller)
    if not query["metric"] and not has_metric(answer, metric):
        metric = request.metric = SUITE_SCORE
        answer = await ask_leaderboard(call.ctx.backend, request, call.caller)
    await require_answered(call.ctx.catalogue, suite, metric, answer)
    if not answer.entries and query["endpoint"]:
        await call.ctx.catalogue.require_endpoint(query["endpoint"])
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
        "cost_usd": cost(entry),
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
        "receipt": job_results.receipt(entry.receipt),
    }


def _trend(entry: metric_pb2.LeaderboardEntry) -> dict[str, Any] | None:
    """Compared with the configuration's previous run; None without one."""
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
        "From 1, without gaps. null for baselines, unless no model has a rank.",
    ),
    "model": members.MODEL,
    "score": about(null(NUMBER), "The metric over the tasks that have it. Unanswered items count as wrong."),
    "provider": members.PROVIDER,
    "benchmark_count": about(COUNT, "Completed runs of this configuration on the suite."),
    "ci95": about(null(pair(NUMBER)), "The 95 % interval of `score`."),
    "bounds": about(pair(NUMBER), "The score if all unanswered items were wrong, or all right."),
    "answered_score": about(NUMBER, "The score if unanswered items were as good as the answered ones of their task."),
    "rank_range": about(
        null(pair(COUNT)),
        "The ranks that the data leave open. null without a rank, for a single run, or while `places_pending`.",
    ),
    "caution": CAUTION,
    "unread": UNREAD,
    "trend": about(
        null(
            shape(
                {
                    "previous": about(NUMBER, "The score of the previous run."),
                    "previous_job_id": about(STRING, "The job of the previous run."),
                    "change": about(NUMBER, "`score` minus `previous`."),
                    "direction": about(enum("up", "down", "same"), "The sign of `change`."),
                },
                name="Trend",
            )
        ),
        "The change from the configuration's previous run. null without one.",
    ),
    "cost_usd": members.COST_USD,
    "task_count": about(COUNT, "The number of tasks in the score."),
    "baseline": members.BASELINE,
    "mode": members.MODE,
    "shots": members.SHOTS,
    "repeats": members.REPEATS,
    "configuration": members.CONFIGURATION,
    "name": members.CONFIGURATION_NAME,
    "alias": members.ALIAS,
    "job_id": members.JOB_ID,
    "project_id": members.PROJECT_ID,
    "completed_at": members.COMPLETED_AT,
    "receipt": about(job_results.RECEIPT, "What the score rests on."),
}
_SOMETIMES = ("bounds", "answered_score")
_UNRANKED = {name: schema for name, schema in _ROW.items() if name != "rank"} | {
    "reason": about(STRING, "Why it has no rank."),
    "mark": about(null(enum("invalidated")), "The run's own mark. null if the reason is different."),
}
_ITEM_SET = {
    "item_set": members.ITEM_SET,
    "items": about(COUNT, "The number of items."),
    "published_items": members.PUBLISHED_ITEMS,
    "subset": members.SUBSET,
    "configurations": about(COUNT, "The number of configurations with a complete run."),
    "scoring": about(null(STRING), "How answers are scored or read, if item sets differ in it."),
    "tasks": about(array(STRING), "The tasks."),
}
MODE = Parameter("mode", one_of(*MODES), "The mode of the runs. The two modes are never ranked together.", "generate")
WEIGHTING = Parameter(
    "weighting", one_of(*WEIGHTINGS), "What has equal weight in the metric. The suite's own rule if absent."
)
BOARD = Endpoint(
    "GET",
    "/leaderboard",
    leaderboard,
    "getLeaderboard",
    "Rank configurations by a metric of their newest complete run.",
    answer=shape(
        {
            "leaderboard": about(
                array(shape(_ROW, name="LeaderboardRow", optional=_SOMETIMES)), "Ranked runs, then baselines."
            ),
            "total_models": about(COUNT, "The number of configurations with a rank, whatever the `limit`."),
            "last_updated": about(null(TIME), "When the newest of the runs ended."),
            "suite": members.SUITE,
            "metric": members.METRIC_NAME,
            "weighting": about(members.WEIGHTING, "What has equal weight in every score. null for a single task."),
            "suite_weighting": about(members.WEIGHTING, "The suite's own rule. null for a single task."),
            "mode": members.MODE,
            "subset": members.SUBSET,
            "item_set": members.ITEM_SET,
            "items": about(COUNT, "The number of items in the item set."),
            "published_items": members.PUBLISHED_ITEMS,
            "item_sets": about(array(shape(_ITEM_SET, name="ItemSet")), "The item sets that have complete runs."),
            "metrics": about(array(STRING), "The metrics that can be requested."),
            "places_pending": about(BOOLEAN, "Rank ranges are still being computed. Ask again in a moment."),
            "not_ranked": about(
                array(shape(_UNRANKED, name="UnrankedRow", optional=_SOMETIMES)),
                "Runs without a rank, with the reason.",
            ),
        },
        name="Leaderboard",
    ),
    query=(
        Parameter("suite", text(200), "The suite, or a dataset's id.", "glue"),
        Parameter(
            "metric",
            text(100),
            f"`{SUITE_SCORE}` or a metric. If absent, `{_USUAL}` where the suite has it, else `{SUITE_SCORE}`.",
            "",
        ),
        WEIGHTING,
        limit(10),
        MODE,
        Parameter(
            "item_set",
            text(200),
            "Rank runs of these items. If absent, full runs, or else those with the most items.",
            "",
        ),
        ENDPOINT,
        PROJECT,
    ),
    gives={"job_id": "/leaderboard/0/job_id"},
)
