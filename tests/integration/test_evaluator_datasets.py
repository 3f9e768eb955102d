"""Jobs over uploaded datasets, from the object store to the RESULTS stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from services.bus import KIND_ITEMS, KIND_RETURNED, Datasets
from services.evaluator.endpoints.endpoint import BASELINE, Endpoint
from services.evaluator.make_provider import provider
from services.evaluator.providers.pricing import prices
from services.evaluator.providers.protocol.provider import Provider
from tests.dataset_store import DATASET_ID, MemoryStore, row
from tests.integration.evaluator_rig import Rig, open_rig, running, settings, stub_endpoint, until
from tests.nats_server import NatsServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault
from touchstone.v1 import item_result_pb2, job_pb2, suite_pb2, unit_pb2
from touchstone.v1.dataset_pb2 import DatasetRow
from touchstone.v1.endpoint_pb2 import Prices
from touchstone.v1.item_result_pb2 import ItemResult
from touchstone.v1.scoring_pb2 import Scoring

PRICES = {"input": 1.0, "output": 10.0}


def spec(endpoint: str = "stub", model: str = "stub", **changes: Any) -> job_pb2.JobSpec:
    work = job_pb2.DatasetWork(dataset_id=DATASET_ID, name="questions.jsonl", scoring=changes.pop("scoring", None))
    work.limit = changes.pop("limit", 0)
    return job_pb2.JobSpec(endpoint=endpoint, model=model, dataset=work, **changes)


@asynccontextmanager
async def stored(nats: NatsServer, rows: Sequence[DatasetRow], shard_rows: int = 1000) -> AsyncIterator[Rig]:
    """A rig in whose object store the rows are."""
    memory = MemoryStore()
    memory.add(rows, shard_rows)
    async with open_rig(nats) as rig:
        await memory.copy_to(Datasets(rig.bus))
        yield rig


async def run(
    rig: Rig, asked: job_pb2.JobSpec, unit_size: int = 0, endpoint: str = "", prices: Prices | None = None
) -> dict[int, ItemResult]:
    """Plans and runs a job; its results by position. `prices` are those of an earlier attempt."""
    planned = await rig.plan(asked, prices)
    assert not planned.error, planned.error
    (task,) = planned.tasks
    job_id = await rig.job()
    size = unit_size or task.unit_size
    for number, start in enumerate(range(0, task.items, size)):
        unit = unit_pb2.Unit(
            job_id=job_id,
            attempt=1,
            unit=number,
            spec=asked,
            task=task.task,
            start=start,
            stop=min(task.items, start + size),
            item_set=task.item_set,
            prices=planned.receipt.prices if planned.receipt.HasField("prices") else None,
        )
        await rig.release(unit, endpoint=endpoint or asked.endpoint)
    await rig.until_acknowledged()
    found = [item for each in await rig.stored(KIND_ITEMS) if each.batch.job_id == job_id for item in each.batch.items]
    assert sorted(item.position for item in found) == list(range(task.items))
    return {item.position: item for item in found}


async def test_rows_come_out_once_and_are_asked_with_their_own_parameters(nats: NatsServer) -> None:
    made = [
        row(0, [("system", "Be brief."), ("user", "Zero?")], reference="none", metadata={"kind": "a"}),
        row(1, "One?", temperature=0.7, max_tokens=9, seed=4, stop=["\n\n"]),
        row(2, "Two?", extra={"min_p": 0.25}, reference="no answer"),
        *(row(number, f"{number}?", reference="no answer") for number in range(3, 90)),
    ]
    async with stored(nats, made, 40) as rig, OpenAIServer() as stub, running(nats, [stub_endpoint(stub.url)]):
        found = await run(rig, spec(sampling=job_pb2.Sampling(temperature=0.1, max_tokens=50)), unit_size=32)
        bodies = {record.body["messages"][-1]["content"]: record.body for record in stub.records}
    assert len(stub.records) == 90
    assert [found[place].custom_id for place in range(90)] == [f"row-{number}" for number in range(90)]

    def sent(prompt: str) -> dict[str, Any]:
        return {name: value for name, value in bodies[prompt].items() if name not in ("model", "messages")}

    assert sent("Zero?") == sent("80?") == {"temperature": 0.1, "max_tokens": 50}
    assert sent("One?") == {"temperature": 0.7, "max_tokens": 9, "seed": 4, "stop": ["\n\n"]}
    assert sent("Two?") == {"temperature": 0.1, "max_tokens": 50, "min_p": 0.25}
    assert bodies["Zero?"]["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Zero?"},
    ]
    for place, prompt in ((0, "Zero?"), (1, "One?"), (2, "Two?")):
        assert json.loads(found[place].parameters) == sent(prompt)
    assert json.loads(found[0].metadata) == {"kind": "a"}
    assert json.loads(found[0].messages) == bodies["Zero?"]["messages"]
    assert (found[0].statistics["correct"], found[2].statistics["correct"]) == (0, 1)
    assert not found[1].statistics
    assert found[1].outcome == item_result_pb2.OUTCOME_ANSWERED
    assert len({item.identity for item in found.values()}) == 90


async def test_any_cut_into_units_and_any_number_of_evaluators_gives_the_same(nats: NatsServer) -> None:
    made = [row(number, reference=str(number % 2), temperature=number / 100) for number in range(70)]
    behaviour = Behaviour(answer=lambda prompt: str(len(prompt) % 2))

    def told(found: dict[int, ItemResult]) -> list[tuple[Any, ...]]:
        return [
            (item.item, item.item_hash, item.prediction, item.statistics["correct"], item.parameters, item.identity)
            for _, item in sorted(found.items())
        ]

    async with stored(nats, made, 16) as rig, OpenAIServer(behaviour) as stub:
        endpoint = stub_endpoint(stub.url)
        async with running(nats, [endpoint], settings("one")):
            alone = told(await run(rig, spec(limit=50)))
            async with running(nats, [endpoint], settings("two")):
                assert told(await run(rig, spec(limit=50), unit_size=7)) == alone
                assert told(await run(rig, spec(limit=50), unit_size=50)) == alone
                assert [each[0] for each in told(await run(rig, spec()))] == list(range(70))
    assert len(alone) == 50


async def test_a_job_that_cannot_run_is_told_when_it_is_planned(nats: NatsServer) -> None:
    async with open_rig(nats) as rig, OpenAIServer() as stub, running(nats, [stub_endpoint(stub.url), BASELINE]):
        for asked, sentence in (
            (spec(), "Dataset questions.jsonl was deleted, so its rows cannot be run."),
            (spec(scoring=Scoring(scorer="bleu")), "bleu is not a valid scorer. Use one of:"),
            (spec(scoring=Scoring(answer_pattern="(")), "answer_pattern is not a valid RE2 pattern"),
            (spec(mode=suite_pb2.MODE_LOGLIKELIHOOD), "Datasets run in generate mode only."),
            (spec(endpoint="baseline", model="random"), "The random baseline needs labels or a train split"),
        ):
            assert (await rig.plan(asked)).error.startswith(sentence)
        assert stub.records == []


async def test_a_dataset_that_is_deleted_while_it_runs_fails_the_job(nats: NatsServer) -> None:
    async with stored(nats, [row(1)]) as rig, OpenAIServer() as stub, running(nats, [stub_endpoint(stub.url)]):
        await Datasets(rig.bus).delete(DATASET_ID)
        await rig.release(
            unit_pb2.Unit(job_id=await rig.job(), attempt=1, unit=0, spec=spec(), task="rows", start=0, stop=1)
        )
        assert (await rig.fault()).reason.startswith("Dataset questions.jsonl was deleted")
        assert stub.records == []


async def test_baselines_answer_rows_without_a_key_or_a_model(nats: NatsServer) -> None:
    made = [row(number, "blue", reference=["red", "blue", "red"][number % 3]) for number in range(9)]
    async with stored(nats, made) as rig, running(nats, [BASELINE]):
        echo = await run(rig, spec("baseline", "echo"))
        majority = await run(rig, spec("baseline", "majority"))
    assert {item.response for item in echo.values()} == {"blue"}
    assert sum(item.statistics["correct"] for item in echo.values()) == 3
    assert sum(item.statistics["correct"] for item in majority.values()) == 6


@dataclass
class Answers:
    """Implements `ResponseStore` with another job's results."""

    found: dict[int, ItemResult]

    async def of_job(self, job_id: str, task: str, positions: Sequence[int], reached: int = 0) -> list[ItemResult]:
        kept: list[ItemResult] = []
        for position in positions:
            stored_ = ItemResult()
            stored_.CopyFrom(self.found[position])
            stored_.ClearField("prompt")
            kept.append(stored_)
        return kept

    async def by_identity(self, identities: Sequence[str], owner: str) -> list[ItemResult]:
        return []


