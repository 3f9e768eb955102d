"""The REST API, `/api/v1/benchmarking`."""

from __future__ import annotations

from starlette.routing import Route

from services.gateway.api.leaderboard import leaderboard
from services.gateway.api.results import cancel, list_results, results
from services.gateway.api.run import rerun, rescore, run

BASE = "/api/v1/benchmarking"

routes = [
    Route(f"{BASE}/run", run, methods=["POST"]),
    Route(f"{BASE}/rescore/{{job_id}}", rescore, methods=["POST"]),
    Route(f"{BASE}/rerun/{{job_id}}", rerun, methods=["POST"]),
    Route(f"{BASE}/results", list_results, methods=["GET"]),
    Route(f"{BASE}/results/{{job_id}}", results, methods=["GET"]),
    Route(f"{BASE}/cancel/{{job_id}}", cancel, methods=["POST"]),
    Route(f"{BASE}/leaderboard", leaderboard, methods=["GET"]),
]
