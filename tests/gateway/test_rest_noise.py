"""`GET /noise` over fake services: what is sent on, and what comes back."""

from __future__ import annotations

import pytest

from tests.gateway.gateway_server import Running
from tests.gateway.test_rest_compare import done
from touchstone.v1 import results_service_pb2

URL = "/api/v1/benchmarking/noise"


async def test_the_jobs_are_passed_on_and_every_figure_comes_back(gateway: Running) -> None:
    jobs = [done(gateway, model).job_id for model in ("a", "b")]
    answer = await gateway.client.get(URL, params={"job_ids": f" {jobs[0]},{jobs[1]}"})
    assert answer.status_code == 200, answer.text
    found = answer.json()["noise"]
    assert gateway.world.asked[-1] == results_service_pb2.GetNoiseRequest(job_ids=jobs)
    assert [run["job_id"] for one in found["servings"] for run in one["runs"]] == sorted(jobs)
    assert found["total"]["reasking"] == {"share": 0.021, "interval": [0.014, 0.031]}
    assert found["total"]["servings"] is None
    assert found["total"]["variance"]["servings"] is None
    assert found["total"]["floor"] == 0.0062
    assert found["words"][0] == "Asked again, 2.10 % (1.40 to 3.10) of the items flip."


@pytest.mark.parametrize(
    ("named", "status"), [(",", 400), ("", 422), ("0f3b6c2a-9d8e-4f71-b5a0-c4d2e6f81357", 404), ("nonsense", 404)]
)
async def test_jobs_that_do_not_exist_are_refused(gateway: Running, named: str, status: int) -> None:
    answer = await gateway.client.get(URL, params={"job_ids": named})
    assert answer.status_code == status, answer.text
