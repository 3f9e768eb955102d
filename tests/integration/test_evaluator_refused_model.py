"""A model that is refused for ever slows no other model of its endpoint, and its job ends."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from services.bus import KIND_FAULT, KIND_ITEMS
from tests.integration.evaluator_rig import Rig, open_rig, running, settings, stub_endpoint, until
from tests.nats_server import NatsServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault

GOOD, BAD = "good", "bad"


class OneRefused(OpenAIServer):
    """Refuses every call of one model."""

    refused = 0

    async def _respond(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if body.get("model") == BAD:
            self.refused += 1
            fault = Fault("429", message="the model is busy")
            return web.json_response(self.error(fault), status=429, headers={"Retry-After": "1"})
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
