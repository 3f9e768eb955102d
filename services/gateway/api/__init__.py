"""The REST API: `/api/v1/benchmarking`, and `/admin` for datasets and the runs over them."""

from __future__ import annotations

from itertools import groupby

from starlette.exceptions import HTTPException
from starlette.routing import Mount, Route, Router
from starlette.types import Receive, Scope, Send

from services.gateway.api import benchmarks, datasets, openapi
from services.gateway.api.again import RERUN_ITEMS, RESCORE, RETRY
from services.gateway.api.annotation import ANNOTATE
from services.gateway.api.compare import COMPARE
from services.gateway.api.configurations import CONFIGURATIONS, MARK, NAME
from services.gateway.api.endpoint import ADMIN, BASE, Endpoint, Resource
from services.gateway.api.exports import EXPORT, EXPORT_JOB
from services.gateway.api.fleet import ENDPOINTS, EVALUATORS, MODELS, QUEUE, SUITES
from services.gateway.api.items import ITEM_DETAIL, ITEMS
from services.gateway.api.leaderboard import BOARD
from services.gateway.api.live import EVENTS, RESULTS
from services.gateway.api.logs import LOGS
from services.gateway.api.overview import OVERVIEW, TRENDS
from services.gateway.api.results import CANCEL, HISTORY, LIST
from services.gateway.api.run import RUN
from services.gateway.api.schedules import CREATE_SCHEDULE, DELETE_SCHEDULE, SCHEDULES
from services.gateway.api.set_aside import SET_ASIDE
from services.gateway.api.side_by_side import SIDE_BY_SIDE
from services.gateway.api.webhooks import CREATE_WEBHOOK, DEAD, DELETE_WEBHOOK, REDELIVER, WEBHOOKS

__all__ = ["ADMIN", "ALL", "BASE", "routes"]

_ROOTS = ("/api", ADMIN)

_LISTED: tuple[Endpoint, ...] = (
    RUN,
    LIST,
    RESULTS,
    EVENTS,
    CANCEL,
    RETRY,
    RESCORE,
    RERUN_ITEMS,
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
    SIDE_BY_SIDE,
    OVERVIEW,
    TRENDS,
    CONFIGURATIONS,
    NAME,
    QUEUE,
    EVALUATORS,
    ENDPOINTS,
    MODELS,
    SUITES,
    CREATE_SCHEDULE,
    SCHEDULES,
    DELETE_SCHEDULE,
    CREATE_WEBHOOK,
    WEBHOOKS,
    DEAD,
    REDELIVER,
    DELETE_WEBHOOK,
    SET_ASIDE,
    *datasets.ENDPOINTS,
    *benchmarks.ENDPOINTS,
)
ALL = (*_LISTED, openapi.endpoint(_LISTED))
"""Every endpoint there is, in the document's order."""


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    raise HTTPException(404, f"Nothing is at {scope['path'][:200]!r}. {BASE}/openapi.json lists what is.")


def _paths(root: str) -> list[Route]:
    """One route for each path below a root; those without parameters first, as they are the more exact."""
    below = [endpoint for endpoint in ALL if endpoint.route.startswith(f"{root}/")]
    ordered = sorted(below, key=lambda endpoint: ("{" in endpoint.route, endpoint.route))
    return [
        Route(route.removeprefix(root), Resource(list(endpoints)))
        for route, endpoints in groupby(ordered, key=lambda endpoint: endpoint.route)
    ]


# Routers of their own answer everything below a root, and redirect nothing: a path with a slash too many is unknown.
routes = [Mount(root, Router(_paths(root), redirect_slashes=False, default=_nothing)) for root in _ROOTS]
