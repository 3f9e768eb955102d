"""A provider that lies in one field at a time: no job hangs, no number costs an answer, everything stays readable.

One job for each field of an answer and each lie, then every list, page and export.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web

from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour
from tests.stack import API, Endpoint, Stack, running
from tests.stub_thread import stub_thread
from tests.unit.evaluator import wire_answers as wires
from tests.unit.evaluator.wire_answers import Place, Raw
from touchstone.v1 import job_pb2

pytestmark = pytest.mark.stack

HONEST = "honest"
ANSWER = wires.WHOLE["openai"]
VALUES: dict[str, Any] = {
    "nan": Raw("NaN"),
    "infinity": Raw("-Infinity"),
    "negative": -100,
    "large": Raw("1e308"),
    "400-digits": Raw("1" + "0" * 400),
    "5000-digits": Raw("7" * 5000),
    "text": "lie",
    "list": [[], {"type": []}],
    "object": {"code": [], "message": 1},
    "null": None,
}
LIES: dict[str, tuple[Place, Any]] = {
    f"{'-'.join(map(str, at))}-{name}": (at, value) for at in wires.places(ANSWER) for name, value in VALUES.items()
}
"""By the model that tells it."""
COUNTED = {
    model
    for model, (at, _) in LIES.items()
    if at[0] in ("id", "created", "usage") or at[-1] in ("index", "role") or model.startswith("model-")
}
"""Lies that say nothing about the answer's text."""


class Liar(OpenAIServer):
    """The model's name tells its lie. Each model is listed with a lie of its own, too."""

    def __init__(self) -> None:
        super().__init__(Behaviour(models=(HONEST, *LIES)))

    async def models(self, request: web.Request) -> web.Response:
        (honest,) = wires.LISTED["openai"]["data"]
        fields = [at for at in wires.places(honest) if at != ("id",)]
        listed = [
            wires.changed(honest, fields[number % len(fields)], list(VALUES.values())[number % len(VALUES)])
            | {"id": model}
            for number, model in enumerate(self.behaviour.models)
        ]
        return web.Response(body=wires.written({"data": listed}), content_type="application/json")

    async def _respond(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        at, value = LIES.get(str(body.get("model")), ((), None))
        lied = wires.changed(ANSWER, at, value) if at else ANSWER
        return web.Response(body=wires.written(lied), content_type="application/json")


@pytest.fixture(scope="module")
def stack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder: Path = tmp_path_factory.mktemp("lies")
    environment = {
        "TOUCHSTONE_FIRST_OUTAGE_S": "1",
        "TOUCHSTONE_RUNNING_JOBS": "30",
        "TOUCHSTONE_PENDING_PER_USER": "1000",
    }
    with stub_thread() as stubs:
        liar = stubs.start(Liar())
        endpoints: list[Endpoint] = [{"name": "liar", "kind": "openai", "base_url": liar.url, "concurrency": 32}]
        with running(Stack(folder, endpoints, environment=environment), request) as made:
            made.know_models("liar")
            yield made


def trouble(client: httpx.Client, path: str) -> str:
    """What is wrong with an answer; empty when nothing is."""
    answer = client.get(path)
    if answer.status_code != 200:
        return f"GET {path}: {answer.status_code} {answer.text[:200]}"
    if answer.headers["content-type"].partition(";")[0] != "application/json":
        return ""
    wrong: list[str] = []
    json.loads(answer.text, parse_constant=wrong.append)
    return f"GET {path} has {wrong}" if wrong else ""


def test_one_job_for_each_lie_and_everything_can_be_read(stack: Stack) -> None:
    jobs = {model: stack.run("liar", model, "demo", tasks=["sentiment"], limit=1) for model in (HONEST, *LIES)}
    ended = {model: stack.wait(job_id, timeout_s=600) for model, job_id in jobs.items()}
    # An answer that is none fails its job with the provider's reason; a number never does.
    for model, job in ended.items():
        assert job.state in (job_pb2.Job.STATE_COMPLETED, job_pb2.Job.STATE_FAILED)
        assert job.state == job_pb2.Job.STATE_COMPLETED or job.reason.startswith("liar "), (model, job.reason)
    assert {model: ended[model].reason for model in COUNTED if ended[model].reason} == {}
    for model in (HONEST, *COUNTED):
        (item,) = stack.items(jobs[model])
        assert item.result.response == wires.ANSWER, model

    usage = stack.items(jobs["usage-cost-nan"])[0].result
    assert 0 < usage.cost_usd < 0.01, "at the listed prices"
    lines = stack.get(f"/results/{jobs['usage-cost-nan']}/logs")
    assert sum("cost is nan" in line["text"] for line in lines["lines"]) == 1

    lists = [
        *(
            "/results?limit=100",
            "/history?limit=100",
            "/leaderboard?suite=demo&limit=100",
            "/configurations",
            "/overview",
        ),
        *("/queue", "/evaluators", "/endpoints", "/models?provider=liar", "/suites", "/export?kind=jobs&format=jsonl"),
    ]
    paths = [*(API + path for path in lists), "/admin/benchmarks?page_size=100", "/jobs", "/run"]
    paths.append("/leaderboard?suite=demo")
    for job_id in jobs.values():
        paths += [f"{API}/results/{job_id}{of}" for of in ("", "/items", "/export?format=csv")]
        paths += [f"/jobs/{job_id}", f"/jobs/{job_id}/items"]
    with httpx.Client(base_url=stack.url, trust_env=False, timeout=60) as client:
        assert [found for path in paths if (found := trouble(client, path))] == []
