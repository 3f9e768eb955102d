"""Batches of OpenAI."""

from __future__ import annotations

import io
import json

import pytest

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.provider_batches.base import Answer, Batch, Line, position
from services.evaluator.provider_batches.openai import OpenAIBatches
from services.evaluator.providers.openai.chat import OpenAIProvider
from tests.servers.openai_batch_server import OpenAIBatchServer
from tests.servers.stub import Behaviour

BODY = {"model": "stub", "messages": [{"role": "user", "content": "Say 3"}]}


def stub() -> OpenAIBatchServer:
    return OpenAIBatchServer(Behaviour(answer=lambda prompt: prompt.split()[-1]))


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
