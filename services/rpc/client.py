"""Channels between the services, and calls whose requests are a stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

import grpc

from services.rpc.caller import Identity
from services.rpc.server import MAX_MESSAGE_BYTES
from services.rpc.tls import PLAIN, Tls

_SERVICE_CONFIG = {
    "loadBalancingConfig": [{"round_robin": {}}],
    "methodConfig": [
        {
            "name": [{}],
            "waitForReady": True,
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.1s",
                "maxBackoff": "1s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        },
        # A second call of these would do more, or report that the job cannot be cancelled or the thing no longer
        # exists. Uploads are long and left to the caller.
        {
            "name": [
                *(
                    {"service": "touchstone.v1.SchedulerService", "method": method}
                    for method in (
                        "CancelJob",
                        "RetryJob",
                        "DeleteJob",
                        "DeleteSchedule",
                        "CreateWebhook",
                        "DeleteWebhook",
                        "RedeliverWebhook",
                    )
                ),
                {"service": "touchstone.v1.ResultsService", "method": "ImportAnswers"},
                *(
                    {"service": "touchstone.v1.DatasetService", "method": method}
                    for method in ("UploadDataset", "CreateHubDataset", "DeleteDataset")
                ),
            ],
            "waitForReady": True,
        },
    ],
}
Q = TypeVar("Q")
R = TypeVar("R")
T = TypeVar("T")

_CHECK_S = 0.005
_LATE_CHECKS = 400

_Told = tuple[grpc.StatusCode, str, grpc.aio.Metadata]


def channel(address: str, tls: Tls = PLAIN) -> grpc.aio.Channel:
    """A channel that reconnects and retries UNAVAILABLE. `address` may list several servers: a:1,b:2."""
    target = f"ipv4:{address}" if "," in address else address
    options = [
        ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_reconnect_backoff_ms", 1000),
        ("grpc.initial_reconnect_backoff_ms", 100),
    ]
    credentials = tls.channel_credentials()
    if credentials is None:
        return grpc.aio.insecure_channel(target, options=options)
    return grpc.aio.secure_channel(target, credentials, options=options)


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
