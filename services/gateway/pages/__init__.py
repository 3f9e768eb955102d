"""The web pages: HTML with htmx, usable without it."""

from __future__ import annotations

from starlette.routing import Route

from services.gateway.pages import datasets
from services.gateway.pages.again import rerun, rescore
from services.gateway.pages.annotation import annotate
from services.gateway.pages.events import events
from services.gateway.pages.history import history, jump
from services.gateway.pages.items import item, items
from services.gateway.pages.job import job_page, retry, stop
from services.gateway.pages.leaderboard import home, leaderboard
from services.gateway.pages.login import login, logout
from services.gateway.pages.run import baselines, run_page, start
from services.gateway.pages.side_by_side import side_by_side

routes = [
    Route("/", home),
    Route("/leaderboard", leaderboard),
    Route("/run", run_page),
    Route("/run", start, methods=["POST"]),
    Route("/baselines", baselines, methods=["POST"]),
    Route("/jobs", history),
    Route("/jump", jump),
    Route("/jobs/{job_id}", job_page),
    Route("/jobs/{job_id}/events", events),
    Route("/jobs/{job_id}/stop", stop, methods=["POST"]),
    Route("/jobs/{job_id}/retry", retry, methods=["POST"]),
    Route("/jobs/{job_id}/rescore", rescore, methods=["POST"]),
    Route("/jobs/{job_id}/rerun", rerun, methods=["POST"]),
    Route("/jobs/{job_id}/items", items),
    Route("/jobs/{job_id}/items/{task}/{item:int}", item),
    Route("/jobs/{job_id}/items/{task}/{item:int}/annotation", annotate, methods=["POST"]),
    Route("/side-by-side", side_by_side),
    *datasets.routes,
    Route("/login", login, methods=["GET", "POST"]),
    Route("/logout", logout, methods=["POST"]),
]
