"""Rows through Gemini's batch API, over a real NATS."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.integration.evaluator_rig import Rig, running, settings, until
from tests.integration.test_evaluator_provider_batches import (
    FAST,
    PRICES,
    ROWS,
    answer,
    begin,
    endpoint,
    results,
    run,
    spec,
    stored,
)
from tests.nats_server import NatsServer
from tests.servers.gemini_batch_server import GeminiBatchServer
from tests.servers.stub import Behaviour, Fault
from touchstone.v1 import item_result_pb2, job_pb2

ERROR = item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR


@asynccontextmanager
async def world(nats: NatsServer, stub: GeminiBatchServer, **changes: Any) -> AsyncIterator[Rig]:
    async with (
        stored(nats) as rig,
        stub,
        running(nats, [endpoint(stub.url, kind="gemini", prices=PRICES, **changes)], settings(**FAST)),
    ):
        yield rig


def server() -> GeminiBatchServer:
    return GeminiBatchServer(Behaviour(answer=answer))


async def test_rows_go_in_few_batches_at_half_the_price_and_come_back_by_position(nats: NatsServer) -> None:
    stub = server()
    async with world(nats, stub) as rig:
        found = await run(rig, spec(sampling=job_pb2.Sampling(max_tokens=50)))
    # Units go out side by side, in any order.
    assert sorted(len(stub.requests(batch)) for batch in stub.batches) == [20, 50, 50]
    assert not stub.records
    assert all(item.response == str(number) for number, item in found.items())
    assert found[5].cost_usd == pytest.approx((2 * 1.0 + 1 * 10.0) / 1e6 / 2)
    (line,) = [line for batch in stub.batches for line in stub.requests(batch) if line["metadata"] == {"key": "5"}]
    assert line["request"]["generationConfig"] == {"temperature": 0, "maxOutputTokens": 50}


async def test_single_lines_fail_with_their_text(nats: NatsServer) -> None:
    refused = Fault("400", message="This prompt is not allowed.")
    stub = GeminiBatchServer(Behaviour(answer=lambda prompt: refused if prompt == "Say 3" else "x"))
    async with world(nats, stub) as rig:
        found = await run(rig, spec())
    assert [number for number, item in found.items() if item.outcome == ERROR] == [3]
    assert "This prompt is not allowed" in found[3].error


async def test_an_expired_batch_has_no_answers_and_says_so(nats: NatsServer) -> None:
    stub = server()
    stub.ends = "EXPIRED"
    async with world(nats, stub) as rig:
        found = await run(rig, spec())
    assert all(item.outcome == ERROR and "expired before" in item.error for item in found.values())


async def test_a_failed_batch_fails_the_job_with_its_words(nats: NatsServer) -> None:
    stub = server()
    stub.ends = "FAILED"
    async with world(nats, stub) as rig:
        await begin(rig, spec())
        fault = await rig.fault()
    assert "The model does not take batches" in fault.reason


async def test_a_batch_whose_beginning_was_not_heard_of_is_found_again(nats: NatsServer) -> None:
    stub = server()
    stub.lost.append(Fault("500", message="internal"))
    async with world(nats, stub) as rig:
        job_id, _ = await begin(rig, spec())
        await rig.until_acknowledged()
        assert len(await results(rig, job_id)) == ROWS
    assert len(stub.batches) == 3


async def test_cancelling_the_job_cancels_its_batches(nats: NatsServer) -> None:
    stub = server()
    stub.held = True
    async with world(nats, stub) as rig:
        job_id, _ = await begin(rig, spec())
        await until(lambda: stub.polls > 5)
        await rig.job(job_id, state=job_pb2.Job.STATE_CANCELLED)
        await until(lambda: {batch["state"] for batch in stub.batches.values()} == {"CANCELLED"})
