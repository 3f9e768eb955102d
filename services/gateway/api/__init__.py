"""The REST API, `/api/v1/benchmarking`."""

from __future__ import annotations

from itertools import groupby

from starlette.exceptions import HTTPException
from starlette.routing import Mount, Route, Router
from starlette.types import Receive, Scope, Send

from services.gateway.api import openapi
from services.gateway.api.again import RERUN_ITEMS, RESCORE, RETRY
from services.gateway.api.compare import COMPARE
from services.gateway.api.configurations import CONFIGURATIONS, MARK, NAME
from services.gateway.api.endpoint import Endpoint, Resource
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
from services.gateway.api.webhooks import CREATE_WEBHOOK, DEAD, DELETE_WEBHOOK, REDELIVER, WEBHOOKS

BASE = "/api/v1/benchmarking"
_ROOT = "/api"

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
    EXPORT_JOB,
    EXPORT,
    HISTORY,
    BOARD,
    COMPARE,
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
)
ALL = (*_LISTED, openapi.endpoint(_LISTED, BASE))
"""Every endpoint there is, in the document's order."""


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    raise HTTPException(404, f"Nothing is at {scope['path'][:200]!r}. {BASE}/openapi.json lists what is.")


def _paths() -> list[Route]:
    """One route for each path; those without parameters first, as they are the more exact."""
    ordered = sorted(ALL, key=lambda endpoint: ("{" in endpoint.path, endpoint.path))
    below = BASE.removeprefix(_ROOT)
    return [
        Route(below + path, Resource(list(endpoints)))
        for path, endpoints in groupby(ordered, key=lambda endpoint: endpoint.path)
    ]


# A router of its own answers everything below /api, and redirects nothing: a path with a slash too many is unknown.
routes = [Mount(_ROOT, Router(_paths(), redirect_slashes=False, default=_nothing))]
