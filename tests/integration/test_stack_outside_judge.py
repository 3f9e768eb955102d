"""The judge of docs/judges.md, run as it stands there: it learns of an experiment's answers by webhook and scores each
once, although it was away and hears of the same job twice."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.local.ports import free_port
from deploy.local.settings import ROOT
from tests.servers.ollama_server import OllamaServer
from tests.servers.stub import Behaviour
from tests.stack import API, Stack, running, until
from tests.stub_thread import stub_thread

pytestmark = pytest.mark.stack

ROWS = 8
CRITERIA = ["relevance", "actionability", "tone"]


def _script() -> str:
    page = (ROOT / "docs" / "judges.md").read_text()
    ((indented),) = re.findall(r"   ```python\n(.*?)\n   ```", page, re.DOTALL)
    return textwrap.dedent(indented)


@contextmanager
def _judge(environment: dict[str, str]) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", _script()], env=os.environ | environment)
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture
def stack(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stack]:
    with stub_thread() as stubs:
        server = stubs.start(OllamaServer(Behaviour(models=("small",), answer=lambda prompt: "tip " * len(prompt))))
        endpoints = [{"name": "ollama", "kind": "ollama", "base_url": server.url}]
        # Local tests deliver to loopback; the tries of a judge that is away follow each other soon.
        environment = {"TOUCHSTONE_WEBHOOKS_PRIVATE": "1", "TOUCHSTONE_WEBHOOK_SPAN_S": "120"}
        with running(Stack(tmp_path, endpoints, auth="token", environment=environment), request) as started:
            yield started


def _call(job_id: str, secret: str) -> tuple[bytes, dict[str, str]]:
    """The delivery about a job, as it comes a second time."""
    body = json.dumps({"event": "job.completed", "job": {"job_id": job_id, "experiment": "tips"}}).encode()
    moment = str(int(time.time()))
    signature = hmac.new(secret.encode(), moment.encode() + b"." + body, hashlib.sha256).hexdigest()
    return body, {"Touchstone-Timestamp": moment, "Touchstone-Signature": f"v1={signature}"}


def test_a_judge_outside_scores_each_answer_once_and_counts_as_no_person(stack: Stack) -> None:
    root, labeller = stack.create_token("root", "admin"), stack.create_token("labeller")
    admin, port = stack.client(root), free_port()
    address = f"http://127.0.0.1:{port}/"
    secret = admin.post("/webhooks", json={"url": address, "events": ["job.completed"]}).json()["secret"]
    definition = {
        "name": "tips",
        "models": ["ollama/small"],
        "prompts": ["v1"],
        "scenarios": {"set": "tips", "count": ROWS},
        "max_model_b": 0,
    }
    begun: list[httpx.Response] = []

    def start() -> bool:
        begun[:] = [admin.post(f"{stack.url}/api/bench/run", json=definition)]
        return begun[0].status_code == 200

    # Until the endpoint's models are known, it is refused.
    until(start, 60)
    (job,) = begun[0].json()["jobs"]
    job_id = str(job["job_id"])
    stack.wait(job_id, token=root)
    time.sleep(1)  # The judge is away: its first call fails.

    def judged() -> list[dict[str, Any]]:
        return list(admin.get(f"/results/{job_id}/judges").json()["outside"])

    assert judged() == []
    environment = {"API": stack.url + API, "TOUCHSTONE_TOKEN": labeller, "WEBHOOK_SECRET": secret, "PORT": str(port)}
    with _judge(environment):
        until(lambda: any(one["judged"] == ROWS for one in judged()), 120)
        before = admin.get(f"/results/{job_id}/ratings").json()["ratings"]
        body, headers = _call(job_id, secret)
        again = [httpx.post(address, content=body, headers=headers, trust_env=False) for _ in range(2)]
        forged = httpx.post(address, content=body + b" ", headers=headers, trust_env=False)
        assert [one.status_code for one in (*again, forged)] == [204, 204, 403]
    ratings = admin.get(f"/results/{job_id}/ratings").json()["ratings"]
    assert ratings == before
    assert len(ratings) == ROWS
    assert {(one["rater"], one["judge"]) for one in ratings} == {("labeller", "acme/judge-2")}

    # A person rates one answer: the judge is compared with it, and none of the people.
    (first, *_) = admin.post(f"/results/{job_id}/unrated", json={}).json()["answers"]
    place = {name: first[name] for name in ("task", "item", "repeat")}
    mine = {"ratings": [place | {"scores": dict.fromkeys(CRITERIA, 3)}]}
    assert admin.post(f"/results/{job_id}/ratings", json=mine).json() == {"stored": 1, "unchanged": 0}
    found = admin.get(f"/results/{job_id}/judges").json()
    assert [(one["raters"], one["answers"]) for one in found["people"]] == [(1, 1)]
    assert found["outside"][0]["agreement"]["composite"]["answers"] == 1
    board = admin.get(f"{stack.url}/api/bench/leaderboard/tips").json()
    assert board["judges"] == ["outside:labeller/acme/judge-2"]
    assert [row["scored"] for row in board["leaderboard"]] == [ROWS]
    people = admin.get(f"{stack.url}/api/bench/leaderboard/tips", params={"source": "people"}).json()
    assert [row["scored"] for row in people["leaderboard"]] == [1]
