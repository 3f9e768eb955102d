"""Texts of answers in the results service as a process: they are exported, and dropped when they are too many."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from services import bus, rpc
from tests.integration.test_results_service import STREAM_BYTES, Service, publish, publish_event, seal
from tests.nats_server import NatsServer
from tests.unit.results.builders import event, job, plan
from tests.waiting import answered
from touchstone.v1 import job_pb2, results_service_pb2_grpc
from touchstone.v1 import results_service_pb2 as pb

pytestmark = pytest.mark.stack

ITEMS = 3000


@pytest.fixture
async def stub(tmp_path: Path, nats: NatsServer) -> AsyncIterator[results_service_pb2_grpc.ResultsServiceAsyncStub]:
    """Of a service that keeps the texts of the newest job alone, with jobs "a" and "b" finished."""
    service = Service(tmp_path / "state", nats)
    service.environment["TOUCHSTONE_ANSWERS_MAX_BYTES"] = "1"
    connection = await bus.connect(nats.url, "test")
    await connection.ensure(STREAM_BYTES)
    service.start()
    async with rpc.channel(service.address) as channel:
        stub = results_service_pb2_grpc.ResultsServiceStub(channel)
        for number, name in enumerate("ab"):
            running = job(name, plan("t", ITEMS))
            await publish_event(connection, event(f"{2 * number:04d}", running))
            position = await publish(connection, name, range(ITEMS // 500), unit_size=500)
            await seal(stub, running, position)
            done = event(f"{2 * number + 1:04d}", job(name, plan("t", ITEMS), state=job_pb2.Job.STATE_COMPLETED))
            done.occurred_at.FromSeconds(1_790_000_000 + number)
            await publish_event(connection, done)
        yield stub
    await connection.close()
    service.end()


def items_of(name: str) -> pb.ExportRequest:
    return pb.ExportRequest(
        kind=pb.ExportRequest.KIND_ITEMS,
        format=pb.ExportRequest.FORMAT_JSONL,
        items=pb.ListItemsRequest(job_id=name),
    )


async def test_the_newest_job_is_exported_whole_and_the_older_one_without_its_texts(
    stub: results_service_pb2_grpc.ResultsServiceAsyncStub,
) -> None:
    async def first_of_a() -> pb.ListItemsResponse:
        return await stub.ListItems(pb.ListItemsRequest(job_id="a", page_size=1))

    # The job is marked first, and then its texts go.
    await answered(first_of_a, lambda found: not found.items[0].result.response, within=120)
    assert (await stub.GetJobResult(pb.GetJobResultRequest(job_id="a"))).result.texts_dropped
    for name, response in (("a", ""), ("b", "answer: yes")):
        pieces = [piece.data async for piece in stub.Export(items_of(name))]
        assert len(pieces) > 1
        assert all(len(piece) == 1_000_000 for piece in pieces[:-1])
        lines = [json.loads(line) for line in b"".join(pieces).splitlines()]
        assert [line["item"] for line in lines] == list(range(ITEMS))
        assert {line["response"] for line in lines} == {response}
        assert {line["correct"] for line in lines} == {1.0}
    assert not (await stub.GetJobResult(pb.GetJobResultRequest(job_id="b"))).result.texts_dropped
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await stub.FindResponses(pb.FindResponsesRequest(job_id="a", task="t", positions=[0]))
    assert refused.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    with pytest.raises(grpc.aio.AioRpcError) as unknown:
        async for _ in stub.Export(items_of("nobody")):
            pass
    assert unknown.value.code() == grpc.StatusCode.NOT_FOUND
