"""A delivery: the message to a receiver, its signature, and what follows from an attempt.

Pure: the caller brings the clock and the dice.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import random
import uuid
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from google.protobuf.timestamp_pb2 import Timestamp

from services.scheduler.jobs.job import stamp
from services.words import digests
from services.words.decisions import names, said_of, specs_of
from services.words.enums import DECISION_VERDICTS, WATCH_SIGNALS
from services.words.jobs import DECISION_ENDED, DIGEST_WEEKLY, WATCH_ALARM, WEBHOOK_EVENTS
from services.words.watches import said
from touchstone.v1 import decision_pb2, digest_pb2, job_pb2, watch_pb2, webhook_pb2

if TYPE_CHECKING:
    from services.scheduler.settings import WebhookSettings

About = watch_pb2.Watch | decision_pb2.Decision
"""What a call may be about, in addition to its job."""

_NAMESPACE = uuid.UUID("5e1a8c52-6c2f-4d56-9a39-0a4d6f0f8f0e")


def event_name(event: job_pb2.JobEvent) -> str:
    """The event's name for receivers; empty for an event without calls."""
    name = f"job.{event.action}"
    return name if name in WEBHOOK_EVENTS else ""


def delivery(event: job_pb2.JobEvent, url: str, webhook_id: str, about: About | None = None) -> webhook_pb2.Delivery:
    """The call about an event, or about a watch whose alarm the job has raised, or a decision that ended with it. The
    same event and webhook give the same id, however often they come."""
    name = event_name(event)
    if about is not None:
        name = WATCH_ALARM if isinstance(about, watch_pb2.Watch) else DECISION_ENDED
    key = f"{event.event_id}/{webhook_id}" + ("" if about is None else f"/{name}")
    delivery_id = str(uuid.uuid5(_NAMESPACE, key))
    return webhook_pb2.Delivery(
        delivery_id=delivery_id,
        webhook_id=webhook_id,
        owner=event.job.owner,
        url=url,
        event=name,
        job_id=event.job.job_id,
        body=_body(name, delivery_id, event, about),
    )


def digest_id(webhook_id: str, end: Timestamp) -> str:
    """The id of a webhook's delivery with the digest of the time that ends then."""
    return str(uuid.uuid5(_NAMESPACE, f"{DIGEST_WEEKLY}/{webhook_id}/{end.ToSeconds()}"))


def of_digest(digest: digest_pb2.Digest, webhook: webhook_pb2.Webhook) -> webhook_pb2.Delivery:
    """The call with a digest."""
    delivery_id = digest_id(webhook.webhook_id, digest.end_at)
    told = {"event": DIGEST_WEEKLY, "delivery_id": delivery_id, "digest": digests.body(digest)}
    return webhook_pb2.Delivery(
        delivery_id=delivery_id,
        webhook_id=webhook.webhook_id,
        owner=webhook.owner,
        url=webhook.url,
        event=DIGEST_WEEKLY,
        body=_json(told),
    )


def _body(name: str, delivery_id: str, event: job_pb2.JobEvent, about: About | None) -> str:
    job = event.job
    told: dict[str, Any] = {
        "event": name,
        "delivery_id": delivery_id,
        "job": {
            "job_id": job.job_id,
            "status": event_name(event).removeprefix("job."),
            "model_name": job.spec.model,
            "benchmark_suite": job.spec.suite.suite or job.spec.dataset.dataset_id or job.spec.experiment.experiment,
            "experiment": job.spec.experiment_name or None,
            "judged_job": job.spec.judging.job_id or None,
            "project_id": job.spec.project_id,
            "owner": job.owner,
            "created_at": _iso(job.created_at),
            "completed_at": _iso(job.finished_at),
            "error": job.reason or None,
        },
    }
    if isinstance(about, watch_pb2.Watch):
        told["watch"] = _alarm(about)
    elif about is not None:
        told["decision"] = _decision(about)
    return _json(told)


