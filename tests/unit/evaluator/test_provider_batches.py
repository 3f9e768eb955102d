"""Batches' sizes and settings, and the stub of OpenAI's batch API read by OpenAI's own client.

Clients are imported where they are used: each worker of pytest-xdist imports this file, and they take long.
"""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.bus import BatchRecord, BatchStage
from services.errors import InvalidRequestError
from services.evaluator.budget import reserve
from services.evaluator.endpoints import table
from services.evaluator.endpoints.batch_options import BatchOptions
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.provider_batches.base import Answer, Batch, Line, position
from services.evaluator.provider_batches.openai import OpenAIBatches
from services.evaluator.provider_batches.planning import check, line_bytes, unit_rows
from services.evaluator.providers import prices
from services.evaluator.providers.openai import OpenAIProvider
from services.evaluator.tasks.base import Message
from tests.servers.openai_batch_server import OpenAIBatchServer
from tests.servers.stub import Behaviour
from touchstone.v1 import job_pb2

BODY = {"model": "stub", "messages": [{"role": "user", "content": "Say 3"}]}


def stub() -> OpenAIBatchServer:
    return OpenAIBatchServer(Behaviour(answer=lambda prompt: prompt.split()[-1]))


@given(st.lists(st.integers(1, 8_000_000), min_size=1, max_size=300), st.integers(1, 300))
def test_no_unit_is_larger_than_a_batch_may_be(sizes: list[int], most: int) -> None:
    options = BatchOptions(rows=most, megabytes=8)
    rows = unit_rows(sizes, options)
    assert 1 <= rows <= most
    assert all(sum(sizes[start : start + rows]) <= options.most_bytes for start in range(0, len(sizes), rows))


def test_small_rows_fill_a_batch() -> None:
    assert unit_rows([2_000] * 50_000, BatchOptions()) == 5_000
    assert unit_rows([2_000] * 50_000, BatchOptions(rows=50_000, megabytes=190)) == 50_000
    assert unit_rows([2_000] * 70, BatchOptions()) == 70


def test_a_line_is_no_larger_than_planned() -> None:
    messages = [Message("user", 'ü"\\\n' * 900), Message("assistant", "")]
    body = {"model": "m" * 300, "messages": [{"role": m.role, "content": m.content} for m in messages]}
    line = {"custom_id": "49999", "method": "POST", "url": "/v1/chat/completions", "body": body}
    assert len(json.dumps(line)) <= line_bytes(messages, job_pb2.Sampling())


def test_a_budget_is_reserved_in_tenths() -> None:
    planned = job_pb2.TaskPlan(unit_size=5_000)
    reserve(job_pb2.JobSpec(budget_usd=10, provider_batch=True), planned, 0.01)
    assert (planned.unit_size, planned.most_cost_usd) == (100, 0.01)


def test_another_kind_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidRequestError, match="kind openai or gemini, or leave provider_batch out"):
        check(job_pb2.JobSpec(endpoint="mine"), "vllm")


@pytest.mark.parametrize(
    ("kind", "values", "field"),
    [
        ("openai", {"batch": {"rows": 50_001}}, "batch"),
        ("gemini", {"batch": {"megabytes": 19}}, "batch"),
        ("openai", {"batch": {"pages": 3}}, "batch"),
        ("openai", {"batch": {"at_once": True}}, "batch"),
        ("anthropic", {"batch": {"rows": 5}}, "batch"),
        ("openai", {"prices": {"input": 1, "output": 1, "batch_share": 2}}, "prices"),
        ("openai", {"prices": {"batch_share": 0.5}}, "prices"),
    ],
)
def test_wrong_settings_are_refused(kind: str, values: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        table.read({"name": "a", "kind": kind} | values, "file", {})
    assert refused.value.field == field


def test_the_share_is_that_of_the_models_prices() -> None:
    read = table.read({"name": "a", "kind": "openai", "prices": {"input": 1, "output": 2, "batch_share": 0.4}}, "", {})
    read.pop("model")
    assert prices.batch_share(prices.of(Endpoint(**read), "any")) == 0.4
    assert prices.batch_share(prices.of(Endpoint("a", "openai"), "any")) == 0.5


def test_records_of_a_newer_version_are_read() -> None:
    record = BatchRecord("job", 1, 2, "openai", "mark", BatchStage.SENDING, rows=7)
    newer = json.dumps(json.loads(record.encode()) | {"colour": "red"}).encode()
    assert BatchRecord.decode(newer) == record


@pytest.mark.parametrize("wire", ["-1", "٣", "1e3", "own-7", 7, None, "9" * 30])
def test_ids_that_are_not_ours_are_no_positions(wire: object) -> None:
    assert position(wire) == -1


async def test_openais_client_reads_the_stub() -> None:
    import openai

    async with stub() as server:
        client = openai.AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0)
        line = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": BODY}
        file = await client.files.create(file=("in.jsonl", io.BytesIO(json.dumps(line).encode())), purpose="batch")
        made = await client.batches.create(
            input_file_id=file.id,
            endpoint="/v1/chat/completions",
            completion_window="24h",
            metadata={"touchstone": "m"},
        )
        assert [each.id async for each in client.batches.list(limit=1)] == [made.id]
        ended = await client.batches.retrieve(made.id)
        assert ended.status == "completed"
        assert ended.request_counts is not None
        assert (ended.request_counts.completed, ended.request_counts.total) == (1, 1)
        assert ended.output_file_id is not None
        answer = json.loads((await client.files.content(ended.output_file_id)).text)
        assert answer["response"]["body"]["choices"][0]["message"]["content"] == "3"
        with pytest.raises(openai.BadRequestError):
            await client.batches.cancel(made.id)
        await client.close()


async def test_what_we_send_is_what_openais_client_sends_and_finds() -> None:
    import openai

    async with stub() as server:
        endpoint = Endpoint("openai", "openai", server.url)
        ours = OpenAIBatches(endpoint, OpenAIProvider(endpoint))
        prepared = await ours.upload("mark-1", [Line(3, BODY), Line(4, BODY)])
        batch_id = await ours.create("stub", "mark-1", prepared)
        client = openai.AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0)
        seen = await client.batches.retrieve(batch_id)
        assert (seen.metadata, seen.endpoint) == ({"touchstone": "mark-1"}, "/v1/chat/completions")
        lines = (await client.files.content(seen.input_file_id)).text.splitlines()
        theirs = {"custom_id": "3", "method": "POST", "url": "/v1/chat/completions", "body": BODY}
        assert json.loads(lines[0]) == theirs
        assert await ours.find("mark-1") == [batch_id]
        assert await ours.find("mark-2") == []
        found: list[Answer] = []

        async def take(answer: Answer) -> None:
            found.append(answer)

        batch: Batch = await ours.state(batch_id)
        await ours.answers(batch, take)
        assert sorted(answer.position for answer in found) == [3, 4]
        await ours.close()
        await client.close()
