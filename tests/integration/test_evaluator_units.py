"""Units of an OpenAI-compatible stub from NATS to the RESULTS stream."""

from __future__ import annotations

import asyncio
from collections import deque

import pytest

from services.bus import KIND_ITEMS
from tests.integration.evaluator_rig import (
    CATALOGUE,
    TASK,
    Rig,
    open_rig,
    prompt_answers,
    running,
    settings,
    stub_endpoint,
    until,
)
from tests.nats_server import NatsServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault, by_mapping
from touchstone.v1 import item_result_pb2, job_pb2, suite_pb2


async def test_a_job_of_two_units_is_answered_scored_stored_and_acknowledged(nats: NatsServer) -> None:
    behaviour = Behaviour(answer=by_mapping(prompt_answers()))
    async with open_rig(nats) as rig, OpenAIServer(behaviour) as stub, running(nats, [stub_endpoint(stub.url)]):
        job_id = await rig.job()
        await rig.release_items(job_id, 40)
        await rig.until_acknowledged()
        stored = await rig.stored(KIND_ITEMS)
        items = await rig.items()
    assert sorted(item.position for item in items) == list(range(40))
    assert all(item.statistics["correct"] == 1 for item in items)
    assert sum(entry.headers.done for entry in stored) == 2
    assert sum(entry.headers.items for entry in stored) == 40
    first = items[0]
    task = CATALOGUE.task("demo", TASK)
    source = next(iter(task.items([first.item])))
    assert first.item_hash == source.hash
    assert first.prompt_hash == source.prompt_hash
    assert source.messages[-1].content in first.prompt
    assert f"{source.messages[-1].role}:\n" in first.prompt
    assert first.response == task.answer(source.reference)
    assert (first.outcome, first.prediction) == (item_result_pb2.OUTCOME_ANSWERED, source.reference)
    assert first.latency_ms > 0
    assert first.input_tokens > 0
    assert first.output_tokens > 0
    assert (first.finish_reason, first.calls, first.served_model) == ("stop", 1, "stub")
    assert first.scorer_version == task.scorer_version


async def test_a_unit_with_positions_runs_only_those(nats: NatsServer) -> None:
    async with open_rig(nats) as rig, OpenAIServer() as stub, running(nats, [stub_endpoint(stub.url)]):
        unit = rig.unit(await rig.job(), 0, 0, 32)
        unit.positions.extend([3, 17])
        await rig.release(unit)
        await rig.until_acknowledged()
        assert [item.position for item in await rig.items()] == [3, 17]
        assert len(stub.records) == 2


async def test_calls_at_once_never_exceed_the_endpoints_concurrency_and_reach_it(nats: NatsServer) -> None:
    behaviour = Behaviour(latency_s=0.02)
    async with (
        open_rig(nats) as rig,
        OpenAIServer(behaviour) as stub,
        running(nats, [stub_endpoint(stub.url, concurrency=5)]),
    ):
        await rig.release_items(await rig.job(), 120, unit_size=7)
        await rig.until_acknowledged()
        assert stub.most_in_flight == 5
        assert len(stub.records) == 120


async def test_units_follow_each_other_without_a_gap(nats: NatsServer) -> None:
    """While one call lasts, those of later units go on, and with them all slots but its own stay busy."""
    async with (
        open_rig(nats) as rig,
        OpenAIServer(Behaviour(faults=deque([Fault("hang")]))) as stub,
        running(nats, [stub_endpoint(stub.url, concurrency=16)], settings(grace_s=0.0)),
    ):

        def answer(prompt: str) -> str:
            if len(stub.records) > 3 * 32:
                stub.behaviour.always = Fault("hang")  # In every slot, from now on.
            return "no answer"

        stub.behaviour.answer = answer
        await rig.release_items(await rig.job(), 400)
        await until(lambda: stub.behaviour.always and stub.in_flight == 16)


async def test_two_evaluators_share_the_work(nats: NatsServer) -> None:
    async with open_rig(nats) as rig, OpenAIServer(Behaviour(latency_s=0.03)) as stub:
        endpoint = stub_endpoint(stub.url)
        async with running(nats, [endpoint], settings("one")), running(nats, [endpoint], settings("two")):
            await rig.release_items(await rig.job(), 256, unit_size=16)
            await rig.until_acknowledged()
        by_evaluator: dict[str, int] = {}
        for stored in await rig.stored(KIND_ITEMS):
            name = stored.batch.evaluator
            by_evaluator[name] = by_evaluator.get(name, 0) + stored.headers.items
    assert sum(by_evaluator.values()) == 256
    assert min(by_evaluator["one"], by_evaluator["two"]) >= 64


