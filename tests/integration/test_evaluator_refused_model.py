"""A model that is refused or fails for ever slows no other model of its endpoint, and its job ends."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from services.bus import KIND_FAULT, KIND_ITEMS
from tests.integration.evaluator_rig import Rig, open_rig, prompt_answers, running, settings, stub_endpoint, until
from tests.nats_server import NatsServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault

GOOD, BAD = "good", "bad"


class OneRefused(OpenAIServer):
    """Refuses every call of one model, or every call with a certain text."""

    refused = 0
    kind = "429"
    text = ""

    async def _respond(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if body.get("model") == BAD and any(self.text in message["content"] for message in body["messages"]):
            self.refused += 1
            fault = Fault(self.kind, message="the model is busy")
            headers = {"Retry-After": "1"} if self.kind == "429" else None
            return web.json_response(self.error(fault), status=int(self.kind), headers=headers)
        return await super()._respond(request, body)


async def release(rig: Rig, model: str, items: int) -> str:
    job_id = await rig.job()
    for number, start in enumerate(range(0, items, 16)):
        await rig.release(rig.unit(job_id, number, start, start + 16, model=model))
    return job_id


async def test_a_model_that_is_refused_for_ever_fails_alone(nats: NatsServer) -> None:
    behaviour = Behaviour(models=(GOOD, BAD), latency_s=0.05)
    async with open_rig(nats) as rig, OneRefused(behaviour) as stub:
        bad = await release(rig, BAD, 64)
        async with running(nats, [stub_endpoint(stub.url, concurrency=4)], settings(outage_s=7.0)):
            await until(lambda: stub.refused)
            await release(rig, GOOD, 64)
            fault = await rig.fault()
        stored = await rig.stored()
    assert fault.reason == (
        "stub asks for fewer calls: the model is busy. Lower its concurrency or set requests_per_minute in the "
        "endpoints file."
    )
    end = next(place for place, one in enumerate(stored) if one.headers.kind == KIND_FAULT)
    assert stored[end].subject.split(".")[1] == bad
    answered = [item for one in stored[:end] if one.headers.kind == KIND_ITEMS for item in one.batch.items]
    assert len(answered) == 64, "the other model had its answers long before"
    assert all(item.error == "" for item in answered)
    # One call at a time, and no sooner than it was asked for.
    assert stub.refused < 4 + 4 + 10


async def test_a_model_that_fails_for_ever_fails_alone(nats: NatsServer) -> None:
    """Its calls wait for another try outside the slots: in them they would leave none to the others."""
    behaviour = Behaviour(models=(GOOD, BAD), latency_s=0.05)
    async with open_rig(nats) as rig, OneRefused(behaviour) as stub:
        stub.kind = "503"
        bad = await release(rig, BAD, 64)
        async with running(nats, [stub_endpoint(stub.url, concurrency=4)], settings(first_outage_s=4.0)):
            await until(lambda: stub.refused >= 4)
            await release(rig, GOOD, 16)
            fault = await rig.fault()
        stored = await rig.stored()
    assert fault.reason == "stub failed with status 503: the model is busy. Check its log or status page, then retry."
    end = next(place for place, one in enumerate(stored) if one.headers.kind == KIND_FAULT)
    assert stored[end].subject.split(".")[1] == bad
    answered = [item for one in stored[:end] if one.headers.kind == KIND_ITEMS for item in one.batch.items]
    assert len(answered) == 16, "the other model had its answers long before"
    assert all(item.error == "" for item in answered)


async def test_an_item_that_is_refused_for_ever_does_not_keep_its_job_from_the_others(nats: NatsServer) -> None:
    """One prompt can be too large for a limit of tokens a minute, which providers answer with 429."""
    behaviour = Behaviour(models=(GOOD, BAD), latency_s=0.01)
    async with open_rig(nats) as rig, OneRefused(behaviour) as stub:
        first = next(iter(prompt_answers()))
        stub.text = first
        await release(rig, BAD, 16)
        async with running(nats, [stub_endpoint(stub.url, concurrency=1)], settings(outage_s=3.0)):
            await rig.fault()
        stored = await rig.stored()
    answered = [item for one in stored if one.headers.kind == KIND_ITEMS for item in one.batch.items]
    assert len(answered) == 15
