"""Counts requests by route and status, for metrics, and traces those that start jobs."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers
from starlette.routing import BaseRoute, Mount, Route, compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.gateway import tracing
from services.telemetry import metrics
from services.telemetry.instruments import OTHER
from touchstone.v1 import job_pb2

_FAILED, _GONE = "500", "499"
"""The latter is the status of a request whose client went away before the answer began."""


@dataclass(frozen=True, slots=True)
class _Declared:
    """A path as it was declared, what fits it, and what answers there."""

    path: str
    fits: re.Pattern[str]
    endpoint: Any


def _declared(routes: Iterable[BaseRoute], before: str = "") -> Iterator[_Declared]:
    for route in routes:
        if isinstance(route, Mount) and route.routes:
            yield from _declared(route.routes, before + route.path)
        elif isinstance(route, Mount):
            yield _Declared(before + route.path, compile_path(f"{before}{route.path}/{{rest:path}}")[0], route.app)
        elif isinstance(route, Route):
            fits, path, _ = compile_path(before + route.path)
            yield _Declared(path, fits, route.endpoint)


class Counting:
    """Outermost, so that it sees every answer. Labels have the paths of routes, never those of requests."""

    def __init__(self, app: ASGIApp, routes: Sequence[BaseRoute]) -> None:
        self.app = app
        self._declared = list(_declared(routes))
        self._at: dict[int, list[_Declared]] = defaultdict(list)
        for one in self._declared:
            self._at[id(one.endpoint)].append(one)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path, began = scope["path"], time.monotonic()
        status, took_s = _GONE, 0.0

        async def counted(message: Message) -> None:
            nonlocal status, took_s
            if message["type"] == "http.response.start":
                status, took_s = str(message["status"]), time.monotonic() - began
            await send(message)

        started: list[job_pb2.Job] = []
        try:
            with tracing.started_jobs() as started:
                await self.app(scope, receive, counted)
        except Exception:
            status = _FAILED if status == _GONE else status
            raise
        finally:
            # A request that is refused before routing has no endpoint: then all routes are tried.
            candidates = self._at.get(id(scope.get("endpoint")), self._declared)
            route = next((one.path for one in candidates if one.fits.match(path)), OTHER)
            metrics.HTTP_REQUESTS.add(route, status, scope["method"])
            if status != _GONE:
                metrics.HTTP_SECONDS.observe(took_s, route)
            for job in started:
                tracing.trace(job, took_s, scope["method"], route, status, Headers(scope=scope).get("traceparent", ""))
