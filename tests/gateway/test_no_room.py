"""What a full disk looks like: in REST, in the error of a silent results service, on pages."""

from __future__ import annotations

import asyncio

from tests.gateway.gateway_server import Running
from tests.gateway.test_pages import page
from tests.gateway.test_rest_results import BASE, get
from tests.gateway.test_rest_run import DOCUMENT

NOTICE = "The disk is full: 0.0 MB are free. Running jobs pause; new jobs and uploads need 500.0 MB."


async def test_a_job_is_refused_with_the_reason_and_when_to_try_again(gateway: Running) -> None:
    gateway.world.notice = NOTICE
    answer = await gateway.client.post(f"{BASE}/run", json=DOCUMENT)
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "30"
    assert answer.json() == {"detail": NOTICE, "retry_after": 30}
    assert (await get(gateway, "/queue"))["notice"] == NOTICE

    gateway.world.notice = ""
    assert (await gateway.client.post(f"{BASE}/run", json=DOCUMENT)).status_code == 200
    assert (await get(gateway, "/queue"))["notice"] is None


async def test_a_results_service_that_the_disk_keeps_away_is_explained(gateway: Running) -> None:
    await gateway.stop_service("results")
    away = await gateway.client.get(f"{BASE}/overview")
    assert (away.status_code, away.json()["detail"][:19]) == (503, "The results service")
    gateway.world.notice = NOTICE
    full = await gateway.client.get(f"{BASE}/overview")
    assert full.status_code == 503
    assert full.json()["detail"] == NOTICE
    assert full.headers["Retry-After"] == "30"


async def test_every_page_says_it_until_there_is_room(gateway: Running) -> None:
    gateway.world.notice = NOTICE
    for address in ("/run", "/jobs", "/leaderboard", "/datasets"):
        assert NOTICE in await page(gateway, address)
    await gateway.stop_service("results")
    assert (await page(gateway, "/leaderboard", 503)).count(NOTICE) == 1, "not in a banner and in the card"
    gateway.world.notice = ""
    await gateway.start_service("results")
    await asyncio.sleep(1.1)  # The gateway remembers the queue for a second.
    assert NOTICE not in await page(gateway, "/jobs")
