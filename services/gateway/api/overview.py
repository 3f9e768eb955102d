"""`GET /overview` and `GET /trends`: figures over all jobs, and scores over time."""

from __future__ import annotations

from typing import Any

from services.gateway import jobs
from services.gateway.api import figures
from services.gateway.api.checks import integer, text
from services.gateway.api.endpoint import Call, Endpoint
from services.gateway.api.figures import MODES, mode_name
from services.gateway.api.job import JOB_ROW, row
from services.gateway.api.leaderboard import MODE, require_known
from services.gateway.api.metrics import METRIC, SOMETIMES, metric_body
from services.gateway.api.query import MODEL, PROJECT, SUITE, Parameter, limit
from services.gateway.api.results import DAYS
from services.gateway.api.schema import BOOLEAN, COUNT, NUMBER, STRING, TIME, UUID, about, array, null, shape
from services.gateway.responses import JSONResponse
from touchstone.v1 import results_service_pb2


async def overview(call: Call) -> JSONResponse:
    """Figures over all jobs. 400 for an unknown suite, or a metric that the suite does not have."""
    query = call.query
    request = results_service_pb2.GetOverviewRequest(
        suite=query["suite"], days=query["days"], project_id=query["project_id"], metric=query["metric"]
    )
    found = await call.ask(call.ctx.backend.results.GetOverview, request)
    if not found.means and request.suite:
        # Of all suites some metric of a dataset may be meant.
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
    """A series per configuration, oldest run first. 400 for an unknown suite or metric."""
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


_POINT = {"job_id": UUID, "completed_at": null(TIME), **METRIC["properties"]}
OVERVIEW = Endpoint(
    "GET",
    "/overview",
    overview,
    "getOverview",
    "Figures over all jobs, for one suite or all.",
    answer=shape(
        {
            "mean": about(
                null(NUMBER),
                "Mean of the metric over completed runs of models on one suite in one mode, the first of `means`; null "
                "without any.",
            ),
            "metric": STRING,
            "runs_with_metric": about(COUNT, "Runs that `mean` is over."),
            "means": about(
                array(shape({"suite": STRING, "mode": figures.MODE, "mean": NUMBER, "runs": COUNT})),
                "By suite and mode, the one with the most runs first: scores of several mean nothing together.",
            ),
            "total_jobs": COUNT,
            "completed_jobs": COUNT,
            "complete_jobs": about(COUNT, "Completed, and every item has an answer."),
            "failed_jobs": COUNT,
            "cancelled_jobs": COUNT,
            "models": about(COUNT, "Different models of completed jobs, baselines not counted."),
            "latest": about(null(JOB_ROW), "Newest completed job."),
        },
        name="Overview",
    ),
    query=(
        SUITE,
        Parameter("days", integer(0, 3650), "Jobs created in so many days; 0 means any time.", 0),
        PROJECT,
        Parameter("metric", text(100), "Metric averaged over completed runs.", "accuracy"),
    ),
)
TRENDS = Endpoint(
    "GET",
    "/trends",
    trends,
    "listTrends",
    "Scores over time, a series per configuration.",
    answer=shape(
        {
            "suite": STRING,
            "metric": STRING,
            "mode": figures.MODE,
            "trends": array(
                shape(
                    {
                        "configuration": STRING,
                        "model": STRING,
                        "provider": STRING,
                        "name": null(STRING),
                        "item_set": STRING,
                        "subset": BOOLEAN,
                        "baseline": BOOLEAN,
                        "points": array(shape(_POINT, name="TrendPoint", optional=SOMETIMES)),
                    },
                    name="TrendSeries",
                )
            ),
        },
        name="Trends",
    ),
    query=(
        Parameter("suite", text(200), "Suite.", "glue"),
        Parameter("metric", text(100), "Metric; `score` is the suite's score.", "score"),
        DAYS,
        MODEL,
        PROJECT,
        MODE,
        limit(16, 64),
    ),
)
