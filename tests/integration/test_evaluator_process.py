"""The evaluator as a process: crashes, orderly ends, and units that crash it."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from services.bus import DLQ, JOBS, KIND_FAULT, KIND_ITEMS, connect, drain_key
from services.evaluator.units.suspects import Suspects
from services.evaluator.units.units_in_hand import ALONE_FROM_DELIVERY, DEAD_FROM_CRASHES
from services.rpc import WRONG_SETTINGS
from services.words.endpoints import evaluator_state
from tests.integration.evaluator_rig import Rig, open_rig, running, settings, start_process, stub_endpoint, until
from tests.nats_server import NatsServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour
from touchstone.v1 import evaluator_pb2, unit_pb2

pytestmark = pytest.mark.stack


def endpoints_file(folder: Path, url: str, concurrency: int = 8) -> Path:
    file = folder / "endpoints.toml"
    file.write_text(f'[[endpoint]]\nname = "stub"\nkind = "openai"\nbase_url = "{url}"\nconcurrency = {concurrency}\n')
    return file


async def announced(rig: Rig, name: str) -> evaluator_pb2.Evaluator | None:
    msg = await rig.bus.kv_get("EVALUATORS", name)
    return evaluator_pb2.Evaluator.FromString(msg.data) if msg and msg.data else None


async def test_a_killed_evaluators_units_are_run_again_and_nothing_is_lost(nats: NatsServer, tmp_path: Path) -> None:
    async with open_rig(nats) as rig, OpenAIServer(Behaviour(latency_s=0.1)) as stub:
        file = endpoints_file(tmp_path, stub.url)
        first = await start_process(nats, file, "first")
        try:
            await rig.release_items(await rig.job(), 160, unit_size=16)
            await until(lambda: len(stub.records) > 60)
        finally:
            first.send_signal(signal.SIGKILL)
            await first.wait()
        calls_before = len(stub.records)
        second = await start_process(nats, file, "second")
        try:
            await rig.until_acknowledged(40)
        finally:
            second.terminate()
            await second.wait()
        items = await rig.items()
        assert {item.position for item in items} == set(range(160))
        assert calls_before < 160
        # Units in flight at the kill: two full slots' worth and the next one.
        assert len(stub.records) - 160 <= 3 * 16


async def test_sigterm_finishes_what_it_began_gives_back_the_rest_and_exits_0(nats: NatsServer, tmp_path: Path) -> None:
    async with open_rig(nats) as rig, OpenAIServer(Behaviour(latency_s=0.2)) as stub:
        process = await start_process(nats, endpoints_file(tmp_path, stub.url, 4), "leaver")
        await rig.release_items(await rig.job(), 160, unit_size=16)
        await until(lambda: len(stub.records) > 10)
        process.terminate()
        await until(lambda: _is_draining(rig, "leaver"))
        assert await asyncio.wait_for(process.wait(), 60) == 0
        answered = len(await rig.items())
        assert answered == len(stub.records)  # No call was thrown away.
        assert answered % 16 == 0
        assert await rig.work_left() == 10 - answered // 16
        # What is left waits for nobody: it can be had at once, not after the acknowledgement time.
        assert not await _begun_again(rig)


async def test_a_drained_evaluator_finishes_what_it_began_and_works_again_when_resumed(
    nats: NatsServer, tmp_path: Path
) -> None:
    async def state() -> tuple[str, int]:
        found = await announced(rig, "worker")
        if found is None:
            return "", 0
        found.live = True
        return evaluator_state(found), found.started_at.ToNanoseconds()

    async with open_rig(nats) as rig, OpenAIServer(Behaviour(latency_s=0.1)) as stub:
        file = endpoints_file(tmp_path, stub.url, 4)
        process = await start_process(nats, file, "worker")
        try:
            await rig.release_items(await rig.job(), 160, unit_size=16)
            await until(lambda: len(stub.records) > 10)
            await rig.bus.kv_put(JOBS, drain_key("worker"), b"root")
            await until(lambda: _is(state, "drained"))
            answered, (_, first) = len(await rig.items()), await state()
            assert (answered, answered % 16) == (len(stub.records), 0)
            assert await rig.work_left() == 10 - answered // 16 > 0
            process.terminate()
            await process.wait()
            process = await start_process(nats, file, "worker")
            await until(lambda: _is(state, "drained", later_than=first))
            assert len(stub.records) == answered, "it stays drained"
            await rig.bus.kv_delete(JOBS, drain_key("worker"))
            await rig.until_acknowledged(10)
            assert len(stub.records) == 160
        finally:
            process.terminate()
            await process.wait()


async def _is(state: Callable[[], Awaitable[tuple[str, int]]], word: str, later_than: int = 0) -> bool:
    found, started = await state()
    return found == word and started > later_than


async def _ended_or_done(process: asyncio.subprocess.Process, rig: Rig) -> bool:
    return process.returncode is not None or await rig.work_left() == 0


async def _begun_again(rig: Rig) -> bool:
    """Whether the unit that waits to be delivered says that it was begun before."""
    msg = await rig.released_again("stub")
    assert msg is not None
    assert msg.metadata.num_delivered == 1, "it was offered afresh, and did not come again by its time"
    return unit_pb2.Unit.FromString(msg.data).begun


async def _is_draining(rig: Rig, name: str) -> bool:
    found = await announced(rig, name)
    return found is not None and found.draining


async def test_sigterm_gives_units_back_when_the_grace_is_over(nats: NatsServer, tmp_path: Path) -> None:
    async with open_rig(nats) as rig, OpenAIServer(Behaviour(latency_s=60)) as stub:
        process = await start_process(nats, endpoints_file(tmp_path, stub.url), "slow", TOUCHSTONE_GRACE_S="1")
        await rig.release_items(await rig.job(), 8)
        await until(lambda: stub.in_flight == 8)
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 40) == 0
        assert await rig.work_left() == 1
        assert await _begun_again(rig), "some of its answers may be stored"


async def test_a_unit_that_kills_its_evaluators_is_dead_lettered_and_its_job_fails(nats: NatsServer) -> None:
    """Each delivery is taken and never acknowledged, as by a process that dies; the sixth goes to the worker. From the
    third on the process has noted that it runs the unit alone."""
    async with open_rig(nats) as rig, OpenAIServer() as stub:
        job_id = await rig.job()
        subscription = await rig.work("stub", 0.3)
        await rig.release_items(job_id, 8)
        for delivery in range(1, 6):
            msg = (await subscription.fetch(1, timeout=20))[0]
            assert msg.metadata.num_delivered == delivery
            if delivery >= ALONE_FROM_DELIVERY:
                process = await connect(nats.url, "test")
                suspects = Suspects(process)
                assert await suspects.crashes((job_id, 1, 0)) == delivery - ALONE_FROM_DELIVERY
                await suspects.begin((job_id, 1, 0))
                await process.close()
        async with running(nats, [stub_endpoint(stub.url)]):
            fault = await rig.fault()
            await rig.until_acknowledged()
        assert "crashed its evaluator three times while it ran alone" in fault.reason
        assert stub.records == []
        assert (await rig.bus.js.stream_info(DLQ)).state.messages == 1
        assert len(await rig.stored(KIND_FAULT)) == 1


async def test_a_unit_with_a_counted_bill_that_kills_its_evaluators_fails_its_job_too(nats: NatsServer) -> None:
    """The scheduler releases it afresh each time, and says how often it was delivered before."""
    async with open_rig(nats) as rig, OpenAIServer() as stub:
        job_id = await rig.job()
        suspect = rig.unit(job_id, 0, 0, 4)
        suspect.spec.budget_usd, suspect.counted_until = 1.0, 1
        for crashes in range(DEAD_FROM_CRASHES):
            process = await connect(nats.url, "test")
            suspects = Suspects(process)
            assert await suspects.crashes((job_id, 1, 0)) == crashes
            await suspects.begin((job_id, 1, 0))
            await process.close()
        suspect.earlier_deliveries = 2 * ALONE_FROM_DELIVERY
        await rig.release(suspect)
        async with running(nats, [stub_endpoint(stub.url)]):
            fault = await rig.fault()
            await rig.until_acknowledged()
        assert "crashed its evaluator three times while it ran alone" in fault.reason
        assert stub.records == []


async def test_a_crashing_unit_takes_no_other_job_with_it(nats: NatsServer) -> None:
    """A supervisor restarts the evaluator after each crash; the healthy job's units share its first two crashes."""
    async with open_rig(nats) as rig:
        poisoned, healthy = await rig.job(), await rig.job()
        await rig.release(rig.unit(poisoned, 0, 0, 8))
        for number, start in enumerate(range(8, 72, 8)):
            await rig.release(rig.unit(healthy, number, start, start + 8))
        script = Path(__file__).with_name("crashing_evaluator.py")
        crashes = 0
        started = time.monotonic()
        while await rig.work_left():
            assert time.monotonic() - started < 300
            process = await asyncio.create_subprocess_exec(sys.executable, str(script), nats.url, "3")
            await until(partial(_ended_or_done, process, rig), 60, 0.1)
            crashes += process.returncode == -signal.SIGKILL
            if process.returncode is None:
                process.kill()
            await process.wait()
        items = [item for s in await rig.stored(KIND_ITEMS) if s.batch.job_id == healthy for item in s.batch.items]
        faults = await rig.stored(KIND_FAULT)
    assert crashes == 5  # Two beside others, three alone; the sixth delivery is not run.
    assert {item.position for item in items} == set(range(8, 72))
    assert [fault.subject.split(".")[1] for fault in faults] == [poisoned]


