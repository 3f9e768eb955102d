"""The client while the results service is away and a copy of the results answers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from deploy.local.ports import free_port
from services.errors import NotFoundError, UnavailableError
from services.words.addresses import AS_OF
from tests.unit.client.fakes import JOB, Fakes, serving
from touchstone.v1 import metric_pb2
from touchstone.v1 import results_service_pb2 as pb
from touchstone_client import AsyncClient, Client, Settings, UnreachableError

AT = "2026-11-20T08:15:42.125Z"


@pytest.fixture
def copy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fakes]:
    answer = Fakes.answer

    def dated(self: Fakes, name: str, request: Any, context: Any) -> Any:
        context.send_initial_metadata(((AS_OF, AT),))
        return answer(self, name, request, context)

    monkeypatch.setattr(Fakes, "answer", dated)
    with serving() as made:
        made.answers["GetJobResult"] = pb.GetJobResultResponse(result=metric_pb2.JobResult(job_id=JOB))
        made.answers["MarkRun"] = UnavailableError("A copy takes no changes.")
        made.answers["GetItem"] = NotFoundError("no such item")
        yield made


def away(copy: Fakes, **more: Any) -> Settings:
    return replace(copy.settings, results=f"127.0.0.1:{free_port()}", replica=copy.address, **more)


def test_reads_are_answered_with_a_warning(copy: Fakes, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with Client(away(copy)) as client:
        assert client.as_of == ""
        assert client.result(JOB).job_id == JOB
        assert client.as_of == AT
        assert [record.message for record in caplog.records] == [
            f"The results service does not answer. Figures are from {AT}."
        ]
        # What the copy refuses or does not have is away.
        for call in (lambda: client.mark(JOB, "invalidated", "x"), lambda: client.item(JOB, "t", 1)):
            with pytest.raises(UnreachableError, match="Nothing answers at"):
                call()


async def test_so_it_is_without_waiting_threads(copy: Fakes) -> None:
    async with AsyncClient(away(copy)) as client:
        assert (await client.result(JOB)).job_id == JOB
        assert client.as_of == AT
        with pytest.raises(UnreachableError, match="Nothing answers at"):
            await client.mark(JOB, "invalidated", "x")


def test_a_service_that_answers_is_believed(copy: Fakes) -> None:
    with serving() as results:
        results.answers["GetJobResult"] = UnavailableError("busy")
        settings = replace(results.settings, replica=copy.address, timeout_s=2)
        with Client(settings) as client, pytest.raises(Exception, match="busy"):
            client.result(JOB)
    assert copy.heard == []
    with pytest.raises(UnreachableError), Client(replace(away(copy), replica="")) as client:
        client.result(JOB)
