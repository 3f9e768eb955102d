"""Channels between the services."""

from __future__ import annotations

import json

import grpc

from services.rpc.caller import Identity
from services.rpc.server import MAX_MESSAGE_BYTES

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
        # Done twice, these would answer that the job cannot be cancelled or retried any more.
        {
            "name": [
                {"service": "touchstone.v1.SchedulerService", "method": "CancelJob"},
                {"service": "touchstone.v1.SchedulerService", "method": "RetryJob"},
            ],
            "waitForReady": True,
        },
    ],
}


def channel(address: str) -> grpc.aio.Channel:
    """A channel that reconnects and retries UNAVAILABLE. `address` may list several servers: a:1,b:2."""
    target = f"ipv4:{address}" if "," in address else address
    return grpc.aio.insecure_channel(
        target,
        options=[
            ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_reconnect_backoff_ms", 1000),
            ("grpc.initial_reconnect_backoff_ms", 100),
        ],
    )


def metadata(service_token: str, caller: Identity | None = None) -> tuple[tuple[str, str], ...]:
    """Call metadata of a service, on behalf of `caller` when given."""
    pairs: list[tuple[str, str]] = []
    if service_token:
        pairs.append(("authorization", f"Bearer {service_token}"))
    if caller is not None:
        pairs += [("touchstone-user", caller.user), ("touchstone-role", "admin" if caller.is_admin else "user")]
    return tuple(pairs)
