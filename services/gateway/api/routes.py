"""Every endpoint of the REST API, and the routes that lead to them."""

from __future__ import annotations

from itertools import groupby

from starlette.exceptions import HTTPException
from starlette.routing import Mount, Route, Router
from starlette.types import Receive, Scope, Send

from services.gateway.api.boards.compare import COMPARE, COMPARE_JOBS
from services.gateway.api.boards.configurations import CONFIGURATIONS, MARK, NAME
from services.gateway.api.boards.leaderboard import BOARD
from services.gateway.api.boards.noise import NOISE
from services.gateway.api.boards.overview import OVERVIEW, TRENDS
from services.gateway.api.dataset_runs.body import BENCHMARKS, SHOW_BENCHMARK
from services.gateway.api.dataset_runs.estimates import ESTIMATE, PILOT
from services.gateway.api.dataset_runs.rows import BENCHMARK_RESULTS
from services.gateway.api.dataset_runs.run import CANCEL_BENCHMARK, RESCORE_BENCHMARK, RETRY_BENCHMARK, RUN_BENCHMARK
from services.gateway.api.datasets.listing import DATASET_ROWS, DATASETS, DELETE_DATASET, SHOW_DATASET
from services.gateway.api.datasets.upload import HUB, PREVIEW, UPLOAD
from services.gateway.api.decisions.body import LIST_DECISIONS, SHOW_DECISION
from services.gateway.api.decisions.start import START_DECISION
from services.gateway.api.declare import openapi
from services.gateway.api.declare.endpoint import ADMIN, BASE, Endpoint, Resource
from services.gateway.api.experiments.definition import EXPERIMENT_DEFINITION
from services.gateway.api.experiments.figures import EXPERIMENT_BOARD, EXPERIMENT_RUNS
from services.gateway.api.experiments.run import LIST_EXPERIMENTS, RUN_EXPERIMENT
from services.gateway.api.items.annotation import ANNOTATE
from services.gateway.api.items.listing import ITEM_DETAIL, ITEMS
from services.gateway.api.items.ratings import LIST_RATINGS, RATE, UNRATED_ANSWERS
from services.gateway.api.items.side_by_side import PREFER, SIDE_BY_SIDE
from services.gateway.api.jobs.exports import EXPORT, EXPORT_JOB
from services.gateway.api.jobs.follow import EVENTS, LOGS, RESULTS
from services.gateway.api.jobs.judging import JUDGE, LIST_JUDGES
from services.gateway.api.jobs.listing import CANCEL, DELETE, HISTORY, LIST
from services.gateway.api.jobs.replay import REPLAY, REPLAY_RESULT
from services.gateway.api.jobs.reuse import RERUN_ITEMS, RESCORE, RETRY
from services.gateway.api.jobs.run import RUN
from services.gateway.api.operations import recorded_runs
from services.gateway.api.operations.calls import CALLS, USAGE
from services.gateway.api.operations.digest import DIGEST
from services.gateway.api.operations.fleet import DRAIN, ENDPOINTS, EVALUATORS, MODELS, QUEUE, RESUME, SUITES
from services.gateway.api.operations.schedules import (
    CREATE_SCHEDULE,
    DELETE_SCHEDULE,
    PAUSE_SCHEDULE,
    RESUME_SCHEDULE,
    SCHEDULES,
)
from services.gateway.api.operations.set_aside import SET_ASIDE
from services.gateway.api.operations.watches import CREATE_WATCH, WATCH
from services.gateway.api.operations.webhooks import CREATE_WEBHOOK, DEAD, DELETE_WEBHOOK, REDELIVER, WEBHOOKS
from services.gateway.openai.routes import LISTED as OPENAI

_ROOTS = ("/api", ADMIN)

_LISTED: tuple[Endpoint, ...] = (
    RUN,
    LIST,
    RESULTS,
    EVENTS,
    CANCEL,
    DELETE,
    RETRY,
    RESCORE,
    JUDGE,
    LIST_JUDGES,
    UNRATED_ANSWERS,
    RATE,
    LIST_RATINGS,
    RERUN_ITEMS,
    REPLAY,
    REPLAY_RESULT,
    MARK,
    LOGS,
    ITEMS,
    ITEM_DETAIL,
    ANNOTATE,
    EXPORT_JOB,
    EXPORT,
    HISTORY,
    BOARD,
    COMPARE,
    COMPARE_JOBS,
    START_DECISION,
    LIST_DECISIONS,
    SHOW_DECISION,
    NOISE,
    SIDE_BY_SIDE,
    PREFER,
    OVERVIEW,
    TRENDS,
    CONFIGURATIONS,
    NAME,
    QUEUE,
    EVALUATORS,
    DRAIN,
    RESUME,
    ENDPOINTS,
    MODELS,
    SUITES,
    CALLS,
    USAGE,
    recorded_runs.LIST,
    recorded_runs.CLOSE,
    recorded_runs.DELETE,
    CREATE_SCHEDULE,
    SCHEDULES,
    PAUSE_SCHEDULE,
    RESUME_SCHEDULE,
    DELETE_SCHEDULE,
    CREATE_WATCH,
    WATCH,
    DIGEST,
    CREATE_WEBHOOK,
    WEBHOOKS,
    DEAD,
    REDELIVER,
    DELETE_WEBHOOK,
    SET_ASIDE,
    UPLOAD,
    PREVIEW,
    HUB,
    DATASETS,
    SHOW_DATASET,
    DATASET_ROWS,
    DELETE_DATASET,
    RUN_BENCHMARK,
    BENCHMARKS,
    SHOW_BENCHMARK,
    BENCHMARK_RESULTS,
    RESCORE_BENCHMARK,
    CANCEL_BENCHMARK,
    RETRY_BENCHMARK,
    PILOT,
    ESTIMATE,
    RUN_EXPERIMENT,
    LIST_EXPERIMENTS,
    EXPERIMENT_RUNS,
    EXPERIMENT_BOARD,
    EXPERIMENT_DEFINITION,
)
ALL = (*_LISTED, openapi.endpoint(_LISTED, OPENAI))
"""Every endpoint of the REST API, in the document's order."""
DOCUMENTED = (*ALL, *OPENAI)
"""Every endpoint in the document."""


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    raise HTTPException(404, f"{scope['path'][:200]!r} does not exist. {BASE}/openapi.json lists all paths.")


def _paths(root: str) -> list[Route]:
    """One route for each path below a root; those without parameters first, as they are more specific."""
    below = [endpoint for endpoint in ALL if endpoint.route.startswith(f"{root}/")]
    ordered = sorted(below, key=lambda endpoint: ("{" in endpoint.route, endpoint.route))
    return [
        Route(route.removeprefix(root), Resource(list(endpoints)))
        for route, endpoints in groupby(ordered, key=lambda endpoint: endpoint.route)
    ]


# Separate routers answer everything below a root, without redirects: a path with a slash too many is unknown.
routes = [
    *(Mount(root, Router(_paths(root), redirect_slashes=False, default=_nothing)) for root in _ROOTS),
    # Generators and tools look for the document here.
    Route("/openapi.json", Resource([ALL[-1]])),
]
