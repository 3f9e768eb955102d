"""The body of a call, and its signature."""

from __future__ import annotations

import hashlib
import hmac
import json

from tests.unit.scheduler.fakes import ALICE
from tests.unit.scheduler.webhook_fakes import Calls, ended

URL = "https://hooks.example.com/a"


async def test_the_body_tells_of_the_job_and_the_signature_is_over_time_and_body() -> None:
    calls = Calls()
    made = await calls.desk.create(ALICE, URL, [], 0)
    await calls.fanout.take(ended("failed", project_id=3))
    await calls.settle()
    ((_, headers, body),) = calls.caller.calls
    assert json.loads(body) == {
        "event": "job.failed",
        "delivery_id": headers["Touchstone-Delivery"],
        "job": {
            "job_id": "j1",
            "status": "failed",
            "model_name": "m",
            "benchmark_suite": "demo",
            "experiment": None,
            "judged_job": None,
            "project_id": 3,
            "owner": "alice",
            "created_at": "2026-11-20T10:00:00.500Z",
            "completed_at": "2026-11-20T10:01:00.000Z",
            "error": "It broke.",
        },
    }
    assert headers["Touchstone-Event"] == "job.failed"
    assert headers["Touchstone-Timestamp"] == "1000000"
    expected = hmac.new(made.secret.encode(), b"1000000." + body, hashlib.sha256).hexdigest()
    assert headers["Touchstone-Signature"] == f"v1={expected}"


async def test_a_jobs_own_url_is_signed_with_the_one_key_of_its_owner() -> None:
    calls = Calls()
    await calls.fanout.take(ended(url=URL))
    await calls.settle()
    ((_, headers, body),) = calls.caller.calls
    secret = await calls.desk.job_secret("alice")
    expected = hmac.new(secret.encode(), b"1000000." + body, hashlib.sha256).hexdigest()
    assert headers["Touchstone-Signature"] == f"v1={expected}"
    assert await calls.desk.job_secret("bob") != secret
