"""Open pages while services are killed, and while many short jobs come and go."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Page, async_playwright, expect

from tests.chaos.world import MODELS, World, open_world
from tests.e2e.conftest import ARGUMENTS, chromium

pytestmark = pytest.mark.chaos

SEEN_S = 3.0
PATIENCE_MS = 60_000
JOBS = 60
SLOTS = 3
_RUNNING = {
    "/jobs": "</i>running</span>",
    "/overview": 'aria-label="Items done of ',
    "/queue": '<progress class="thin"',
}
"""What stands once for each running job, by page. The overview's list of recent jobs has the newest only."""
_TAGS = """() => [...document.querySelectorAll("main .tag")].filter((one) => one.textContent === "running").length"""

_RECORD = """() => {
  window.said = [];
  new MutationObserver(() => {
    const text = document.querySelector(".beat > :last-child")?.textContent ?? "";
    const line = document.getElementById("silence").textContent;
    if (said.at(-1)?.text !== text) said.push({ at: Date.now() / 1000, text, line });
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""
"""Keeps what the page says of its connection: a service may be back before the next look of a test."""
_LOST = """() => said.find((one) => one.text === "reconnecting")"""
_BACK = """() => said.some((one, place) => one.text === "live" && said[place - 1]?.text === "reconnecting")"""


@asynccontextmanager
async def page_of(world: World, path: str) -> AsyncIterator[Page]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS, timeout=2 * PATIENCE_MS)
        page = await browser.new_page(base_url=world.launched.page_url)
        page.set_default_timeout(PATIENCE_MS)
        await page.goto(path)
        yield page
        await browser.close()


async def test_a_page_says_that_a_killed_service_is_away_and_goes_on_by_itself(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, page_of(world, "/jobs") as page:
        silence = page.locator("#silence")
        figure = page.locator("#job-progress .figure")
        # Each has a job of its own, which lasts longer than the service is away.
        for service, model in zip(("scheduler", "results", "nats", "gateway"), MODELS, strict=False):
            await page.goto(f"/jobs/{await world.submit(model)}")
            await expect(figure).not_to_have_text("0 %", timeout=PATIENCE_MS)
            await expect(silence).to_be_hidden(timeout=PATIENCE_MS)
            await page.evaluate(_RECORD)
            before = await figure.inner_text()
            old = await world.launched.kill(service)
            killed = time.time()
            # Its successor answers within about a second, too soon for a page to say anything: it is held up here.
            held = await world.launched.replaced(service, old)
            os.kill(held, signal.SIGSTOP)
            lost = await (await page.wait_for_function(_LOST, timeout=PATIENCE_MS)).json_value()
            seen = lost["at"] - killed
            assert "Figures are from " in lost["line"]
            os.kill(held, signal.SIGCONT)
            await page.wait_for_function(_BACK, timeout=PATIENCE_MS)
            print(f"{service}: said after {seen:.2f} s, live again within {time.time() - killed:.2f} s")
            assert seen < SEEN_S, service
            await expect(figure).not_to_have_text(before, timeout=PATIENCE_MS)
            await world.launched.until_ready()


async def test_no_page_shows_more_running_jobs_than_slots_and_all_lists_agree(tmp_path: Path) -> None:
    async with open_world(
        tmp_path, TOUCHSTONE_PENDING_PER_USER=str(JOBS), TOUCHSTONE_REQUESTS_PER_MINUTE="1000000"
    ) as world:
        client = httpx.AsyncClient(base_url=world.launched.page_url, trust_env=False, timeout=60)
        async with page_of(world, "/jobs") as page, client:
            starting = asyncio.gather(*(world.submit(MODELS[n % 12], ["rte"], limit=40) for n in range(JOBS)))
            ids: set[str] = set()
            most: Counter[str] = Counter()
            left = JOBS
            while left:
                if starting.done():
                    ids = set(starting.result())
                most["open page"] = max(most["open page"], await page.evaluate(_TAGS))
                for path, each in _RUNNING.items():
                    text = (await client.get(path, headers={"Accept": "text/html"})).text
                    most[path] = max(most[path], text.count(each))
                    shown = re.search(r"<b>(\d+)</b>/(\d+)", text)
                    assert shown
                    assert int(shown[1]) <= int(shown[2]) == SLOTS
                    if ids and path == "/jobs":
                        assert len(set(re.findall(r'id="job-([0-9a-f-]{36})"', text)) & ids) >= 50
                listed = (await client.get("/api/v1/benchmarking/results?limit=100")).json()["results"]
                if ids:
                    assert {row["job_id"] for row in listed} == ids
                    left = sum(row["status"] != "completed" for row in listed)
            print(f"most running jobs: {dict(most)}")
            assert all(0 < count <= SLOTS for count in most.values())
            await expect(page.locator("#history .sub").first).to_contain_text(f"{JOBS} jobs", timeout=PATIENCE_MS)
            rows = page.locator("#history tbody tr .state")
            await expect(rows.filter(has_text="completed")).to_have_count(50, timeout=PATIENCE_MS)
            history = (await client.get("/api/v1/benchmarking/history?limit=100")).json()["history"]
            assert {row["job_id"]: row["status"] for row in history} == dict.fromkeys(ids, "completed")
