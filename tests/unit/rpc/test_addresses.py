"""Two schedulers of which one leads: calls find it by a list of addresses and behind one name, in every client."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from deploy.local.ports import free_port
from services import rpc
from services.errors import StandbyError
from services.gateway.backend import SCHEDULER, Line
from touchstone.v1 import job_pb2, scheduler_service_pb2_grpc
from touchstone.v1 import scheduler_service_pb2 as pb
from touchstone_client import AsyncClient, Client, Settings, UnreachableError

CALLS = 20


class Scheduler(scheduler_service_pb2_grpc.SchedulerServiceServicer):
    def __init__(self, name: str) -> None:
        self.name, self.leads, self.cancelled = name, False, 0

    def _require(self) -> None:
        if not self.leads:
            raise StandbyError(f"{self.name} is a standby.")

    async def GetJob(self, request: pb.GetJobRequest, context: Any) -> pb.GetJobResponse:
        self._require()
        return pb.GetJobResponse(job=job_pb2.Job(job_id=request.job_id, owner=self.name))

    async def CancelJob(self, request: pb.CancelJobRequest, context: Any) -> pb.CancelJobResponse:
        self._require()
        self.cancelled += 1
        return pb.CancelJobResponse(job=job_pb2.Job(job_id=request.job_id, owner=self.name))

    async def WatchJob(self, request: pb.WatchJobRequest, context: Any) -> AsyncIterator[pb.WatchJobResponse]:
        self._require()
        yield pb.WatchJobResponse(
            job=job_pb2.Job(job_id=request.job_id, owner=self.name, state=job_pb2.Job.STATE_COMPLETED)
        )


class Pair:
    """Two of them, by turns in the lead."""

    def __init__(self, addresses: list[str]) -> None:
        self.addresses = addresses
        self.both = [Scheduler("one"), Scheduler("two")]  # type: ignore[abstract]
        self.servers: list[rpc.Server] = []

    async def lead(self, number: int | None) -> None:
        for index, (scheduler, server) in enumerate(zip(self.both, self.servers, strict=True)):
            scheduler.leads = index == number
            await server.set_ready(scheduler.leads, standby=True)


@asynccontextmanager
async def pair(addresses: list[str]) -> AsyncIterator[Pair]:
    made = Pair(addresses)
    register = scheduler_service_pb2_grpc.add_SchedulerServiceServicer_to_server
    services = [[(register, scheduler, SCHEDULER)] for scheduler in made.both]
    authenticate = rpc.Authenticator(None, "")
    async with (
        rpc.serve(addresses[0], authenticate, services[0], grace_s=0) as one,
        rpc.serve(addresses[1], authenticate, services[1], grace_s=0) as two,
    ):
        made.servers = [one, two]
        yield made


def listed() -> list[str]:
    """Names and numbers may be mixed."""
    return [f"127.0.0.1:{free_port()}", f"localhost:{free_port()}"]


async def test_services_call_the_leader_of_a_list_and_no_call_fails_while_one_leads() -> None:
    async with pair(listed()) as made, rpc.channel(",".join(made.addresses), leads=SCHEDULER) as channel:
        stub = scheduler_service_pb2_grpc.SchedulerServiceStub(channel)
        line = Line(channel, SCHEDULER, 3)
        for leader in (1, 0, 1):
            await made.lead(leader)
            for _ in range(CALLS):
                assert (await stub.GetJob(pb.GetJobRequest(job_id="j"), timeout=10)).job.owner == ("one", "two")[leader]
            await stub.CancelJob(pb.CancelJobRequest(job_id="j"), timeout=10)
            watched = [update async for update in stub.WatchJob(pb.WatchJobRequest(job_id="j"))]
            assert [update.job.owner for update in watched] == [("one", "two")[leader]]
            assert await line.serving(5)
        assert [scheduler.cancelled for scheduler in made.both] == [1, 2]
        await made.lead(None)
        assert not await line.serving(5)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.GetJob(pb.GetJobRequest(job_id="j"), timeout=1)
        assert isinstance(rpc.from_rpc_error(refused.value), StandbyError)


async def test_a_call_waits_while_the_lead_changes() -> None:
    async with pair(listed()) as made, rpc.channel(",".join(made.addresses), leads=SCHEDULER) as channel:
        stub = scheduler_service_pb2_grpc.SchedulerServiceStub(channel)
        waiting = asyncio.ensure_future(stub.CancelJob(pb.CancelJobRequest(job_id="j"), timeout=20))
        await asyncio.sleep(0.5)
        assert not waiting.done()
        await made.lead(1)
        assert (await waiting).job.owner == "two"
        assert made.both[1].cancelled == 1


async def test_a_call_that_was_cut_off_is_sent_again_unless_it_must_not_be() -> None:
    """The address that answers no more is passed over, and nothing is done twice."""
    async with pair(listed()) as made, rpc.channel(",".join(made.addresses), leads=SCHEDULER) as channel:
        stub = scheduler_service_pb2_grpc.SchedulerServiceStub(channel)
        await made.lead(0)
        await stub.GetJob(pb.GetJobRequest(job_id="j"), timeout=10)
        await made.servers[0].grpc.stop(0)
        made.both[1].leads = True
        assert (await stub.GetJob(pb.GetJobRequest(job_id="j"), timeout=10)).job.owner == "two"
        assert (await stub.CancelJob(pb.CancelJobRequest(job_id="j"), timeout=10)).job.owner == "two"


async def test_both_clients_call_the_leader_of_a_list() -> None:
    async with pair(listed()) as made:
        settings = Settings(scheduler=", ".join(made.addresses), timeout_s=10)
        hasty = Settings(scheduler=", ".join(made.addresses), timeout_s=1)

        def ask(leader: str) -> None:
            with Client(settings) as client:
                assert {client.job("j").owner for _ in range(CALLS)} == {leader}
                assert client.cancel("j").owner == leader
                assert [job.owner for job in client.watch("j")] == [leader]

        for number, leader in ((1, "two"), (0, "one")):
            await made.lead(number)
            await asyncio.to_thread(ask, leader)
            async with AsyncClient(settings) as client:
                assert {(await client.job("j")).owner for _ in range(CALLS)} == {leader}
                assert (await client.cancel("j")).owner == leader
                assert [job.owner async for job in client.watch("j")] == [leader]
        await made.lead(None)
        async with AsyncClient(hasty) as client:
            with pytest.raises(UnreachableError, match="is a standby"):
                await client.job("j")


class NameServer(asyncio.DatagramProtocol):
    """Answers each question for IPv4 with two addresses of this machine, and has none for IPv6."""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        end = data.index(0, 12) + 5
        question, ipv4 = data[12:end], data[end - 4 : end - 2] == b"\0\1"
        answers = [b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 1, 4) + bytes((127, 0, 0, last)) for last in (1, 2)]
        counts = struct.pack("!HHHHH", 0x8580, 1, 2 if ipv4 else 0, 0, 0)
        self._transport.sendto(data[:2] + counts + question + b"".join(answers if ipv4 else []), addr)


async def test_calls_find_the_leader_behind_one_name() -> None:
    port = free_port()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(NameServer, local_addr=("127.0.0.1", 0))
    name = f"dns://127.0.0.1:{transport.get_extra_info('sockname')[1]}/schedulers.test:{port}"
    try:
        async with (
            pair([f"127.0.0.1:{port}", f"127.0.0.2:{port}"]) as made,
            rpc.channel(name, leads=SCHEDULER) as channel,
            AsyncClient(Settings(scheduler=name, timeout_s=10)) as client,
        ):
            stub = scheduler_service_pb2_grpc.SchedulerServiceStub(channel)
            for number, leader in ((0, "one"), (1, "two")):
                await made.lead(None)
                waiting = asyncio.ensure_future(client.job("j"))
                await asyncio.sleep(0.3)
                assert not waiting.done()
                await made.lead(number)
                assert (await waiting).owner == leader
                for _ in range(CALLS):
                    assert (await stub.GetJob(pb.GetJobRequest(job_id="j"), timeout=10)).job.owner == leader
                    assert (await client.job("j")).owner == leader
    finally:
        transport.close()
