"""Batches as OpenAI's clients follow them."""

from __future__ import annotations

from tests.gateway.gateway_server import Running
from touchstone.v1 import job_pb2

LINES = b'{"prompt": "p", "reference": "a"}\n' * 3


async def test_a_batch_file_may_say_what_becomes_of_the_assistants_last_message(gateway: Running) -> None:
    for choice, status in (("prefill", 200), ("keep", 400)):
        form = {"purpose": "batch", "last_assistant": choice}
        answer = await gateway.client.post("/v1/files", files={"file": ("b.jsonl", LINES)}, data=form)
        assert answer.status_code == status, answer.text
    assert [one.last_assistant for one in gateway.world.options] == [job_pb2.LAST_ASSISTANT_PREFILL]
    assert "reference, prefill, refuse" in answer.text


async def test_a_batch_tells_its_tokens_once_it_is_over(gateway: Running) -> None:
    file = {"file": ("b.jsonl", LINES)}
    made = await gateway.client.post("/v1/files", files=file, data={"purpose": "batch"})
    asked = {"input_file_id": made.json()["id"], "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    answer = await gateway.client.post("/v1/batches", json=asked | {"model": "qwen2.5:7b@ollama"})
    batch = answer.json()
    assert (answer.status_code, batch["usage"]) == (200, None)
    (job,) = gateway.world.jobs.values()
    gateway.world.start(job.job_id)
    assert (await gateway.client.get(f"/v1/batches/{batch['id']}")).json()["usage"] is None
    gateway.world.finish(job.job_id)
    usage = (await gateway.client.get(f"/v1/batches/{batch['id']}")).json()["usage"]
    assert usage == {
        "input_tokens": 180,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 12,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 192,
    }
    assert [one["usage"] for one in (await gateway.client.get("/v1/batches")).json()["data"]] == [usage]
