"""What synchronous and asynchronous channels share: services, methods, retries, credentials."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from services.words.addresses import Search, leader_of, silent
from touchstone.v1 import dataset_service_pb2, results_service_pb2, scheduler_service_pb2
from touchstone_client.settings import SYSTEM_CA, Settings

C = TypeVar("C")

log = logging.getLogger("touchstone_client")


@dataclass(frozen=True, slots=True)
class Service:
    """A public gRPC service. `variable` is where users set its address."""

    name: str
    variable: str

    def address(self, settings: Settings) -> str:
        return settings.scheduler if self is SCHEDULER else settings.results


SCHEDULER = Service("touchstone.v1.SchedulerService", "TOUCHSTONE_SCHEDULER")
RESULTS = Service("touchstone.v1.ResultsService", "TOUCHSTONE_RESULTS")
DATASETS = Service("touchstone.v1.DatasetService", "TOUCHSTONE_RESULTS")
SERVICES = (SCHEDULER, RESULTS, DATASETS)


@dataclass(frozen=True, slots=True)
class Method:
    service: Service
    path: str


# Each method has its own request message (a rule of the protos), so the request determines the method.
_METHODS = {
    method.input_type.full_name: Method(service, f"/{service.name}/{method.name}")
    for service, file in (
        (SCHEDULER, scheduler_service_pb2.DESCRIPTOR),
        (RESULTS, results_service_pb2.DESCRIPTOR),
        (DATASETS, dataset_service_pb2.DESCRIPTOR),
    )
    for method in file.services_by_name[service.name.rpartition(".")[2]].methods
}

ONCE = (
    "CancelJob",
    "RetryJob",
    "DeleteJob",
    "DeleteSchedule",
    "CreateWebhook",
    "DeleteWebhook",
    "RedeliverWebhook",
    "ImportAnswers",
    "DeleteRecordedRun",
    "UploadDataset",
    "PreviewDataset",
    "CreateHubDataset",
    "DeleteDataset",
)
"""Calls that are not repeated: a second one would do more, or report that there is nothing left to do. Uploads are long
and left to the caller. Creates with a request id may be repeated."""


def options(address: str, service: Service, *, listed: bool) -> list[tuple[str, Any]]:
    """Of a channel to one address. `listed`: there are others, which are tried in place of this one again."""
    leader = leader_of(address, service.name) if service is SCHEDULER else {}
    # While no server behind the name leads, calls wait.
    wait = {"waitForReady": True} if leader and not listed else {}
    config = {
        **leader,
        "methodConfig": [
            {
                "name": [{}],
                **wait,
                "retryPolicy": {
                    "maxAttempts": 5,
                    "initialBackoff": "0.1s",
                    "maxBackoff": "1s",
                    "backoffMultiplier": 2,
                    "retryableStatusCodes": ["UNAVAILABLE"],
                },
            },
            {"name": [{"service": s.name, "method": method} for s in SERVICES for method in ONCE], **wait},
        ],
    }
    made: list[tuple[str, Any]] = [
        ("grpc.service_config", json.dumps(config)),
        # A watch of a waiting job may receive nothing for hours: without these a vanished host would never be noticed.
        ("grpc.keepalive_time_ms", 11_000),
        ("grpc.keepalive_timeout_ms", 4_000),
        ("grpc.max_reconnect_backoff_ms", 2_000),
        ("grpc.initial_reconnect_backoff_ms", 100),
    ]
    # A host that is cut off is given up after 2 s in place of 20.
    return made + ([("grpc.enable_retries", 0), ("grpc.min_reconnect_backoff_ms", 2000)] if listed else [])


def search(order: list[C], method: Method, timeout_s: float | None) -> Search[C]:
    """The way of one call through the channels to the addresses of its service."""
    return Search(order, timeout_s, once=method.path.rpartition("/")[2] in ONCE)


def may_copy(method: Method, error: Any) -> bool:
    """Whether the results' copy may be asked, after gRPC's error of a call: the service is away. It refuses what is not
    only read."""
    answered = any(key == "grpc-status-details-bin" for key, _ in error.trailing_metadata() or ())
    return method.service is not SCHEDULER and silent(error) and not answered


def tell_age(as_of: str) -> None:
    """Warns of figures that are not of now."""
    log.warning("The results service does not answer. Figures are from %s.", as_of)


def method_of(request: Message) -> Method:
    """The method that takes this request."""
    return _METHODS[request.DESCRIPTOR.full_name]


def credentials(settings: Settings) -> grpc.ChannelCredentials | None:
    """None without TLS. Raises OSError for a file that cannot be read."""
    if not settings.tls_ca:
        return None
    roots = None if settings.tls_ca == SYSTEM_CA else Path(settings.tls_ca).read_bytes()
    if not settings.tls_client_cert:
        return grpc.ssl_channel_credentials(roots)
    key, chain = Path(settings.tls_client_key).read_bytes(), Path(settings.tls_client_cert).read_bytes()
    return grpc.ssl_channel_credentials(roots, key, chain)
