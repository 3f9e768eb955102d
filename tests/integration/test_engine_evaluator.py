"""An evaluator with an engine: units of two models, a crash in the middle, and the end of the evaluator."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.bus import EVALUATORS
from services.evaluator.endpoints.endpoint import Endpoint
from tests.engines import FAKE, Sampler, fake_command, fake_options, none_left, running
from tests.integration import evaluator_rig
from tests.integration.evaluator_rig import Rig, open_rig, start_process, until
from tests.nats_server import NatsServer
from tests.stack import endpoints_file
from touchstone.v1 import evaluator_pb2

pytestmark = pytest.mark.stack


@pytest.fixture
def tag(tmp_path: Path) -> Iterator[str]:
    state = tmp_path / "state"
    yield str(state)
    for pid in running(str(state)):
        os.kill(pid, signal.SIGKILL)


def engine_endpoint(state: str, *arguments: str) -> Endpoint:
    return Endpoint("gpu0", "engine", concurrency=4, exclusive=True, engine=fake_options(Path(state), *arguments))


async def release(rig: Rig, model: str, items: int) -> str:
    job = await rig.job()
    for number, start in enumerate(range(0, items, 8)):
        await rig.release(rig.unit(job, number, start, start + 8, endpoint="gpu0", model=model), endpoint="gpu0")
    return job


async def resident(rig: Rig, name: str) -> str:
    msg = await rig.bus.kv_get(EVALUATORS, name)
    evaluator = evaluator_pb2.Evaluator.FromString(msg.data or b"") if msg else evaluator_pb2.Evaluator()
    return next((endpoint.resident_model for endpoint in evaluator.endpoints if endpoint.endpoint == "gpu0"), "")


async def test_a_crash_in_the_middle_of_a_job_costs_no_item(nats: NatsServer, tmp_path: Path, tag: str) -> None:
    endpoint = engine_endpoint(tag, "--latency", "0.02", "--crash-once", str(tmp_path / "crashed"))
    async with open_rig(nats) as rig, evaluator_rig.running(nats, [endpoint]):
        await release(rig, "a", 32)
        await rig.until_acknowledged(20)
        items = await rig.items()
    assert (tmp_path / "crashed").exists()
    assert {item.position for item in items} == set(range(32))
    assert {item.response for item in items} == {"a"}
    assert not running(tag)


async def test_an_engine_that_cannot_start_fails_the_job_with_the_end_of_its_log(nats: NatsServer, tag: str) -> None:
    async with open_rig(nats) as rig, evaluator_rig.running(nats, [engine_endpoint(tag, "--fail")]):
        await release(rig, "a", 8)
        fault = await rig.fault()
    assert fault.reason.startswith("gpu0: The engine for a ended with exit code 1 before it was ready.")
    assert "ValueError: no such architecture" in fault.reason
    assert fault.detail == "loading a\nValueError: no such architecture"


async def test_an_evaluator_serves_two_models_in_turn_and_takes_its_engine_with_it_when_killed(
    nats: NatsServer, tmp_path: Path, tag: str
) -> None:
    async with open_rig(nats) as rig:
        file = endpoints_file(tmp_path / "endpoints.toml", [{"name": "gpu0", "kind": "engine", "concurrency": 4}])
        command = ", ".join(f"'{word}'" for word in fake_command(tag, "--worker", "--latency", "0.01"))
        table = f"[endpoint.engine]\ncommand = [{command}]\nmodels = ['/srv/a', '/srv/b']\ndevice = 'cpu'\n"
        file.write_text(file.read_text() + table)
        evaluator = await start_process(nats, file, "owner", TOUCHSTONE_STATE_DIR=tag)
        try:
            with Sampler(tag, FAKE.name) as seen:
                jobs = [await release(rig, model, 24) for model in ("a", "b", "a")]
                await rig.until_acknowledged(30)
                await until(lambda: _any_resident(rig), 5)
            assert max(seen.counts) == 1
            stored = await rig.stored("items")
            answered = {batch.batch.job_id: {item.response for item in batch.batch.items} for batch in stored}
            assert answered == dict(zip(jobs, ({"a"}, {"b"}, {"a"}), strict=True))
            assert running(tag, FAKE.name)
        finally:
            evaluator.kill()
            await evaluator.wait()
        assert await asyncio.to_thread(none_left, tag)


async def _any_resident(rig: Rig) -> bool:
    return await resident(rig, "owner") in ("a", "b")
