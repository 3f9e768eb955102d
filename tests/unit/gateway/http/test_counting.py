"""Requests are counted under the paths of routes, whatever is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Mount, Route, Router

from services.gateway.http.counting import Counting
from services.telemetry.metrics import GATEWAY, HTTP_REQUESTS
from services.telemetry.serving import Metrics


async def answer(request: Request) -> PlainTextResponse:
    return PlainTextResponse("here")


async def other(request: Request) -> PlainTextResponse:
    raise RuntimeError("fails")


ROUTES: list[BaseRoute] = [
    Route("/", answer),
    Route("/jobs/{job_id}", answer, methods=["GET", "POST"]),
    Route("/fails", other),
    Mount("/api", Router([Route("/runs/{run:path}", answer)])),
    Mount("/static", PlainTextResponse("a file")),
]


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    app = Starlette(routes=ROUTES, middleware=[Middleware(Counting, routes=ROUTES)])
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    HTTP_REQUESTS.switch(True)
    async with httpx.AsyncClient(transport=transport, base_url="http://here") as opened:
        yield opened
    HTTP_REQUESTS.switch(False)


def counted() -> dict[tuple[str, str, str], float]:
    families = [family for family in Metrics(GATEWAY).registry.collect() if family.name == "touchstone_http_requests"]
    return {
        (sample.labels["method"], sample.labels["route"], sample.labels["status"]): sample.value
        for family in families
        for sample in family.samples
    }


async def test_paths_are_those_of_routes(client: httpx.AsyncClient) -> None:
    for path in ("/", "/jobs/1", "/jobs/2", "/api/runs/a/b", "/static/x.js", "/static/y.js", "/fails"):
        await client.get(path)
    await client.post("/jobs/3")
    assert counted() == {
        ("GET", "/", "200"): 1,
        ("GET", "/jobs/{job_id}", "200"): 2,
        ("POST", "/jobs/{job_id}", "200"): 1,
        ("GET", "/api/runs/{run}", "200"): 1,
        ("GET", "/static", "200"): 2,
        ("GET", "/fails", "500"): 1,
    }


async def test_unknown_paths_and_methods_are_counted_together(client: httpx.AsyncClient) -> None:
    for number in range(30):
        await client.get(f"/nothing/{number}")
        await client.request(f"METHOD{number}", f"/{number}")
        await client.request(f"METHOD{number}", f"/jobs/{number}")
    assert counted() == {
        ("GET", "other", "404"): 30,
        ("other", "other", "404"): 30,
        ("other", "/jobs/{job_id}", "405"): 30,
    }