async def test_answers_are_scored_again_otherwise_and_chosen_ones_asked_again(nats: NatsServer) -> None:
    made = [row(number, f"{number}", reference="the red car", temperature=0.5) for number in range(40)]
    store = Answers({})
    behaviour = Behaviour(answer=lambda prompt: "a red car, I think" if int(prompt) % 2 else "")
    async with (
        stored(nats, made) as rig,
        OpenAIServer(behaviour) as stub,
        running(nats, [stub_endpoint(stub.url)], store=store),
    ):
        first = await run(rig, spec(limit=20))
        store.found = first
        source = job_pb2.Reuse(job_id=await rig.job(state=job_pb2.Job.STATE_COMPLETED))
        rescored = await run(rig, spec(limit=20, scoring=Scoring(scorer="token_f1"), reuse=source), endpoint="stored")
        assert len(stub.records) == 20
        source.rerun.append(item_result_pb2.OUTCOME_UNPARSED)
        again = await run(rig, spec(limit=20, reuse=source))
    blank = [place for place, item in first.items() if not item.response]
    assert len(stub.records) == 20 + len(blank)
    for place, item in rescored.items():
        assert item.reused
        assert item.identity == first[place].identity
        assert item.statistics == {"token_f1": pytest.approx(0 if place in blank else 4 / 6)}
    assert sorted(place for place, item in again.items() if not item.reused) == sorted(blank)


