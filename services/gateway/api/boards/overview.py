"""`GET /overview` and `GET /trends`: figures over all jobs, and scores over time."""

from __future__ import annotations

from typing import Any

from services.gateway.api.answers import members
from services.gateway.api.answers.job import JOB_ROW, row
from services.gateway.api.answers.metrics import METRIC, SOMETIMES, metric_body
from services.gateway.api.boards.leaderboard import MODE
from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.fields.checks import integer, text
from services.gateway.fields.query import DAYS, MODEL, PROJECT, SUITE, Parameter, limit
from services.gateway.fields.schema import COUNT, NUMBER, about, array, null, shape
from services.gateway.http.responses import JSONResponse
from services.gateway.reads import jobs
from services.gateway.reads.questions import require_known
from services.words.enums import MODES, mode_name
from touchstone.v1 import results_service_pb2


async def overview(call: Call) -> JSONResponse:
    """Figures over all jobs. 400 for an unknown suite, or a metric that the suite does not have."""
    query = call.query
    request = results_service_pb2.GetOverviewRequest(
        suite=query["suite"], days=query["days"], project_id=query["project_id"], metric=query["metric"]
    )
    await jobs.settle(call.ctx.backend, call.caller)
    found = await call.ask(call.ctx.backend.results.GetOverview, request)
    if not found.means and request.suite:
        # For all suites, a metric of some dataset may be meant.
        await require_known(call.ctx.catalogue, request.suite, request.metric)
    return JSONResponse(
        {
            "mean": found.mean if found.HasField("mean") else None,
            "metric": query["metric"],
            "runs_with_metric": found.runs_with_metric,
            "means": [
                {"suite": one.suite, "mode": mode_name(one.mode), "mean": one.mean, "runs": one.runs}
                for one in found.means
            ],
            "total_jobs": found.total_jobs,
            "completed_jobs": found.completed_jobs,
            "complete_jobs": found.complete_jobs,
            "failed_jobs": found.failed_jobs,
            "cancelled_jobs": found.cancelled_jobs,
            "models": found.models,
            "latest": row(found.latest) if found.HasField("latest") else None,
        }
    )


async def trends(call: Call) -> JSONResponse:
    """One series per configuration, oldest run first. 400 for an unknown suite or metric."""
    query = call.query
    request = results_service_pb2.ListTrendsRequest(
        suite=query["suite"],
        metric=query["metric"],
        days=query["days"],
        model=query["model_name"],
        project_id=query["project_id"],
        mode=MODES[query["mode"]],
        limit=query["limit"],
    )
    found = await call.ask(call.ctx.backend.results.ListTrends, request)
    if not found.trends:
        await require_known(call.ctx.catalogue, request.suite, request.metric)
    return JSONResponse(
        {
            "suite": request.suite,
            "metric": request.metric,
            "mode": query["mode"],
            "trends": [_trend(trend) for trend in found.trends],
        }
    )


def _trend(trend: results_service_pb2.Trend) -> dict[str, Any]:
    return {
        "configuration": trend.configuration,
        "model": trend.model,
        "provider": trend.endpoint,
        "name": trend.name or None,
        "item_set": trend.item_set,
        "subset": trend.subset,
        "baseline": trend.baseline,
        "points": [
            {"job_id": point.job_id, "completed_at": jobs.iso(point.completed_at), **metric_body(point.score)}
            for point in trend.points
        ],
    }


_POINT = {"job_id": members.JOB_ID, "completed_at": members.COMPLETED_AT, **METRIC["properties"]}
OVERVIEW = Endpoint(
    "GET",
    "/overview",
    overview,
    "getOverview",
    "Get figures over all jobs, for one suite or all.",
    answer=shape(
        {
            "mean": about(
                null(NUMBER),
                "The first mean of `means`. null without any.",
            ),
            "metric": members.METRIC_NAME,
            "runs_with_metric": about(COUNT, "The number of runs in `mean`."),
            "means": about(
                array(
                    shape(
                        {
                            "suite": members.SUITE,
                            "mode": members.MODE,
                            "mean": about(NUMBER, "The mean of the metric over runs of models that rank."),
                            "runs": about(COUNT, "The number of those runs."),
                        }
                    )
                ),
                "The means by suite and mode. The one with the most runs comes first.",
            ),
            "total_jobs": about(COUNT, "All jobs."),
            "completed_jobs": about(COUNT, "Completed jobs."),
            "complete_jobs": about(COUNT, "Completed jobs with an answer to every item."),
            "failed_jobs": about(COUNT, "Failed jobs."),
            "cancelled_jobs": about(COUNT, "Cancelled jobs."),
            "models": about(COUNT, "Different models of completed jobs, without baselines."),
            "latest": about(null(JOB_ROW), "The newest completed job."),
        },
        name="Overview",
    ),
    query=(
        SUITE,
        Parameter("days", integer(0, 3650), "Only jobs of the last days. 0 means all.", 0),
        PROJECT,
        Parameter("metric", text(100), "The metric to average over completed runs.", "accuracy"),
    ),
)
TRENDS = Endpoint(
    "GET",
    "/trends",
    trends,
    "listTrends",
    "List scores over time, a series per configuration.",
    answer=shape(
        {
            "suite": members.SUITE,
            "metric": members.METRIC_NAME,
            "mode": members.MODE,
            "trends": about(
                array(
                    shape(
                        {
                            "configuration": members.CONFIGURATION,
                            "model": members.MODEL,
                            "provider": members.PROVIDER,
                            "name": members.CONFIGURATION_NAME,
                            "item_set": members.ITEM_SET,
                            "subset": members.SUBSET,
                            "baseline": members.BASELINE,
                            "points": about(
                                array(shape(_POINT, name="TrendPoint", optional=SOMETIMES)), "Its runs, oldest first."
                            ),
                        },
                        name="TrendSeries",
                    )
                ),
                "A series per configuration and item set.",
            ),
        },
        name="Trends",
    ),
    query=(
        Parameter("suite", text(200), "The suite, or a dataset's id.", "glue"),
        Parameter("metric", text(100), "`score` or a metric.", "score"),
        DAYS,
        MODEL,
        PROJECT,
        MODE,
        limit(16, 64),
    ),
)
