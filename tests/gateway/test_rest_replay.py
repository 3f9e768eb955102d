"""`POST /replay/{job_id}` and what it found, over fake services."""

from __future__ import annotations

from tests.gateway.gateway_server import Running
from tests.gateway.test_rest_compare import done
from touchstone.v1 import job_pb2

URL = "/api/v1/benchmarking"


async def test_a_replay_is_a_new_job_with_fewer_items(gateway: Running) -> None:
    old = done(gateway, "a")
    answer = await gateway.client.post(f"{URL}/replay/{old.job_id}", json={"items": 40, "budget_usd": 2})
    assert answer.status_code == 200, answer.text
    spec = gateway.world.jobs[answer.json()["job_id"]].spec
    assert (spec.replays_job_id, spec.suite.limit, spec.budget_usd) == (old.job_id, 10, 2), "of four tasks"
    assert not spec.HasField("reuse")
    shown = await gateway.client.get(f"{URL}/results/{answer.json()['job_id']}")
    assert shown.json()["replays_job_id"] == old.job_id


async def test_without_a_body_it_has_100_items(gateway: Running) -> None:
    answer = await gateway.client.post(f"{URL}/replay/{done(gateway, 'a').job_id}")
    assert gateway.world.jobs[answer.json()["job_id"]].spec.suite.limit == 25


async def test_what_it_found_is_read(gateway: Running) -> None:
    old = done(gateway, "a")
    made = (await gateway.client.post(f"{URL}/replay/{old.job_id}")).json()["job_id"]
    found = (await gateway.client.get(f"{URL}/results/{made}/replay")).json()["replay"]
    assert (found["replayed_job_id"], found["verdict"]) == (old.job_id, "within_noise")
    assert found["flips"] == {"share": 0.04, "interval": [0.016, 0.098]}
    assert found["measured"]["runs"] == 3
    assert found["beyond"] == {"share": 0.02, "interval": [-0.01, 0.05]}
    answer = await gateway.client.get(f"{URL}/results/{old.job_id}/replay")
    assert answer.status_code == 409
    assert "is not a replay" in answer.json()["detail"]


async def test_the_page_of_a_replay_names_its_job(gateway: Running) -> None:
    old = done(gateway, "a")
    made = (await gateway.client.post(f"{URL}/replay/{old.job_id}")).json()["job_id"]
    page = (await gateway.client.get(f"/jobs/{made}")).text
    assert f"/jobs/{old.job_id}" in page
    assert "again, and never ranks. When it is done" in page


async def test_the_page_of_a_replay_says_what_it_found(gateway: Running) -> None:
    old = done(gateway, "a")
    made = (await gateway.client.post(f"{URL}/replay/{old.job_id}")).json()["job_id"]
    gateway.world.jobs[made].state = job_pb2.Job.STATE_COMPLETED
    page = (await gateway.client.get(f"/jobs/{made}")).text
    words = (await gateway.client.get(f"{URL}/results/{made}/replay")).json()["replay"]["words"]
    assert f"again, and never ranks. {' '.join(words)}" in page
