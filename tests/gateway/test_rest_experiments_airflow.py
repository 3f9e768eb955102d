"""`POST /api/bench/run` and the form where Airflow is set up: the definition is checked, then the DAG runs it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from deploy.local.ports import free_port
from services.errors import InvalidRequestError
from services.gateway.settings import Settings
from tests.gateway.gateway_server import Running, running
from tests.gateway.test_pages_experiments import FORM, NAME, checked_in, sent
from tests.gateway.test_rest_experiments import BASE, DOCUMENT, asked
from touchstone.v1 import job_pb2

PASSWORD, TOKEN = "secret of airflow", "token of airflow"


@dataclass
class Airflow:
    """As much of Airflow's API as a trigger needs. `refusal` is the answer to triggers, if it is set."""

    url: str = ""
    runs: dict[str, Any] = field(default_factory=dict)
    refusal: tuple[int, Any] | None = None

    async def token(self, request: web.Request) -> web.Response:
        if await request.json() != {"username": "touchstone", "password": PASSWORD}:
            return web.json_response({"detail": "Invalid credentials"}, status=401)
        return web.json_response({"access_token": TOKEN}, status=201)

    async def trigger(self, request: web.Request) -> web.Response:
        body = await request.json()
        if request.headers["Authorization"] != f"Bearer {TOKEN}":
            return web.json_response({"detail": "Invalid JWT token"}, status=403)
        if request.match_info["dag"] != "touchstone_bench":
            return web.json_response({"detail": "not found"}, status=404)
        if self.refusal:
            return web.json_response(self.refusal[1], status=self.refusal[0])
        if body["dag_run_id"] in self.runs:
            return web.json_response({"detail": {"reason": "Unique constraint violation"}}, status=409)
        assert body["logical_date"] is None
        self.runs[body["dag_run_id"]] = body["conf"]
        return web.json_response({"dag_run_id": body["dag_run_id"], "state": "queued"})


@asynccontextmanager
async def world(**changes: Any) -> AsyncIterator[tuple[Running, Airflow]]:
    airflow = Airflow()
    app = web.Application()
    app.router.add_post("/airflow/auth/token", airflow.token)
    app.router.add_post("/airflow/api/v2/dags/{dag}/dagRuns", airflow.trigger)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    airflow.url = f"http://127.0.0.1:{runner.addresses[0][1]}/airflow"
    known = {"airflow_url": f"{airflow.url}/", "airflow_user": "touchstone", "airflow_password": PASSWORD} | changes
    try:
        async with running(settings=Settings(requests_per_minute=10_000, **known)) as gateway:
            yield gateway, airflow
    finally:
        await runner.cleanup()


async def test_the_dag_runs_a_definition_that_was_checked() -> None:
    judge = {"config": {"provider": "vllm-a", "model": "llama3.3:70b", "params": {"temperature": 0}}, "repeats": 2}
    prompts = ["v1", {"id": "brief", "template": "{{tasks}} {{n_tips}}"}]
    body = DOCUMENT | {
        "judges": [judge],
        "prompts": prompts,
        "provider": "ollama",
        "request_id": "once",
        "rubric": None,
    }
    async with world() as (gateway, airflow):
        answer = await gateway.client.post(f"{BASE}/run", json=body)
        assert answer.status_code == 200, answer.text
        made = answer.json()
        assert (made["experiment"], made["dataset_id"], made["jobs"]) == (DOCUMENT["experiment"], None, [])
        assert asked(gateway).check_only
        assert gateway.world.experiments == {}
        ((run_id, conf),) = airflow.runs.items()
        url = f"{airflow.url}/dags/touchstone_bench/runs/{run_id}"
        assert made["dag_run"] == {"dag_run_id": run_id, "url": url}
        assert made["message"] == f"Experiment {DOCUMENT['experiment']} runs in Airflow."
        shown: dict[str, Any] = {
            "endpoint": "vllm-a",
            "model": "llama3.3:70b",
            "sampling": {"temperature": 0.0},
            "repeats": 2,
        }
        assert conf == DOCUMENT | {"prompts": prompts, "provider": "ollama", "judges": [shown]}
        assert job_pb2.Judge(**shown) == asked(gateway).judges[0]

        again = await gateway.client.post(f"{BASE}/run", json=body)
        assert again.json() == made
        assert len(airflow.runs) == 1
        other = await gateway.client.post(f"{BASE}/run", json=body | {"request_id": "twice"})
        assert other.json()["dag_run"]["dag_run_id"] != run_id


