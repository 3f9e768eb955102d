"""A call whose requests are a stream is served as all others: with an identity and with typed errors."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from deploy.local.ports import free_port
from services import rpc
from services.errors import InvalidRequestError
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1 import results_service_pb2_grpc

NAME = "touchstone.v1.ResultsService"


async def import_answers(requests: AsyncIterator[pb.ImportAnswersRequest], context: Any) -> pb.ImportAnswersResponse:
    answers = 0
    async for request in requests:
        answers += len(request.answers)
    if not answers:
        raise InvalidRequestError("There are no answers.", "answers")
    return pb.ImportAnswersResponse(import_id=rpc.identity().user, answers=answers)


def register(behaviour: Any, server: Any) -> None:
    codec = (pb.ImportAnswersRequest.FromString, pb.ImportAnswersResponse.SerializeToString)
    handlers = {"ImportAnswers": grpc.stream_unary_rpc_method_handler(behaviour, *codec)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(NAME, handlers),))


async def sent(channel: grpc.aio.Channel, token: str, *sizes: int) -> pb.ImportAnswersResponse:
    async def requests() -> AsyncIterator[pb.ImportAnswersRequest]:
        for size in sizes:
            yield pb.ImportAnswersRequest(answers=[pb.ImportedAnswer()] * size)

    stub = results_service_pb2_grpc.ResultsServiceStub(channel)
    metadata = (("authorization", f"Bearer {token}"), ("touchstone-user", "alice"))
    answer: pb.ImportAnswersResponse = await stub.ImportAnswers(requests(), timeout=60, metadata=metadata)
    return answer


async def test_streamed_requests_have_an_identity_and_typed_errors() -> None:
    async def nobody(digest: str) -> None:
        return None

    address = f"127.0.0.1:{free_port()}"
    services = [(register, import_answers, NAME)]
    async with (
        rpc.serve(address, rpc.Authenticator(nobody, "secret"), services, grace_s=0),
        rpc.channel(address) as channel,
    ):
        answer = await sent(channel, "secret", 2, 3)
        assert (answer.import_id, answer.answers) == ("alice", 5)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await sent(channel, "secret")
        found = rpc.from_rpc_error(refused.value)
        assert isinstance(found, InvalidRequestError)
        assert found.field == "answers"
        with pytest.raises(grpc.aio.AioRpcError) as unknown:
            await sent(channel, "wrong", 1)
        assert unknown.value.code() == grpc.StatusCode.UNAUTHENTICATED
