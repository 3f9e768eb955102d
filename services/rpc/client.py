"""Channels between the services."""

from __future__ import annotations

import json

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