# -- budgets ---------------------------------------------------------------------------------------------------------


def paid(budget_usd: float = 1.0) -> job_pb2.JobSpec:
    return spec(sampling=job_pb2.Sampling(max_tokens=10), budget_usd=budget_usd)


async def test_a_job_with_a_budget_tells_what_it_reserves_and_what_it_spent(nats: NatsServer) -> None:
    made = [row(number) for number in range(20)]
    async with stored(nats, made) as rig, OpenAIServer() as stub:
        async with running(nats, [stub_endpoint(stub.url, prices=PRICES)]):
            (task,) = (await rig.plan(paid())).tasks
            found = await run(rig, paid())
            headers = [each.headers for each in await rig.stored(KIND_ITEMS)]
        async with running(nats, [stub_endpoint(stub.url, name="free")]):
            unknown = await rig.plan(spec("free", sampling=job_pb2.Sampling(max_tokens=10), budget_usd=1.0))
    assert unknown.error.startswith("The prices of stub at free are unknown")
    assert task.unit_size <= 4
    assert all(0 < item.cost_usd <= task.most_cost_usd for item in found.values())
    assert sum(each.cost or 0 for each in headers) == pytest.approx(sum(i.cost_usd for i in found.values()) * 1e6)


async def test_a_public_service_is_charged_at_list_prices_that_its_job_keeps(nats: NatsServer) -> None:
    official = stub_endpoint("https://api.openai.com/v1", models=("gpt-4.1-mini", "of-ours"))
    asked = paid()
    asked.model = "gpt-4.1-mini"
    async with stored(nats, [row(1), row(2)]) as rig, OpenAIServer(Behaviour(models=official.models)) as stub:

        def at_the_stub(endpoint: Endpoint) -> Provider:
            return provider(replace(endpoint, base_url=stub.url))

        async with running(nats, [official], make_provider=at_the_stub):
            plan = await rig.plan(asked)
            first = await run(rig, asked)
            earlier = Prices(input=100.0, output=100.0, source=Prices.SOURCE_LIST, as_of="2026-01-01")
            kept = (await rig.plan(asked, earlier)).receipt.prices
            again = await run(rig, asked, prices=earlier)
            other = paid()
            other.model = "of-ours"
            unknown = await rig.plan(other)
    table = prices.shipped()
    assert plan.receipt.prices == table.of("openai", official.base_url, asked.model, prices.today())
    assert plan.receipt.prices.table_digest == table.digest
    assert kept == earlier
    listed = plan.receipt.prices
    for place, item in first.items():
        cost = (item.input_tokens * listed.input + item.output_tokens * listed.output) / 1e6
        assert item.cost_usd == pytest.approx(cost)
        assert 0 < item.cost_usd <= plan.tasks[0].most_cost_usd
        assert again[place].cost_usd == pytest.approx((item.input_tokens + item.output_tokens) * 100e-6)
    assert unknown.error.startswith("The prices of of-ours at stub are unknown")


