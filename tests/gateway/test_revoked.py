"""A revoked token ends what it has begun within five seconds; others' streams go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import grpc
import httpx

from deploy.local.ports import free_port
from services import bus, rpc
from services.gateway.access import tokens
from tests.gateway import fake_services
from tests.gateway.fake_world import World, spec
from tests.gateway.test_access import with_tokens
from tests.nats_server import NatsServer
from touchstone.v1 import scheduler_service_pb2, scheduler_service_pb2_grpc

BASE = "/api/v1/benchmarking"
DEADLINE_S = 30.0
WITHIN_S = 5.0


async def test_pages_waits_and_uploads_of_a_revoked_token_end(nats: NatsServer) -> None:
    async with with_tokens(nats) as (gateway, nats_bus):
        gone = {"X-API-Key": await tokens.create(nats_bus, "alice", "user", "a")}
        kept = {"X-API-Key": await tokens.create(nats_bus, "bob", "user", "b")}
        job = gateway.world.add(spec(), "alice")
        begun: asyncio.Queue[None] = asyncio.Queue()

        async def drips() -> AsyncIterator[bytes]:
            begun.put_nowait(None)
            # It is answered before: this client reads the answer when it has sent all.
            for _ in range(30):
                yield b'{"prompt": "x"}\n'
                await asyncio.sleep(0.1)

        async def stream(path: str, headers: dict[str, str]) -> None:
            async with gateway.client.stream("GET", path, headers=headers) as answer:
                assert answer.status_code == 200
                begun.put_nowait(None)
                async for _ in answer.aiter_bytes():
                    pass

        async def waits() -> int:
            begun.put_nowait(None)
            return (await gateway.client.get(f"{BASE}/results/{job.job_id}?wait=60", headers=gone)).status_code

        async def uploads() -> int:
            url = "/admin/datasets/upload?name=a.jsonl"
            headers = gone | {"Content-Type": "application/jsonl"}
            return (await gateway.client.post(url, content=drips(), headers=headers)).status_code

        async def ends(work: Coroutine[Any, Any, Any]) -> Any:
            try:
                return await work
            except httpx.RemoteProtocolError:
                return "broken off"

        events = f"{BASE}/results/{job.job_id}/events"
        works = [stream(events, gone), stream(f"/events?job={job.job_id}", gone), waits(), uploads()]
        tasks = [asyncio.create_task(ends(work)) for work in works]
        other = asyncio.create_task(stream(events, kept))
        for _ in range(5):
            await asyncio.wait_for(begun.get(), DEADLINE_S)
        await asyncio.sleep(0.3)
        assert not any(task.done() for task in tasks), [task.result() for task in tasks if task.done()]
        await tokens.revoke(nats_bus, "a")
        found = await asyncio.wait_for(asyncio.gather(*tasks), DEADLINE_S)
        assert found == ["broken off", "broken off", 401, 401]
        assert not other.done(), "another's stream goes on"
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)


async def test_a_watch_over_grpc_ends_with_its_token(nats: NatsServer) -> None:
    nats_bus = await bus.connect(nats.url, "test")
    await nats_bus.ensure(64 * 1024 * 1024)
    token = await tokens.create(nats_bus, "alice", "user", "a")
    world = World()
    job = world.add(spec(), "alice")
    register = scheduler_service_pb2_grpc.add_SchedulerServiceServicer_to_server
    served = [(register, fake_services.Scheduler(world), "touchstone.v1.SchedulerService")]
    authenticate = rpc.Authenticator(nats_bus.token, "service-secret")
    address = f"127.0.0.1:{free_port()}"
    async with rpc.serve(address, authenticate, served, grace_s=0.1), grpc.aio.insecure_channel(address) as channel:
        stub = scheduler_service_pb2_grpc.SchedulerServiceStub(channel)
        request = scheduler_service_pb2.WatchJobRequest(job_id=job.job_id)
        watching = stub.WatchJob(request, metadata=(("authorization", f"Bearer {token}"),))
        first: Any = await watching.read()
        assert first.job.job_id == job.job_id
        await tokens.revoke(nats_bus, "a")
        assert await asyncio.wait_for(watching.code(), DEADLINE_S) == grpc.StatusCode.UNAUTHENTICATED
    await nats_bus.close()


def test_what_is_checked_and_remembered_leaves_five_seconds() -> None:
    from services.gateway.access.auth import TokenCache
    from services.rpc.caller import CHECK_S

    cache = TokenCache(lambda digest: None)  # type: ignore[arg-type, return-value]
    assert cache._ttl_s + CHECK_S < WITHIN_S
