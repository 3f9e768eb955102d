"""What a receiver is told, and how it knows that we said it. Pure."""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid
from datetime import UTC

from google.protobuf.timestamp_pb2 import Timestamp

from services.words.jobs import WEBHOOK_EVENTS
from touchstone.v1 import job_pb2, webhook_pb2

_NAMESPACE = uuid.UUID("5e1a8c52-6c2f-4d56-9a39-0a4d6f0f8f0e")


def event_name(event: job_pb2.JobEvent) -> str:
    """The event's name for receivers; empty for one that nobody is told of."""
    name = f"job.{event.action}"
    return name if name in WEBHOOK_EVENTS else ""


def delivery(event: job_pb2.JobEvent, url: str, webhook_id: str) -> webhook_pb2.Delivery:
    """The call about an event. The same event and webhook give the same id, however often they come."""
    delivery_id = str(uuid.uuid5(_NAMESPACE, f"{event.event_id}/{webhook_id}"))
    name = event_name(event)
    return webhook_pb2.Delivery(
        delivery_id=delivery_id,
        webhook_id=webhook_id,
        owner=event.job.owner,
        url=url,
        event=name,
        job_id=event.job.job_id,
        body=_body(name, delivery_id, event.job),
    )


def _body(event: str, delivery_id: str, job: job_pb2.Job) -> str:
    told = {
        "event": event,
        "delivery_id": delivery_id,
        "job": {
            "job_id": job.job_id,
            "status": event.removeprefix("job."),
            "model_name": job.spec.model,
            "benchmark_suite": job.spec.suite.suite or job.spec.dataset.dataset_id or job.spec.experiment.experiment,
            "project_id": job.spec.project_id,
            "owner": job.owner,
            "created_at": _iso(job.created_at),
            "completed_at": _iso(job.finished_at),
            "error": job.reason or None,
        },
    }
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def _iso(stamp: Timestamp) -> str:
    return stamp.ToDatetime(tzinfo=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def headers(delivery: webhook_pb2.Delivery, secret: str, now: float) -> dict[str, str]:
    """What a try at `now` carries beside the body."""
    moment = str(int(now))
    return {
        "Content-Type": "application/json",
        "Touchstone-Event": delivery.event,
        "Touchstone-Delivery": delivery.delivery_id,
        "Touchstone-Timestamp": moment,
        "Touchstone-Signature": f"v1={signature(secret, moment, delivery.body)}",
    }


def signature(secret: str, timestamp: str, body: str) -> str:
    """HMAC-SHA256 over timestamp, a point and the raw body, in hex."""
    return hmac.new(secret.encode(), f"{timestamp}.{body}".encode(), hashlib.sha256).hexdigest()


def job_secret(installation_key: bytes, owner: str) -> str:
    """The key of calls to the URLs that a user's jobs name: one for all of them, derived, so that it is never stored
    and is the same after any restart."""
    return hmac.new(installation_key, b"webhook_url\0" + owner.encode(), hashlib.sha256).hexdigest()