def _json(told: dict[str, Any]) -> str:
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def _alarm(watch: watch_pb2.Watch) -> dict[str, Any]:
    return {
        "schedule_id": watch.schedule_id,
        "reference_job_id": watch.reference_job_id,
        "raised_by": WATCH_SIGNALS.of(watch.raised_by),
        "said": said(watch),
        "since": _iso(watch.since_at),
        "since_job_id": watch.since_job_id,
        "asked": watch.asked,
        "served_models": [one.model for one in watch.served],
        "changed_items": [
            {
                "job_id": one.job_id,
                "task": one.task,
                "item": one.item,
                "answer_before": one.answer_before,
                "answer_now": one.answer_now,
                "score_before": one.score_before if one.HasField("score_before") else None,
                "score_now": one.score_now if one.HasField("score_now") else None,
            }
            for one in watch.changes
        ],
    }


def _decision(found: decision_pb2.Decision) -> dict[str, Any]:
    """As REST gives it, as far as it is there."""
    side, saved, specs = found.baseline.spec.deciding, found.saved, specs_of(found)
    called = names(specs)
    return {
        "decision_id": found.decision_id,
        "schedule_id": found.baseline.spec.schedule_id or None,
        "models": called,
        "verdict": DECISION_VERDICTS.of(found.verdict) or None,
        "words": f"{said_of(found, called)}.",
        "decided_at": found.decided_at or None,
        "pairs": found.pairs,
        "items_total": found.items_total,
        "difference": found.difference if found.HasField("difference") else None,
        "interval": [found.low, found.high] if found.HasField("low") and found.HasField("high") else None,
        "error": side.error,
        "margin": side.margin,
        "saved": {
            "items": saved.items,
            "tokens": saved.tokens if saved.HasField("tokens") else None,
            "cost_usd": saved.cost_usd if saved.HasField("cost_usd") else None,
            "seconds": saved.seconds,
        },
    }


def _iso(stamp: Timestamp) -> str:
    return stamp.ToDatetime(tzinfo=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def headers(delivery: webhook_pb2.Delivery, secret: str, now: float) -> dict[str, str]:
    """The headers of a try at `now`."""
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


_LATER = frozenset({408, 425, 429})
"""The only refusals that may be temporary."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a try: a status, or 0 and a `problem`. `final`: every other try would end in the same way."""

    status: int = 0
    problem: str = ""
    retry_after_s: float = 0.0
    final: bool = False

    @property
    def delivered(self) -> bool:
        return 200 <= self.status < 300

    @property
    def hopeless(self) -> bool:
        return self.final or (400 <= self.status < 500 and self.status not in _LATER)


def wait_s(tries: int, answer: Answer, settings: WebhookSettings, dice: random.Random) -> float:
    """Seconds from failed try number `tries` to the next: doubling, so that all together take about `span_s`, or as
    long as the receiver asks for, at most `span_s`."""
    first = settings.span_s / (2.0 ** max(1, settings.tries - 1) - 1)
    wait = first * 2.0 ** (min(tries, settings.tries) - 1) * dice.uniform(0.8, 1.2)
    return max(wait, min(answer.retry_after_s, settings.span_s))


def after(
    delivery: webhook_pb2.Delivery, answer: Answer, settings: WebhookSettings, now: float, dice: random.Random
) -> webhook_pb2.Delivery:
    """The delivery after a try that failed: with its next time, or given up."""
    left = webhook_pb2.Delivery()
    left.CopyFrom(delivery)
    left.tries += 1
    left.problem = answer.problem or f"status {answer.status}"
    stamp(left.last_try_at, now)
    left.ClearField("next_try_at")
    if not answer.hopeless and left.tries < settings.tries:
        stamp(left.next_try_at, now + wait_s(left.tries, answer, settings, dice))
    return left


def retry_after_s(header: str, now: float) -> float:
    """Seconds that a Retry-After header asks for (RFC 9110, 10.2.3); 0 without a readable one."""
    text = header.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return 0.0
    return max(0.0, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now)
