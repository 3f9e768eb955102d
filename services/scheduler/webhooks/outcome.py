"""What follows from a try. Pure: the caller brings the clock and the dice."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

from services.scheduler.jobs.job import stamp
from services.scheduler.settings import WebhookSettings
from touchstone.v1 import webhook_pb2

_LATER = frozenset({408, 425, 429})
"""The only refusals that may end by themselves."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a try met: a status, or 0 and a `problem`. `final`: no other try would end otherwise."""

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
    """Seconds that a Retry-After header asks for (RFC 9110, 10.2.3); 0 for none that can be read."""
    text = header.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return 0.0
    return max(0.0, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now)
