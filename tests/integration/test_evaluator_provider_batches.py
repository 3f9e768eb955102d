"""Rows through providers' batch APIs, over a real NATS: sent once whatever ends, waited for, read back, cancelled."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from services.bus import KIND_ITEMS, BatchStage, Datasets, ProviderBatches, batches_endpoint
from services.evaluator.endpoints.batch_options import BatchOptions
from services.evaluator.endpoints.endpoint import Endpoint
from tests.dataset_store import DATASET_ID, MemoryStore, row
from tests.integration.evaluator_rig import Link, Rig, open_rig, running, settings, stub_endpoint, until
from tests.nats_server import NatsServer
from tests.servers.openai_batch_server import OpenAIBatchServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault
from touchstone.v1 import item_result_pb2, job_pb2, unit_pb2
from touchstone.v1.dataset_pb2 import DatasetRow
from touchstone.v1.item_result_pb2 import ItemResult

PRICES = {"input": 1.0, "output": 10.0}
TOKEN = batches_endpoint("stub")
FAST: dict[str, Any] = {"batch_poll_s": 0.05, "batch_most_poll_s": 0.2, "batch_settle_s": 0.5}
ROWS = 120


def answer(prompt: str) -> str:
    return prompt.split()[-1]


def rows(count: int = ROWS) -> list[DatasetRow]:
    return [row(number, f"Say {number}", reference=str(number)) for number in range(count)]


def spec(**changes: Any) -> job_pb2.JobSpec:
    work = job_pb2.DatasetWork(dataset_id=DATASET_ID, name="questions.jsonl")
    return job_pb2.JobSpec(endpoint="stub", model="stub", dataset=work, provider_batch=True, **changes)


def endpoint(url: str, batch_rows: int = 50, **changes: Any) -> Endpoint:
    return stub_endpoint(url, batch=BatchOptions(rows=batch_rows), **changes)


def server() -> OpenAIBatchServer:
    return OpenAIBatchServer(Behaviour(answer=answer))


@asynccontextmanager
async def stored(nats: NatsServer, made: Sequence[DatasetRow] | None = None) -> AsyncIterator[Rig]:
    memory = MemoryStore()
    memory.add(rows() if made is None else made)
    async with open_rig(nats) as rig:
        await memory.copy_to(Datasets(rig.bus))
        yield rig


async def begin(rig: Rig, asked: job_pb2.JobSpec) -> tuple[str, job_pb2.TaskPlan]:
    """Plans a job and releases all of its units."""
    planned = await rig.plan(asked)
    assert not planned.error, planned.error
    (task,) = planned.tasks
    job_id = await rig.job()
    for number, start in enumerate(range(0, task.items, task.unit_size)):
        unit = unit_pb2.Unit(job_id=job_id, attempt=1, unit=number, spec=asked, task="rows", item_set=task.item_set)
        unit.start, unit.stop = start, min(task.items, start + task.unit_size)
        await rig.release(unit, endpoint=TOKEN)
    return job_id, task


async def results(rig: Rig, job_id: str) -> dict[int, ItemResult]:
    """By position, as the results service keeps them: the last message counts."""
    found = [item for each in await rig.stored(KIND_ITEMS) if each.batch.job_id == job_id for item in each.batch.items]
    return {item.position: item for item in found}


async def run(rig: Rig, asked: job_pb2.JobSpec) -> dict[int, ItemResult]:
    job_id, task = await begin(rig, asked)
    await rig.until_acknowledged()
    found = await results(rig, job_id)
    assert sorted(found) == list(range(task.items))
    return found


async def begun(stub: OpenAIBatchServer, batches: int = 1) -> None:
    await until(lambda: len(stub.batches) >= batches)


async def test_rows_go_in_few_batches_at_half_the_price_and_come_back_by_position(nats: NatsServer) -> None:
    made = rows()
    made[7] = row(7, "Say 7", reference="7", temperature=0.7, max_tokens=9, stop=["\n"])
    made[8].custom_id = '"}\n{"custom_id": "9"' * 20
    stub = server()
    async with (
        stored(nats, made) as rig,
        stub,
        running(nats, [endpoint(stub.url, prices=PRICES)], settings(**FAST)),
    ):
        found = await run(rig, spec(sampling=job_pb2.Sampling(max_tokens=50), stream=True))
        messages = await rig.stored(KIND_ITEMS)
    assert sorted(len(stub.requests(batch)) for batch in stub.batches) == [20, 50, 50]
    assert not stub.records, "no row was asked by itself"
    for number, item in found.items():
        assert (item.custom_id, item.response) == (made[number].custom_id, str(number))
        assert item.statistics["correct"] == 1
        assert item.cost_usd == pytest.approx((2 * 1.0 + 1 * 10.0) / 1e6 / 2)
        assert (item.calls, item.reused) == (1, False)
    sent = {line["custom_id"]: line["body"] for batch in stub.batches for line in stub.requests(batch)}
    assert sorted(map(int, sent)) == list(range(ROWS))
    assert sent["7"]["temperature"] == 0.7
    assert json.loads(found[7].parameters) == {"temperature": 0.7, "max_tokens": 9, "stop": ["\n"]}
    assert json.loads(found[6].parameters) == {"temperature": 0, "max_tokens": 50}
    assert all(len(each.batch.items) <= 64 and len(each.data) <= 600 * 1024 for each in messages)
    assert sum(each.headers.done for each in messages) == 3


async def test_an_item_is_the_same_whether_it_went_in_a_batch_or_alone(nats: NatsServer) -> None:
    stub = server()
    async with stored(nats) as rig, stub, running(nats, [endpoint(stub.url)], settings(**FAST)):
        found = await run(rig, spec())
        alone = spec()
        alone.provider_batch = False
        job_id = await rig.job()
        planned = (await rig.plan(alone)).tasks[0]
        unit = unit_pb2.Unit(job_id=job_id, attempt=1, unit=0, spec=alone, task="rows", item_set=planned.item_set)
        unit.stop = ROWS
        await rig.release(unit)
        await rig.until_acknowledged()
        single = await results(rig, job_id)
    for number, item in found.items():
        other = single[number]
        other.latency_ms = item.latency_ms
        assert item == other


async def test_single_lines_fail_with_their_text(nats: NatsServer) -> None:
    def refuses(prompt: str) -> str | Fault:
        number = int(prompt.split()[-1])
        if number == 3:
            return Fault("400", message="This prompt is not allowed.")
        return (
            Fault("400", message="maximum context length is 9", code="context_length_exceeded") if number == 4 else "x"
        )

    stub = OpenAIBatchServer(Behaviour(answer=refuses))
    async with stored(nats) as rig, stub, running(nats, [endpoint(stub.url)], settings(**FAST)):
        found = await run(rig, spec())
    assert found[3].outcome == item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR
    assert "This prompt is not allowed" in found[3].error
    assert found[4].outcome == item_result_pb2.OUTCOME_INPUT_TRUNCATED
    failed = [n for n, item in found.items() if item.outcome == item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR]
    assert failed == [3]


@pytest.mark.parametrize(("state", "words"), [("expired", "expired before"), ("cancelled", "was cancelled at stub")])
async def test_what_a_batch_answered_before_it_ended_is_kept(nats: NatsServer, state: str, words: str) -> None:
    stub = server()
    stub.ends, stub.answered = state, 30
    async with stored(nats) as rig, stub, running(nats, [endpoint(stub.url, 200)], settings(**FAST)):
        found = await run(rig, spec())
    kept = sorted(n for n, item in found.items() if item.outcome == item_result_pb2.OUTCOME_ANSWERED)
    assert kept == list(range(30))
    assert all(words in found[n].error and "retry" in found[n].error for n in range(30, ROWS))


async def test_an_evaluator_that_stops_gives_the_unit_back_at_once_and_the_next_goes_on(nats: NatsServer) -> None:
    stub = server()
    stub.held = True
    async with stored(nats) as rig, stub:
        endpoints = [endpoint(stub.url, 200)]
        async with running(nats, endpoints, settings(**FAST, grace_s=120.0)):
            job_id, _ = await begin(rig, spec())
            await until(lambda: stub.polls > 1)
            stopping = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - stopping < 60
        assert [batch["status"] for batch in stub.batches.values()] == ["in_progress"]
        stub.held = False
        async with running(nats, endpoints, settings("evaluator-2", **FAST)):
            await rig.until_acknowledged()
        assert len(await results(rig, job_id)) == ROWS
    assert len(stub.batches) == 1


async def test_a_batch_outlives_many_deliveries_and_is_not_run_alone(nats: NatsServer) -> None:
    """Deliveries do not tell of crashes where a unit waits for a day."""
    stub = server()
    stub.held = True
    async with stored(nats) as rig, stub:
        job_id = await rig.job()
        unit = unit_pb2.Unit(job_id=job_id, attempt=1, unit=0, spec=spec(), task="rows", stop=ROWS)
        await rig.release(unit, endpoint=TOKEN)
        for _ in range(7):
            taken = await rig.released_again(TOKEN)
            assert taken is not None
            await taken.nak()
        async with running(nats, [endpoint(stub.url, 200)], settings(**FAST)):
            await until(lambda: stub.polls)
            other = await rig.job()
            alone = spec()
            alone.provider_batch = False
            for number in range(2):
                unit = unit_pb2.Unit(job_id=other, attempt=1, unit=number, spec=alone, task="rows", stop=1)
                await rig.release(unit)
            await until(lambda: _is_one(rig.work_left()))
            stub.held = False
            await rig.until_acknowledged()
        assert len(await results(rig, job_id)) == ROWS
    assert len(stub.batches) == 1


async def _is_one(count: Awaitable[int]) -> bool:
    return await count == 1


@pytest.mark.parametrize("fault", [Fault("reset"), Fault("502")])
async def test_a_batch_whose_beginning_was_not_heard_of_is_found_again(nats: NatsServer, fault: Fault) -> None:
    stub = server()
    stub.lost.append(fault)
    stub.listing_s = 0.2
    async with stored(nats) as rig, stub, running(nats, [endpoint(stub.url, 200)], settings(**FAST)):
        found = await run(rig, spec())
    assert len(found) == ROWS
    assert len(stub.batches) == 1


async def test_what_was_refused_is_sent_again_and_what_is_full_waits(nats: NatsServer) -> None:
    stub = server()
    stub.behaviour.faults.append(Fault("429", retry_after="0.1"))
    stub.refusals.append({"code": "token_limit_exceeded", "message": "Enqueued token limit reached", "line": None})
    async with stored(nats) as rig, stub, running(nats, [endpoint(stub.url, 200)], settings(**FAST)):
        found = await run(rig, spec())
    assert len(found) == ROWS
    assert [batch["status"] for batch in stub.batches.values()] == ["failed", "completed"]
    marks = {batch["metadata"]["touchstone"] for batch in stub.batches.values()}
    assert len(marks) == 2


async def test_a_batch_that_is_not_accepted_fails_the_job_with_its_words(nats: NatsServer) -> None:
    stub = server()
    stub.refusals.append({"code": "model_not_found", "message": "The model stub does not exist", "line": 1})
    async with stored(nats) as rig, stub, running(nats, [endpoint(stub.url, 200)], settings(**FAST)):
        await begin(rig, spec())
        fault = await rig.fault()
    assert "The model stub does not exist" in fault.reason
    assert len(stub.batches) == 1


async def test_a_server_without_a_batch_api_fails_the_job_and_says_what_to_do(nats: NatsServer) -> None:
    async with stored(nats) as rig, OpenAIServer() as stub, running(nats, [endpoint(stub.url)], settings(**FAST)):
        await begin(rig, spec())
        fault = await rig.fault()
    assert "stub has no batch API" in fault.reason
    assert "without provider_batch" in fault.reason


@pytest.mark.parametrize("there", [True, False])
async def test_cancelling_the_job_cancels_the_batch_wherever_its_evaluator_is(nats: NatsServer, there: bool) -> None:
    stub = server()
    stub.held = True
    async with stored(nats) as rig, stub:
        endpoints = [endpoint(stub.url, 60)]
        async with running(nats, endpoints, settings(**FAST)):
            job_id, _ = await begin(rig, spec())
            await until(lambda: stub.polls > 3)
            if there:
                await rig.job(job_id, state=job_pb2.Job.STATE_CANCELLED)
                await until(lambda: {batch["status"] for batch in stub.batches.values()} == {"cancelled"})
        if not there:
            await rig.job(job_id, state=job_pb2.Job.STATE_CANCELLED)
            async with running(nats, endpoints, settings("evaluator-2", **FAST)):
                await until(lambda: {batch["status"] for batch in stub.batches.values()} == {"cancelled"})
        kept = [record async for record, _ in ProviderBatches(rig.bus).all()]
        assert {record.stage for record in kept} <= {BatchStage.CLOSED, BatchStage.WAITING}
        assert not await results(rig, job_id)
    assert len(stub.batches) == 2


async def test_a_provider_that_is_away_while_a_batch_runs_costs_nothing_but_time(nats: NatsServer) -> None:
    stub = server()
    stub.behaviour.always = Fault("503")
    async with (
        stored(nats) as rig,
        stub,
        running(nats, [endpoint(stub.url, 200)], settings(**FAST, outage_s=1.0, first_outage_s=1.0)),
    ):
        job_id, _ = await begin(rig, spec())
        await until(lambda: stub.polls > 12)
        stub.behaviour.always = None
        await rig.until_acknowledged()
        assert len(await results(rig, job_id)) == ROWS
    assert len(stub.batches) == 1


async def test_of_two_evaluators_with_the_same_unit_one_sends_it(nats: NatsServer) -> None:
    stub = server()
    stub.upload_s = 2.0
    short = FAST | {"ack_wait_s": 1.0}
    async with stored(nats) as rig, stub, Link(nats) as link:
        endpoints = [endpoint(stub.url, 200)]
        async with running(nats, endpoints, settings("cut-off", **short), url=link.url):
            job_id, _ = await begin(rig, spec())
            kept = ProviderBatches(rig.bus)
            await until(lambda: _is_written_by(kept, job_id, "cut-off"))
            link.cut()
            async with running(nats, endpoints, settings("other", **short)):
                await until(lambda: _is_written_by(kept, job_id, "other"))
                link.mend()
                await rig.until_acknowledged()
        assert len(await results(rig, job_id)) == ROWS
    assert len(stub.files) >= 3, "both have uploaded the rows"
    assert len(stub.batches) == 1


async def _is_written_by(kept: ProviderBatches, job_id: str, evaluator: str) -> bool:
    record, _ = await kept.get(job_id, 1, 0)
    return record is not None and record.evaluator == evaluator