async def test_a_call_that_may_be_charged_is_not_made_twice_within_a_budget(nats: NatsServer) -> None:
    behaviour = Behaviour()
    behaviour.faults.extend([Fault("429"), Fault("truncated")])
    async with (
        stored(nats, [row(1), row(2), row(3)]) as rig,
        OpenAIServer(behaviour) as stub,
        running(nats, [stub_endpoint(stub.url, prices=PRICES, concurrency=1)]),
    ):
        found = await run(rig, paid())
    assert len(stub.records) == 4
    failed = [item for item in found.values() if item.outcome == item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR]
    assert len(failed) == 1
    assert failed[0].error.endswith("The call was not retried: it may already be charged, and the job has a budget.")


async def test_a_unit_with_a_budget_that_comes_again_goes_back_to_the_scheduler(nats: NatsServer) -> None:
    async with stored(nats, [row(1), row(2)]) as rig, OpenAIServer() as stub:
        job_id = await rig.job()
        unit = unit_pb2.Unit(job_id=job_id, attempt=1, unit=0, spec=paid(), task="rows", start=0, stop=2)
        place = await rig.work("stub", ack_wait_s=3.0)
        await rig.release(unit)
        await (await place.fetch(1, timeout=20))[0].nak()
        async with running(nats, [stub_endpoint(stub.url, prices=PRICES)]):
            await until(lambda: _returned(rig))
            assert await rig.work_left() == 0
            assert stub.records == []
            # Offered afresh, it is run.
            unit.begun = True
            await rig.release(unit)
            await rig.until_acknowledged()
    assert len(stub.records) == 2


async def test_a_unit_with_a_budget_is_not_offered_again_by_an_evaluator_that_stops(nats: NatsServer) -> None:
    behaviour = Behaviour(latency_s=20)
    async with stored(nats, [row(1)]) as rig, OpenAIServer(behaviour) as stub:
        async with running(nats, [stub_endpoint(stub.url, prices=PRICES)], settings(grace_s=0.1)):
            unit = unit_pb2.Unit(job_id=await rig.job(), attempt=1, unit=0, spec=paid(), task="rows", start=0, stop=1)
            await rig.release(unit)
            await until(lambda: stub.records)
        (returned,) = await rig.stored(KIND_RETURNED)
        assert returned.headers.delivery == 1
        assert await rig.work_left() == 0


async def _returned(rig: Rig) -> bool:
    await asyncio.sleep(0)
    return bool(await rig.stored(KIND_RETURNED))