@pytest.mark.parametrize("deliveries", [pytest.param(2, marks=pytest.mark.stack), 3])
async def test_a_suspect_unit_runs_alone_from_its_third_delivery(nats: NatsServer, deliveries: int) -> None:
    async with open_rig(nats) as rig, OpenAIServer(Behaviour(latency_s=0.2)) as stub, OpenAIServer() as other:
        job_id = await rig.job()
        suspect = rig.unit(job_id, 99, 380, 400)
        subscription = await rig.work("stub", 0.3)
        await rig.release(suspect)
        for _ in range(deliveries - 1):
            await subscription.fetch(1, timeout=20)
        endpoints = [
            stub_endpoint(stub.url, concurrency=2),
            stub_endpoint(other.url, name="other", concurrency=2),
        ]
        other.behaviour.latency_s = 0.05
        for number in range(8):
            unit = rig.unit(job_id, number, number * 8, number * 8 + 8, endpoint="other")
            await rig.release(unit, endpoint="other")
        async with running(nats, endpoints, settings(ack_wait_s=1.0)):
            await rig.until_acknowledged()
        first, last = stub.records[0].at, stub.records[-1].at + 0.2
        beside = [record for record in other.records if first < record.at < last]
        assert len(stub.records) == 20
        assert len(other.records) == 64
        assert (beside == []) == (deliveries == 3)


async def test_a_busy_port_ends_the_process_with_a_sentence(nats: NatsServer, tmp_path: Path) -> None:
    process = await start_process(
        nats, endpoints_file(tmp_path, "http://127.0.0.1:9/v1"), TOUCHSTONE_EVALUATOR_LISTEN=f"127.0.0.1:{nats.port}"
    )
    _, errors = await asyncio.wait_for(process.communicate(), 90)
    assert process.returncode == 1
    assert f"127.0.0.1:{nats.port} is in use. Stop the process that listens there" in errors.decode()


async def test_a_wrong_endpoints_file_ends_the_process_with_a_sentence(nats: NatsServer, tmp_path: Path) -> None:
    file = tmp_path / "endpoints.toml"
    file.write_text('[[endpoint]]\nname = "a"\nkind = "openai"\nconcurency = 3\n')
    process = await start_process(nats, file)
    _, errors = await asyncio.wait_for(process.communicate(), 90)
    assert process.returncode == WRONG_SETTINGS
    assert f"touchstone: {file}, endpoint 1 (a): 'concurency' is not known." in errors.decode()
