"""What a full disk looks like: in REST, in the error of a silent results service, on pages."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import httpx
import pytest

from deploy.local.ports import free_port
from services.gateway import server
from services.gateway.settings import Settings
from tests.gateway.gateway_server import Running, running
from tests.gateway.test_pages import page
from tests.gateway.test_rest_results import BASE, get
from tests.gateway.test_rest_run import DOCUMENT
from tests.nats_server import NatsServer
from tests.waiting import answered

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


async def test_silent_services_are_explained_by_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_DISK_LOW_BYTES", str(10**15))
    settings = Settings(requests_per_minute=10_000, state_dir=tmp_path)
    async with running(settings=settings) as gateway:
        assert "disk is full" not in await page(gateway, "/jobs"), "the scheduler answers, and says nothing of it"
        await gateway.stop_service("scheduler")
        await gateway.stop_service("results")
        for path in ("/overview", "/queue"):
            away = await gateway.client.get(BASE + path)
            assert away.status_code == 503
            assert away.headers["Retry-After"] == "30"
            assert away.json()["detail"].startswith("The disk is full: ")
        for address in ("/jobs", "/run", "/leaderboard", "/datasets", f"/jobs/{uuid.uuid4()}"):
            html = await page(gateway, address, 503)
            assert html.count("continues when there is room for 250,000,000 MB.") == 1
            assert '<meta http-equiv="refresh"' in html


async def test_without_nats_a_full_disk_is_said_until_users_can_be_let_in(
    tmp_path: Path, nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    nats.stop()
    port = free_port()
    for name, value in {
        "AUTH": "token",
        "SERVICE_TOKEN": "services-share-this",
        "HTTP_PORT": str(port),
        "NATS_URL": nats.url,
        "NATS_MONITOR_URL": nats.monitor_url,
        "STATE_DIR": str(tmp_path),
        "DISK_LOW_BYTES": str(10**15),
    }.items():
        monkeypatch.setenv(f"TOUCHSTONE_{name}", value)
    stop = asyncio.Event()
    serving = asyncio.create_task(server.main(stop))
    async with asyncio.timeout(60), httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        for path in ("/login", "/jobs", f"{BASE}/queue"):
            said = await client.get(path, headers={"Accept": "text/html"})
            assert said.status_code == 503
            assert "The disk is full: " in said.text
        assert (await client.get("/readyz")).status_code == 503
        nats.restart()
        await answered(lambda: client.get("/login"), lambda found: found.status_code == 200)
        assert (await client.get(f"{BASE}/queue")).status_code == 401
    stop.set()
    await serving
