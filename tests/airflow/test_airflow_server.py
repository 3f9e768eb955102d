"""Airflow as its own processes: REST of Touchstone triggers the DAG there, and a triggerer is killed while it waits."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.local.ports import free_port
from tests.airflow.world import CELLS, CONF, ENVIRONMENT, World, both
from tests.stack import until

pytestmark = pytest.mark.airflow

USER, PASSWORD = "touchstone", "of touchstone"
DAG = "/api/v2/dags/touchstone_bench"


@contextmanager
def process(world: World, name: str) -> Iterator[subprocess.Popen[bytes]]:
    with (world.home / f"{name}.log").open("ab") as output:
        made = subprocess.Popen(
            [str(ENVIRONMENT / "bin/airflow"), name],
            cwd=world.home,
            env=world.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        try:
            yield made
        finally:
            made.terminate()
            try:
                made.wait(30)
            except subprocess.TimeoutExpired:
                made.kill()
                made.wait()


def settings(home: Path, port: int) -> dict[str, str]:
    """Of an Airflow at this port, with one user, whose triggers move soon after their triggerer has ended."""
    passwords = home / "passwords.json"
    passwords.write_text(json.dumps({USER: PASSWORD}))
    return {
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API_AUTH__JWT_SECRET": "a secret that the processes of this test share, and nobody else",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(free_port()),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(free_port()),
        "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
        "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "10",
    }


def test_rest_triggers_the_dag_and_the_wait_outlives_its_triggerer(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    own = {
        "TOUCHSTONE_AIRFLOW_URL": url,
        "TOUCHSTONE_AIRFLOW_USER": USER,
        "TOUCHSTONE_AIRFLOW_PASSWORD": PASSWORD,
    }
    with both(tmp_path, request, own) as world, ExitStack() as processes:
        world.ollama.hold = world.home / "go on"
        world.settings = {**world.settings, **settings(world.home, port)}
        for name in ("api-server", "scheduler", "dag-processor"):
            processes.enter_context(process(world, name))
        client = processes.enter_context(httpx.Client(base_url=url, trust_env=False, timeout=30))

        def answers(path: str) -> dict[str, Any]:
            """Empty where there is no good answer, as from a server that starts or is busy."""
            try:
                answer = client.get(path)
            except httpx.HTTPError:
                return {}
            return dict(answer.json()) if answer.is_success else {}

        until(lambda: answers("/api/v2/version"), 300, every_s=0.5)
        token = client.post("/auth/token", json={"username": USER, "password": PASSWORD}).json()["access_token"]
        client.headers["Authorization"] = f"Bearer {token}"
        until(lambda: answers(DAG), 300, every_s=0.5)

        with world.stack.client() as touchstone:
            answer = touchstone.post(f"{world.stack.url}/api/bench/run", json=CONF | {"request_id": "once"})
            assert answer.status_code == 200, answer.text
            begun = answer.json()["dag_run"]
            again = touchstone.post(f"{world.stack.url}/api/bench/run", json=CONF | {"request_id": "once"})
            assert again.json()["dag_run"] == begun
            assert touchstone.get(begun["url"]).status_code == 200

        run = f"{DAG}/dagRuns/{begun['dag_run_id']}"

        def held_by() -> int:
            """The triggerer in which `collect` waits."""
            task = answers(f"{run}/taskInstances/collect")
            return int((task.get("triggerer_job") or {"id": 0})["id"]) if task.get("state") == "deferred" else 0

        with process(world, "triggerer") as first:
            until(held_by, 300, every_s=0.5)
            killed = held_by()
            # On a busy machine, Airflow may have started the task twice before.
            tries = answers(f"{run}/taskInstances/collect")["try_number"]
            first.kill()
        with process(world, "triggerer"):
            until(lambda: held_by() not in (0, killed), 150, every_s=0.5)
            assert world.ollama.records == []
            world.ollama.hold.touch()
            until(lambda: answers(run).get("state") in ("success", "failed"), 200, every_s=0.5)
        assert answers(run)["state"] == "success"
        assert answers(f"{run}/taskInstances/collect")["try_number"] == tries
        assert len(world.ollama.records) == CELLS
        board = answers(f"{run}/taskInstances/compare/xcomEntries/return_value?deserialize=true")["value"]
        assert len(board["leaderboard"]) == 4
