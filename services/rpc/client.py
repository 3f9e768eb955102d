"""Channels between the services, and calls whose requests are a stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Mapping
from typing import Any, TypeVar

import grpc

from services.rpc.addresses import Balanced
from services.rpc.caller import Identity
from services.rpc.server import MAX_MESSAGE_BYTES
from services.rpc.tls import PLAIN, Tls
from services.words.addresses import leader_of, split

ONCE = {
    "touchstone.v1.SchedulerService": (
        "CancelJob",
        "RetryJob",
        "DeleteJob",
        "DeleteSchedule",
        "CreateWebhook",
        "DeleteWebhook",
        "RedeliverWebhook",
    ),
    "touchstone.v1.ResultsService": ("ImportAnswers",),
    "touchstone.v1.DatasetService": ("UploadDataset", "CreateHubDataset", "DeleteDataset"),
}
"""A second call of these would do more, or report that the job cannot be cancelled or the thing no longer exists.
Uploads are long and left to the caller."""


def _service_config(wait_for_ready: bool, leader: Mapping[str, Any]) -> str:
    once = [{"service": service, "method": method} for service, methods in ONCE.items() for method in methods]
    config: dict[str, Any] = {
        "loadBalancingConfig": [{"round_robin": {}}],
        **leader,
        "methodConfig": [
            {
                "name": [{}],
                "waitForReady": wait_for_ready,
                "retryPolicy": {
                    "maxAttempts": 5,
                    "initialBackoff": "0.1s",
                    "maxBackoff": "1s",
                    "backoffMultiplier": 2,
                    "retryableStatusCodes": ["UNAVAILABLE"],
                },
            },
            {"name": once, "waitForReady": wait_for_ready},
        ],
    }
    return json.dumps(config)


Q = TypeVar("Q")
R = TypeVar("R")
T = TypeVar("T")

_CHECK_S = 0.005
_LATE_CHECKS = 400

_Told = tuple[grpc.StatusCode, str, grpc.aio.Metadata]


def channel(address: str, tls: Tls = PLAIN, leads: str = "", *, patient: bool = True) -> grpc.aio.Channel:
    """A channel that reconnects. If `patient`, it waits for a server and retries UNAVAILABLE.

    `address` is host:port; a name of several servers, as dns:///host:port; or several of both, separated
    by commas: see `services.rpc.addresses`. `leads` is the full name of a service that only one of them answers.
    """
    listed = split(address)
    if len(listed) > 1:
        return Balanced([_one(one, tls, leads, listed=True) for one in listed], ONCE)
    return _one(address, tls, leads, listed=not patient)


def _one(address: str, tls: Tls, leads: str, *, listed: bool) -> grpc.aio.Channel:
    leader = leader_of(address, leads) if leads else {}
    options = [
        ("grpc.service_config", _service_config(not listed, leader)),
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_reconnect_backoff_ms", 1000),
        ("grpc.initial_reconnect_backoff_ms", 100),
        # A host that is cut off is noticed only this way. Servers accept a ping every 10 s.
        ("grpc.keepalive_time_ms", 11_000),
        ("grpc.keepalive_timeout_ms", 3_000),
    ]
    if listed:
        # Another server is tried instead, at once; and `Balanced` does not wait 20 s for a host that is cut off.
        options += [("grpc.enable_retries", 0), ("grpc.min_reconnect_backoff_ms", 2000)]
    credentials = tls.channel_credentials()
    if credentials is None:
        return grpc.aio.insecure_channel(address, options=options)
    return grpc.aio.secure_channel(address, credentials, options=options)


def metadata(service_token: str, caller: Identity | None = None) -> tuple[tuple[str, str], ...]:
    """Call metadata of a service, on behalf of `caller` when given."""
    pairs: list[tuple[str, str]] = []
    if service_token:
        pairs.append(("authorization", f"Bearer {service_token}"))
    if caller is not None:
        pairs += [("touchstone-user", caller.user), ("touchstone-role", "admin" if caller.is_admin else "user")]
    return tuple(pairs)


async def send(call: grpc.aio.StreamUnaryCall[Q, R], requests: AsyncIterator[Q]) -> R:
    """Writes the requests at the server's pace and returns its answer.

    A server may refuse before it has read everything: then `requests` is no longer read. Raises AioRpcError with the
    server's own status; an error of `requests` cancels the call and is raised.
    """
    # A write that a refusal interrupts fails as INTERNAL, a moment before or after the refusal is known, and the later
    # of the two hides the other. So the first is noted when it comes.
    told: list[_Told] = []
    call.add_done_callback(lambda call: told.append(_status(call)))
    try:
        async for request in requests:
            await call.write(request)
        await call.done_writing()
        return await call
    except asyncio.InvalidStateError:
        # The call was over before this write; its status says how.
        return await call
    except grpc.aio.AioRpcError as error:
        code, details, trailing = await _refusal(call, told)
        raise grpc.aio.AioRpcError(code, error.initial_metadata(), trailing, details=details) from error
    finally:
        call.cancel()


async def _refusal(call: grpc.aio.StreamUnaryCall[Q, R], told: list[_Told]) -> _Told:
    """The first status unless that is INTERNAL, else the one that replaces it."""
    for _ in range(_LATE_CHECKS):
        for status in (*told, _status(call)):
            if status[0] != grpc.StatusCode.INTERNAL:
                return status
        await asyncio.sleep(_CHECK_S)
    return _status(call)


def _status(call: grpc.aio.StreamUnaryCall[Q, R]) -> _Told:
    """Of a call that is over."""
    return _known(call.code()), _known(call.details()), _known(call.trailing_metadata())


def _known(value: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits."""
    try:
        value.send(None)
    except StopIteration as done:
        found: T = done.value
        return found
    value.close()
    raise RuntimeError("a call that has ended does not know its status")
