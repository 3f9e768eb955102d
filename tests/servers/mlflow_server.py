"""A tracking server with the part of MLflow's REST API that Touchstone uses, which can be cut off at any request."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass
class MlflowRun:
    run_id: str
    experiment: str
    tags: dict[str, str]
    params: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    status: str = "RUNNING"
    files: dict[str, str] = field(default_factory=dict)

    @property
    def shown(self) -> dict[str, Any]:
        info = {"run_id": self.run_id, "artifact_uri": f"mlflow-artifacts:/{self.experiment}/{self.run_id}/artifacts"}
        return {"info": info, "data": {"tags": [{"key": key, "value": text} for key, text in self.tags.items()]}}


@dataclass
class MlflowServer:
    """`fail` decides by a request's number, from 1, whether it is "lost" (nothing happens), "cut" (it happens, and no
    answer comes) or "" (it is answered)."""

    url: str = ""
    host: str = ""
    fail: Callable[[int], str] = lambda number: ""
    requests: int = 0
    experiments: dict[str, str] = field(default_factory=dict)
    runs: dict[str, MlflowRun] = field(default_factory=dict)

    def of(self, experiment: str) -> list[MlflowRun]:
        return [run for run in self.runs.values() if run.experiment == self.experiments[experiment]]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests += 1
        fault = self.fail(self.requests)
        if self.host and request.headers["Host"] != self.host:
            return web.Response(status=403, text="Invalid Host header - possible DNS rebinding attack detected")
        if fault == "lost":
            return self._away(request)
        if request.method == "PUT":
            *_, run_id, _, name = request.path.split("/")
            self.runs[run_id].files[name] = (await request.read()).decode()
            made: Any = {}
        else:
            body = dict(request.query) if request.method == "GET" else await request.json()
            made = getattr(self, f"_{request.path.rpartition('mlflow/')[2].replace('/', '_').replace('-', '_')}")(body)
        if fault == "cut":
            return self._away(request)
        if made is None:
            return web.json_response({"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "none"}, status=404)
        return web.json_response(made)

    def _away(self, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response(status=500)

    def _experiments_get_by_name(self, body: dict[str, Any]) -> Any:
        known = self.experiments.get(body["experiment_name"])
        return known and {"experiment": {"experiment_id": known, "lifecycle_stage": "active"}}

    def _experiments_create(self, body: dict[str, Any]) -> Any:
        assert body["name"] not in self.experiments
        self.experiments[body["name"]] = str(len(self.experiments) + 1)
        return {"experiment_id": self.experiments[body["name"]]}

    def _runs_create(self, body: dict[str, Any]) -> Any:
        run = MlflowRun(f"{len(self.runs):032x}", body["experiment_id"], _values(body["tags"]))
        self.runs[run.run_id] = run
        return {"run": run.shown}

    def _runs_search(self, body: dict[str, Any]) -> Any:
        found = re.fullmatch(r"tags\.`([^`]+)` = '([^']*)'", body["filter"])
        assert found
        key, value = found.groups()
        runs = [run for run in self.runs.values() if [run.experiment] == body["experiment_ids"]]
        runs = [run for run in runs if run.tags.get(key) == value]
        begin, size = int(body.get("page_token", 0)), min(body["max_results"], 3)
        more = {"next_page_token": str(begin + size)} if begin + size < len(runs) else {}
        return {"runs": [run.shown for run in runs[begin : begin + size]], **more}

    def _runs_log_batch(self, body: dict[str, Any]) -> Any:
        run = self.runs[body["run_id"]]
        run.params |= _values(body.get("params", ()))
        run.metrics |= {one["key"]: one["value"] for one in body.get("metrics", ())}
        run.tags |= _values(body.get("tags", ()))
        assert all(len(text) <= 8000 for text in run.tags.values())
        return {}

    def _runs_update(self, body: dict[str, Any]) -> Any:
        self.runs[body["run_id"]].status = body["status"]
        return {}


def _values(pairs: Any) -> dict[str, str]:
    return {pair["key"]: pair["value"] for pair in pairs}


@asynccontextmanager
async def mlflow_server() -> AsyncIterator[MlflowServer]:
    """On a free port of loopback."""
    server = MlflowServer()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()
