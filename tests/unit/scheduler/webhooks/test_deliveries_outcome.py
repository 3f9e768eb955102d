"""What a call came to, and when it is tried again."""

from __future__ import annotations

import random

import pytest

from services.scheduler.settings import WebhookSettings
from services.scheduler.webhooks import deliveries
from services.scheduler.webhooks.deliveries import Answer
from tests.unit.scheduler.fakes import ALICE
from tests.unit.scheduler.webhook_fakes import Calls, ended

URL = "https://hooks.example.com/a"


@pytest.mark.parametrize(("status", "tries"), [(400, 1), (404, 1), (410, 1), (408, 8), (429, 8), (302, 8), (503, 8)])
async def test_refusals_for_good_are_dead_at_once_and_others_are_tried_again(status: int, tries: int) -> None:
    calls = Calls()
    calls.caller.answer = lambda url, number: Answer(status)
    await calls.desk.create(ALICE, URL, [], 0)
    await calls.fanout.take(ended())
    await calls.settle()
    assert len(calls.caller.calls) == tries


def test_waits_double_to_about_an_hour_and_heed_retry_after() -> None:
    settings, dice = WebhookSettings(), random.Random(1)
    waits = [deliveries.wait_s(tries, Answer(500), settings, dice) for tries in range(1, 8)]
    assert 0.8 * 3600 <= sum(waits) <= 1.2 * 3600
    assert waits == sorted(waits)
    assert deliveries.wait_s(1, Answer(429, retry_after_s=120), settings, dice) == 120
    assert deliveries.wait_s(1, Answer(429, retry_after_s=10**9), settings, dice) == 3600


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7),
        ("Fri, 20 Nov 2026 10:00:30 GMT", 30),
        ("", 0),
        ("soon", 0),
        ("-5", 0),
        ("٣", 0),
        ("9" * 400, 999_999_999),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str, seconds: float) -> None:
    assert deliveries.retry_after_s(header, 1_795_168_800.0) == seconds