@pytest.mark.parametrize(
    ("state", "attempt"),
    [
        (job_pb2.Job.STATE_CANCELLED, 1),
        (job_pb2.Job.STATE_FAILED, 1),
        (job_pb2.Job.STATE_COMPLETED, 1),
        (job_pb2.Job.STATE_RUNNING, 2),
    ],
)
async def test_units_of_finished_jobs_and_old_attempts_are_dropped_without_calls(
    nats: NatsServer, state: job_pb2.Job.State, attempt: int
) -> None:
    async with open_rig(nats) as rig, OpenAIServer() as stub, running(nats, [stub_endpoint(stub.url)]):
        await rig.release_items(await rig.job(state=state, attempt=attempt), 8)
        await rig.until_acknowledged()
        assert stub.records == []
        assert await rig.stored() == []


async def test_a_unit_of_an_unknown_job_is_dropped_without_calls(nats: NatsServer) -> None:
    async with open_rig(nats) as rig, OpenAIServer() as stub, running(nats, [stub_endpoint(stub.url)]):
        await rig.release_items("6f0c0a8e-0000-4000-8000-000000000000", 8)
        await rig.until_acknowledged()
        assert stub.records == []


async def test_other_data_than_planned_fails_the_job(nats: NatsServer) -> None:
    async with open_rig(nats) as rig, OpenAIServer() as stub, running(nats, [stub_endpoint(stub.url)]):
        unit = rig.unit(await rig.job(), 0, 0, 8)
        unit.item_set = "0" * 64
        await rig.release(unit)
        fault = await rig.fault()
        assert "the rows of sentiment differ from those that were planned" in fault.reason
        assert stub.records == []


async def test_the_planned_item_set_is_accepted(nats: NatsServer) -> None:
    async with open_rig(nats) as rig, OpenAIServer() as stub, running(nats, [stub_endpoint(stub.url)]):
        job_id = await rig.job()
        plans = CATALOGUE.plan(
            job_pb2.SuiteWork(suite="demo", tasks=[TASK], limit=50, seed=7), suite_pb2.MODE_GENERATE, 32
        )
        unit = rig.unit(job_id, 0, 0, 10)
        unit.spec.suite.limit, unit.spec.suite.seed, unit.item_set = 50, 7, plans[0].item_set
        await rig.release(unit)
        await rig.until_acknowledged()
        selected = CATALOGUE.selection(CATALOGUE.task("demo", TASK), 50, 7).indexes
        assert [item.item for item in sorted(await rig.items(), key=lambda item: item.position)] == selected[:10]


async def test_a_long_unit_is_not_delivered_twice(nats: NatsServer) -> None:
    """Six items of 1 s one after another take twice the acknowledgement time: heartbeats keep the unit."""
    async with (
        open_rig(nats) as rig,
        OpenAIServer(Behaviour(latency_s=1.0)) as stub,
        running(nats, [stub_endpoint(stub.url, concurrency=1)]),
    ):
        await rig.release_items(await rig.job(), 6)
        await rig.until_acknowledged()
        assert len(stub.records) == 6
        assert {entry.headers.delivery for entry in await rig.stored()} == {1}


async def test_results_arrive_while_a_unit_runs(nats: NatsServer) -> None:
    async with (
        open_rig(nats) as rig,
        OpenAIServer() as stub,
        running(nats, [stub_endpoint(stub.url, concurrency=1)], settings(grace_s=0.0)),
    ):

        def answer(prompt: str) -> str:
            if len(stub.records) == 3:
                stub.behaviour.always = Fault("hang")  # From the fourth call on.
            return "no answer"

        stub.behaviour.answer = answer
        await rig.release_items(await rig.job(), 4)
        await until(lambda: _has_items(rig, 3))
        assert await rig.work_left() == 1


async def _has_items(rig: Rig, count: int) -> bool:
    return len(await rig.items()) == count


async def test_calls_and_results_survive_a_restart_of_nats(nats: NatsServer) -> None:
    async with (
        open_rig(nats) as rig,
        OpenAIServer(Behaviour(latency_s=0.05)) as stub,
        running(nats, [stub_endpoint(stub.url)]),
    ):
        await rig.release_items(await rig.job(), 160, unit_size=16)
        await until(lambda: len(stub.records) > 40)
        await asyncio.to_thread(nats.kill)
        await asyncio.sleep(0.5)
        await asyncio.to_thread(nats.restart)
        await until(lambda: rig.bus.connected)
        await rig.until_acknowledged(60)
        items = await rig.items()
        assert {item.position for item in items} == set(range(160))
        # In flight at the kill were at most two units' worth of slots and the next unit.
        assert len(stub.records) <= 160 + 3 * 16