async def test_a_name_is_the_dags_experiment_and_a_token_needs_no_password() -> None:
    body = {name: value for name, value in DOCUMENT.items() if name != "experiment"} | {"name": "own"}
    async with world(airflow_token=TOKEN, airflow_user="", airflow_password="") as (gateway, airflow):
        assert (await gateway.client.post(f"{BASE}/run", json=body)).status_code == 200
        (conf,) = airflow.runs.values()
        assert conf["experiment"] == "own"
        assert "name" not in conf


async def test_what_is_wrong_or_only_checked_never_reaches_airflow() -> None:
    async with world() as (gateway, airflow):
        wrong = await gateway.client.post(f"{BASE}/run", json=DOCUMENT | {"prompts": ["v1", "v9"]})
        assert wrong.status_code == 422
        checked = (await gateway.client.post(f"{BASE}/run", json=DOCUMENT | {"check_only": True})).json()
        assert (checked["dag_run"], checked["message"]) == (None, "The definition is right.")
        assert airflow.runs == {}


@pytest.mark.parametrize(
    ("changes", "refusal", "status", "sentence"),
    [
        (
            {"airflow_password": "x"},
            None,
            503,
            "Check TOUCHSTONE_AIRFLOW_USER and _PASSWORD, and what this user may do.",
        ),
        ({"airflow_token": "x"}, None, 503, "Check TOUCHSTONE_AIRFLOW_TOKEN, and what this user may do."),
        ({"airflow_dag": "other"}, None, 503, "Airflow has no DAG other."),
        ({}, (400, {"detail": "Invalid input\nfor param models"}), 422, "the run: Invalid input for param models"),
        ({}, (500, "oops"), 503, 'Airflow failed with HTTP status 500: "oops"'),
        ({}, (302, ""), 503, "Airflow failed with HTTP status 302"),
        (
            {"airflow_url": f"http://127.0.0.1:{free_port()}"},
            None,
            503,
            "does not answer. Check TOUCHSTONE_AIRFLOW_URL",
        ),
    ],
)
async def test_errors_of_airflow_are_sentences(
    changes: dict[str, str], refusal: tuple[int, Any] | None, status: int, sentence: str
) -> None:
    async with world(**changes) as (gateway, airflow):
        airflow.refusal = refusal
        answer = await gateway.client.post(f"{BASE}/run", json=DOCUMENT)
        assert answer.status_code == status, answer.text
        assert sentence in answer.json()["detail"]
        assert PASSWORD not in answer.text
        assert TOKEN not in answer.text


def test_an_address_needs_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_AIRFLOW_URL", "http://127.0.0.1:8080")
    with pytest.raises(InvalidRequestError, match="TOUCHSTONE_AIRFLOW_URL needs TOUCHSTONE_AIRFLOW_TOKEN, or"):
        Settings.from_env()
    monkeypatch.setenv("TOUCHSTONE_AIRFLOW_TOKEN", TOKEN)
    settings = Settings.from_env()
    assert (settings.airflow_token, settings.airflow_dag) == (TOKEN, "touchstone_bench")
    assert TOKEN not in repr(settings)


async def test_the_form_triggers_the_dag_as_rest_does_and_says_so() -> None:
    async with world() as (gateway, airflow):
        text = (await gateway.client.get(FORM, headers={"Accept": "text/html"})).text
        assert "Airflow runs it: its DAG starts the jobs" in text
        checked = await sent(gateway, act="check")
        assert checked.status_code == 200
        assert airflow.runs == {}
        answer = await sent(gateway, act="start", checked=checked_in(checked.text))
        assert answer.status_code == 200, answer.text
        ((run_id, conf),) = airflow.runs.items()
        assert f'href="{airflow.url}/dags/touchstone_bench/runs/{run_id}"' in answer.text
        assert f"Experiment {NAME} runs in Airflow" in answer.text
        assert 'id="start"' not in answer.text
        assert conf["experiment"] == NAME
        assert asked(gateway).check_only
        assert not gateway.world.datasets
        airflow.refusal = 404, {"detail": "not found"}
        refused = await sent(gateway, act="start", checked=checked_in(checked.text), request_id="other")
        assert refused.status_code == 422
        assert "Airflow has no DAG touchstone_bench." in refused.text
