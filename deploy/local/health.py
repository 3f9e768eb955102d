"""The health of each process, checked in its own way."""

from __future__ import annotations

import re
import socket
import ssl
from pathlib import Path

import grpc
import httpx
from grpc_health.v1 import health_pb2, health_pb2_grpc

from deploy.local.pulse import State
from deploy.local.settings import LaunchError
from deploy.local.supervisor import Probe
from deploy.local.watching import Look
from services.bus.room import cannot_write

TIMEOUT_S = 2.0
# NATS escapes the sign between account and stream.
_UNOPENED = re.compile(r"stream '\S+ (?:>|\\u003e) (\w+)' could not be recovered")
SCHEDULER = "touchstone.v1.SchedulerService"
"""Its health says whether a scheduler leads; that of the process also holds for a standby."""
_NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For addresses without TLS: to load all authorities for each look took 6 % of a core at rest."""
_SILENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


def http(url: str) -> Probe:
    """Ready when a GET answers 200."""

    async def ready() -> bool:
        async with client() as asking:
            answer = await _get(asking, url)
        return answer is not None and answer.status_code == 200

    return ready


def http_life(url: str) -> Look:
    """For a server that needs others: any answer to a GET shows that it is alive."""
    asking = client()

    async def look() -> State:
        answer = await _get(asking, url)
        if answer is None:
            return State.SILENT
        return State.WELL if answer.status_code == 200 else State.WAITING

    return look


def nats_ready(url: str, port: int, state_dir: Path) -> Probe:
    """Ready when a GET answers 200. Raises LaunchError when a stream cannot be opened, which a restart does not fix."""

    async def ready() -> bool:
        async with client() as asking:
            answer = await _get(asking, url)
        if answer is None or answer.status_code == 200:
            return answer is not None
        # While streams are opened one by one, those still to come look the same; clients are admitted afterwards.
        if (found := _UNOPENED.search(answer.text)) and _accepts(port):
            raise LaunchError(
                f"The stream {found[1]} in {state_dir / 'nats'} is damaged, and NATS cannot open it. "
                f"Run `touchstone restore BACKUP --state-dir {state_dir}` with a backup, or "
                f"`touchstone repair --state-dir {state_dir}` without one. Both keep the damaged files."
            )
        return False

    return ready


def nats_life(url: str) -> Look:
    """For NATS, which needs no other process: an answer other than 200 says what is wrong with it."""
    asking = client()

    async def look() -> State:
        answer = await _get(asking, url)
        if answer is None:
            return State.SILENT
        if answer.status_code == 200:
            return State.WELL
        return State.NO_ROOM if cannot_write(answer.text) else State.ILL

    return look


def grpc_health(address: str, credentials: grpc.ChannelCredentials | None = None, service: str = "") -> Probe:
    """Ready when the standard health service says SERVING of a service, or of the whole process. With `credentials`
    over TLS."""
    look = grpc_life(address, credentials, service)

    async def ready() -> bool:
        return await look() is State.WELL

    return ready


def grpc_life(address: str, credentials: grpc.ChannelCredentials | None = None, service: str = "") -> Look:
    """By the standard health service: any answer shows that the server is alive. With `credentials` over TLS."""

    async def look() -> State:
        # A new channel each time: a kept one would first wait for its reconnect backoff.
        if credentials is None:
            made = grpc.aio.insecure_channel(address)
        else:
            made = grpc.aio.secure_channel(address, credentials)
        async with made as channel:
            request = health_pb2.HealthCheckRequest(service=service)
            try:
                answer = await health_pb2_grpc.HealthStub(channel).Check(request, timeout=TIMEOUT_S)
            except grpc.aio.AioRpcError as error:
                return State.SILENT if error.code() in _SILENT else State.WAITING
        return State.WELL if answer.status == health_pb2.HealthCheckResponse.SERVING else State.WAITING

    return look


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), TIMEOUT_S).close()
    except OSError:
        return False
    return True


def client(timeout_s: float = TIMEOUT_S) -> httpx.AsyncClient:
    """For servers of this machine, which answer without TLS."""
    return httpx.AsyncClient(trust_env=False, timeout=timeout_s, verify=_NO_AUTHORITIES)


async def _get(asking: httpx.AsyncClient, url: str) -> httpx.Response | None:
    try:
        return await asking.get(url)
    except httpx.HTTPError:
        return None
