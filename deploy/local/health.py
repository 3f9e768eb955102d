"""Whether a process does its work, asked the way each of them answers."""

from __future__ import annotations

import grpc
import httpx
from grpc_health.v1 import health_pb2, health_pb2_grpc

from deploy.local.supervisor import Probe

TIMEOUT_S = 2.0


def http(url: str) -> Probe:
    """Ready when a GET answers 200."""

    async def ready() -> bool:
        try:
            async with httpx.AsyncClient(trust_env=False, timeout=TIMEOUT_S) as client:
                return (await client.get(url)).status_code == 200
        except httpx.HTTPError:
            return False

    return ready


def grpc_health(address: str, credentials: grpc.ChannelCredentials | None = None) -> Probe:
    """Ready when the standard health service says SERVING. With `credentials` over TLS."""

    async def ready() -> bool:
        # A channel of its own each time: a kept one would wait out its own reconnect backoff.
        if credentials is None:
            made = grpc.aio.insecure_channel(address)
        else:
            made = grpc.aio.secure_channel(address, credentials)
        async with made as channel:
            request = health_pb2.HealthCheckRequest()
            try:
                answer = await health_pb2_grpc.HealthStub(channel).Check(request, timeout=TIMEOUT_S)
            except grpc.aio.AioRpcError:
                return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    return ready
