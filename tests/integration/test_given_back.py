"""A unit that an evaluator gives back at an orderly stop: what its job's progress tells while another one has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from services.bus import KIND_BEGUN, KIND_ITEMS
from services.scheduler.jobs.ledger import Ledger
from tests.integration.evaluator_rig import TASK, Rig, open_rig, running, settings, stub_endpoint, until
from tests.nats_server import NatsServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour
from touchstone.v1 import job_pb2
from touchstone.v1.item_result_pb2 import ItemResult

ITEMS, AT_ONCE = 12, 2


@dataclass
class Stored:
    """The results service's answers to an evaluator: what is on RESULTS by then."""

    rig: Rig

    async def of_job(self, job_id: str, task: str, positions: Sequence[int], reached: int = 0) -> list[ItemResult]:
        newest = {item.position: item for item in await self.rig.items() if item.position in positions}
        return list(newest.values())

    async def by_identity(self, identities: Sequence[str], owner: str) -> list[ItemResult]:
        return []


@pytest.mark.parametrize("kept", [True, False])
async def test_answers_of_a_unit_that_was_given_back_count_once(nats: NatsServer, kept: bool) -> None:
    endpoint: dict[str, Any] = {"concurrency": AT_ONCE, "prices": {"input": 0.0, "output": 1000.0}}
    async with open_rig(nats) as rig, OpenAIServer(Behaviour(latency_s=0.3)) as stub:
        store = Stored(rig) if kept else None
        job_id = await rig.job()
        async with running(nats, [stub_endpoint(stub.url, **endpoint)], settings("e1", grace_s=0.0), store=store):
            await rig.release_items(job_id, ITEMS, ITEMS)
            await until(lambda: len(stub.records) > 2 * AT_ONCE and stub.in_flight == AT_ONCE)
        before = len(stub.records)
        async with running(nats, [stub_endpoint(stub.url, **endpoint)], settings("e2"), store=store):
            await rig.until_acknowledged()
        messages = [message for message in await rig.stored() if message.headers.kind in (KIND_ITEMS, KIND_BEGUN)]

    ledger = Ledger([job_pb2.TaskPlan(task=TASK, items=ITEMS, unit_size=ITEMS)])
    answered: dict[int, int] = {}
    for sequence, message in enumerate(messages, 1):
        if message.headers.kind == KIND_BEGUN:
            ledger.begun(0, message.headers, sequence)
            continue
        answered |= {item.position: item.output_tokens for item in message.batch.items}
        ledger.record(0, message.headers, sequence)
        assert ledger.items_done <= len(answered)
        assert ledger.output_tokens <= sum(answered.values())
    assert ledger.all_done
    assert ledger.output_tokens == sum(answered.values())
    paid = [item for message in messages for item in message.batch.items] if not kept else list(answered)
    assert ledger.cost_usd == pytest.approx(len(paid) * next(iter(answered.values())) / 1000)
    progress = job_pb2.Progress()
    ledger.progress(0.0, progress)
    cut_off = len(stub.records) - len(paid)
    print(f"{before} calls by the first, {len(stub.records)} in all, {cut_off} cut off")
    assert 0 < cut_off == progress.lost_calls, "calls that the stop cut off may be charged, and no others"
