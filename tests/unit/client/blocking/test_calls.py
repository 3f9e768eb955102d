"""How the blocking client calls: repeats, tokens, deadlines."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from tests.unit.client.fakes import JOB, Fakes, job
from touchstone.v1 import scheduler_service_pb2
from touchstone_client import Client, Settings, UnreachableError, suite_spec


def failing(times: int, answer: Any, code: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE) -> Callable[[Any], Any]:
    left = [code] * times
    return lambda request: left.pop() if left else answer


def test_a_create_is_repeated_with_its_request_id_while_the_service_is_away(fakes: Fakes) -> None:
    fakes.answers["CreateJob"] = failing(2, scheduler_service_pb2.CreateJobResponse(job=job()))
    with Client() as client:
        assert client.run(suite_spec("glue", endpoint="e", model="m")).job_id == JOB
    ids = [request.request_id for request in fakes.requests("CreateJob")]
    assert len(ids) == 3
    assert len({*ids}) == 1
    assert ids[0]


@pytest.mark.parametrize("method", ["cancel", "retry", "delete", "redeliver"])
def test_what_may_not_be_done_twice_is_not_repeated(fakes: Fakes, method: str) -> None:
    rpc = {"cancel": "CancelJob", "retry": "RetryJob", "delete": "DeleteJob", "redeliver": "RedeliverWebhook"}[method]
    fakes.answers[rpc] = failing(1, None)
    with Client() as client, pytest.raises(UnreachableError):
        getattr(client, method)("x")
    assert len(fakes.heard) == 1


@pytest.mark.parametrize("given", ["argument", "environment"])
def test_a_token_goes_with_every_call(fakes: Fakes, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    fakes.answers["GetQueue"] = scheduler_service_pb2.GetQueueResponse()
    if given == "environment":
        monkeypatch.setenv("TOUCHSTONE_TOKEN", "secret")
    with Client(token="secret" if given == "argument" else None) as client:
        client.queue()
        assert "secret" not in repr(client)
    assert fakes.metadata[-1]["authorization"] == "Bearer secret"


def test_a_call_ends_at_its_deadline(fakes: Fakes) -> None:
    release = threading.Event()

    def slow(request: Any) -> scheduler_service_pb2.GetQueueResponse:
        release.wait(10)
        return scheduler_service_pb2.GetQueueResponse()

    fakes.answers["GetQueue"] = slow
    settings = Settings(scheduler=fakes.address, results=fakes.address, timeout_s=0.2)
    try:
        with Client(settings) as client, pytest.raises(UnreachableError, match="did not answer in time"):
            client.queue()
    finally:
        release.set()
