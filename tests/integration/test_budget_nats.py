"""A job with a budget, with the real scheduler, evaluators and NATS: what a provider could charge never passes it."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import grpc
import pytest

from tests.integration.evaluator_rig import start_process
from tests.integration.scheduler_rig import Harness, running
from tests.nats_server import NatsServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour
from tests.waiting import answered, until
from touchstone.v1 import job_pb2, scheduler_service_pb2

TOKENS = 4
CALL_USD = 0.004
"""What every call is charged with here, whether its answer is read or not: the most that it may cost."""
FINISHED = (job_pb2.Job.STATE_FAILED, job_pb2.Job.STATE_COMPLETED)


@pytest.fixture
async def harness(nats: NatsServer) -> AsyncIterator[Harness]:
    async with running(nats, announced=False) as made:
        yield made


class Evaluators:
    """Processes that are killed and replaced."""

    def __init__(self, harness: Harness, stub: OpenAIServer, folder: Path) -> None:
        self._harness = harness
        self._file = folder / "endpoints.toml"
        self._file.write_text(
            f'[[endpoint]]\nname = "stub"\nkind = "openai"\nbase_url = "{stub.url}"\nconcurrency = 4\n'
            "prices = {input = 0.0, output = 1000.0}\n"
        )
        self.running: dict[str, asyncio.subprocess.Process] = {}

    async def start(self, name: str, ack_wait_s: int = 1) -> None:
        results = f"127.0.0.1:{self._harness.results_port}"
        self.running[name] = await start_process(
            self._harness.nats, self._file, name, TOUCHSTONE_RESULTS=results, TOUCHSTONE_ACK_WAIT_S=str(ack_wait_s)
        )

    async def freeze(self, name: str, seconds: float) -> None:
        """Its units go to others meanwhile, and it knows nothing of that when it goes on."""
        self.running[name].send_signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        self.running[name].send_signal(signal.SIGCONT)

    async def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.kill()
        await process.communicate()


async def create(harness: Harness, budget: float, limit: int) -> str:
    wanted = job_pb2.JobSpec(
        endpoint="stub",
        model="stub",
        budget_usd=budget,
        suite=job_pb2.SuiteWork(suite="demo", tasks=["sentiment"], limit=limit),
    )
    wanted.sampling.max_tokens = TOKENS

    async def ask() -> job_pb2.Job:
        request = scheduler_service_pb2.CreateJobRequest(spec=wanted, request_id="r1")
        return (await harness.stub().CreateJob(request, timeout=30)).job

    async def is_known() -> bool:
        # A scheduler that starts refuses calls until it has read its jobs back.
        with suppress(grpc.aio.AioRpcError):
            return bool((await harness.stub().ListEndpoints(request, timeout=30)).endpoints)
        return False

    request = scheduler_service_pb2.ListEndpointsRequest()
    await answered(is_known, within=90)
    return (await ask()).job_id


async def watch(harness: Harness, job_id: str) -> job_pb2.Job:
    request = scheduler_service_pb2.GetJobRequest(job_id=job_id)
    return (await harness.stub().GetJob(request, timeout=10, wait_for_ready=True)).job


@pytest.mark.stack
@pytest.mark.parametrize("seed", [1, 2])
async def test_kills_of_evaluators_and_scheduler_never_pass_the_budget(
    harness: Harness, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    budget = 0.8
    behaviour = Behaviour(answer=lambda prompt: "one two three four", latency_s=0.15)
    async with OpenAIServer(behaviour) as stub:
        evaluators = Evaluators(harness, stub, tmp_path)
        try:
            for name in ("e1", "e2"):
                await evaluators.start(name)
            async with harness.scheduler(crash=True):
                job_id = await create(harness, budget, 300)
                await answered(lambda: watch(harness, job_id), lambda _: len(stub.records) > 8, 20)
                await kill_some(evaluators, rng, stub)
            # While nobody leads, another one goes.
            await kill_some(evaluators, rng, stub)
            async with harness.scheduler():
                for _ in range(3):
                    job = await watch(harness, job_id)
                    assert job.progress.cost_usd + job.progress.reserved_usd <= budget + 1e-9
                    if job.state in FINISHED:
                        break
                    await kill_some(evaluators, rng, stub)
                ended = await answered(lambda: watch(harness, job_id), lambda job: job.state in FINISHED, 60)
                await asyncio.sleep(0.5)
        finally:
            for name in list(evaluators.running):
                await evaluators.kill(name)
    charged = len(stub.records) * CALL_USD
    print(f"seed {seed}: {len(stub.records)} calls, at most ${charged:.3f} of ${budget}; told: {ended.reason}")
    assert charged <= budget + 1e-9
    assert ended.state == job_pb2.Job.STATE_FAILED
    assert ended.progress.cost_usd + ended.progress.reserved_usd >= charged - 1e-9
    assert f"${ended.progress.cost_usd:.2f} was spent on" in ended.reason
    assert charged >= 0.85 * budget, "what was lost is counted, and nothing else"


async def kill_some(evaluators: Evaluators, rng: random.Random, stub: OpenAIServer) -> None:
    """SIGKILL in the middle of calls, and a successor; or a long pause."""
    calls = len(stub.records)
    # None come when the budget is used up.
    with suppress(TimeoutError):
        await until(lambda: len(stub.records) >= calls + 5, 8)
    await asyncio.sleep(rng.uniform(0, 0.3))
    name = rng.choice(sorted(evaluators.running))
    if rng.random() < 0.3:
        await evaluators.freeze(name, 3)
        return
    await evaluators.kill(name)
    await evaluators.start(name)


@pytest.mark.stack
async def test_of_a_killed_evaluator_count_the_calls_under_way_and_one_flush(harness: Harness, tmp_path: Path) -> None:
    """It had three units in hand, of which four calls ran; the others had not begun."""
    behaviour = Behaviour(answer=lambda prompt: "one two three four", latency_s=1.5)
    async with OpenAIServer(behaviour) as stub, harness.scheduler():
        evaluators = Evaluators(harness, stub, tmp_path)
        try:
            await evaluators.start("e1")
            job_id = await create(harness, 2.0, 300)
            await answered(lambda: watch(harness, job_id), lambda job: job.progress.units_released >= 3, 60)
            await until(lambda: len(stub.records) >= 4, 30)
            await evaluators.kill("e1")
            charged = len(stub.records)
            await evaluators.start("e2")
            job = await answered(lambda: watch(harness, job_id), lambda job: job.progress.lost_calls > 0, 60)
            assert job.progress.lost_calls <= charged
            job = await answered(lambda: watch(harness, job_id), lambda job: job.progress.items_done >= 8, 60)
        finally:
            for name in list(evaluators.running):
                await evaluators.kill(name)
    print(f"{charged} calls had begun; {job.progress.lost_calls} count as lost")
    told = round((job.progress.cost_usd + job.progress.lost_usd) / CALL_USD)
    assert 4 <= job.progress.lost_calls <= charged <= 12
    assert job.progress.lost_usd == pytest.approx(job.progress.lost_calls * CALL_USD)
    assert told <= len(stub.records)


@pytest.mark.stack
async def test_of_a_cancelled_job_count_the_calls_under_way(harness: Harness, tmp_path: Path) -> None:
    behaviour = Behaviour(answer=lambda prompt: "one two three four", latency_s=1.5)
    async with OpenAIServer(behaviour) as stub, harness.scheduler():
        evaluators = Evaluators(harness, stub, tmp_path)
        try:
            await evaluators.start("e1", ack_wait_s=30)
            job_id = await create(harness, 2.0, 300)
            await answered(lambda: watch(harness, job_id), lambda job: job.progress.units_released >= 3, 60)
            await until(lambda: len(stub.records) >= 4, 30)
            request = scheduler_service_pb2.CancelJobRequest(job_id=job_id)
            ended = (await harness.stub().CancelJob(request, timeout=30)).job
            await asyncio.sleep(2)
        finally:
            await evaluators.kill("e1")
    charged = len(stub.records)
    told = round(ended.progress.cost_usd / CALL_USD)
    print(f"{charged} calls had begun, {told} were answered; {ended.progress.lost_calls} count as lost")
    assert told + ended.progress.lost_calls == charged, "no more were out, and none began after the end"
    assert ended.progress.lost_usd == pytest.approx(ended.progress.lost_calls * CALL_USD)


async def test_a_budget_that_is_large_enough_is_no_hindrance(harness: Harness, tmp_path: Path) -> None:
    behaviour = Behaviour(answer=lambda prompt: "one two three", latency_s=0.01)
    async with OpenAIServer(behaviour) as stub, harness.scheduler():
        evaluators = Evaluators(harness, stub, tmp_path)
        # A unit that came again, as its heartbeat was late, would count as lost and be charged.
        await evaluators.start("e1", ack_wait_s=30)
        try:
            job_id = await create(harness, 1.0, 40)
            done = await answered(lambda: watch(harness, job_id), lambda job: job.state in FINISHED, 90)
        finally:
            await evaluators.kill("e1")
    assert done.state == job_pb2.Job.STATE_COMPLETED, done.reason
    assert len(stub.records) == 40
    assert done.progress.cost_usd == pytest.approx(40 * 0.003)
    assert done.progress.reserved_usd == 0
