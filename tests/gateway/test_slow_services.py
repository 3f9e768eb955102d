"""A slow service is waited for, a silent one is not; and every refusal says when to come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from services.errors import BusyError, LimitReachedError, UnavailableError
from services.gateway.settings import Settings
from tests.gateway import fake_services
from tests.gateway.gateway_server import Running, running

BASE = "/api/v1/benchmarking"


class Behaviour:
    """What the results service does when it is asked for an overview; `asked` counts."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.pause_s = 0.0
        self.asked = 0


@pytest.fixture
async def impatient(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Running, Behaviour]]:
    behaviour, whole = Behaviour(), fake_services.Results.GetOverview

    async def overview(self: Any, request: Any, context: Any) -> Any:
        behaviour.asked += 1
        await asyncio.sleep(behaviour.pause_s)
        if behaviour.error is not None:
            raise behaviour.error
        return await whole(self, request, context)

    monkeypatch.setattr(fake_services.Results, "GetOverview", overview)
    async with running(settings=Settings(requests_per_minute=10_000, call_timeout_s=1)) as gateway:
        yield gateway, behaviour


async def test_an_answer_that_takes_longer_than_a_silence_comes(impatient: tuple[Running, Behaviour]) -> None:
    gateway, behaviour = impatient
    behaviour.pause_s = 3
    answer = await gateway.client.get(f"{BASE}/overview")
    assert (answer.status_code, behaviour.asked) == (200, 1), answer.text


async def test_a_service_that_hears_nothing_is_silent(impatient: tuple[Running, Behaviour]) -> None:
    gateway, _ = impatient
    await gateway.stop_service("results")
    answer = await asyncio.wait_for(gateway.client.get(f"{BASE}/overview"), 60)
    assert answer.status_code == 503
    assert answer.json()["detail"].startswith("The results service does not answer.")
    assert int(answer.headers["Retry-After"]) == answer.json()["retry_after"] > 0
    for path in ("/readyz", "/v1/files"):
        answer = await gateway.client.get(path)
        assert (answer.status_code, int(answer.headers["Retry-After"]) > 0) == (503, True)


@pytest.mark.parametrize(
    ("error", "status", "asked"),
    [
        (BusyError("busy", 7), 503, 1),
        (UnavailableError("away", 7), 503, 5),
        (LimitReachedError("many", 7), 429, 1),
    ],
)
async def test_a_services_refusal_keeps_its_time_and_a_busy_one_is_not_asked_again(
    impatient: tuple[Running, Behaviour], error: Exception, status: int, asked: int
) -> None:
    gateway, behaviour = impatient
    behaviour.error = error
    answer = await gateway.client.get(f"{BASE}/overview")
    assert (answer.status_code, answer.headers["Retry-After"], answer.json()["retry_after"]) == (status, "7", 7)
    # gRPC itself repeats what is unavailable: another replica may be there.
    assert behaviour.asked == asked
