"""From any page, by keyboard alone and in at most six clicks: start a run, find why one failed and retry it, open the
items that only one run has right, judge rows side by side.

Pages differ only in the first step, so it is made from each of them, and the rest from the last one.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect

from tests.e2e.conftest import Visitor, press_to, visit
from tests.e2e.every_page import REFUSED_KEY, dataset_with_runs, finished
from tests.gateway.fake_world import World, spec
from tests.gateway.gateway_server import running
from touchstone.v1 import job_pb2

# Each goes through all top-level pages.
pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.stack]
PAGES = (
    "/overview",
    "/run",
    "/compare",
    "/jobs",
    "/leaderboard?suite=glue",
    "/datasets",
    "/datasets/runs",
    "/queue",
    "/settings",
)
MOST_CLICKS = 6


@dataclass
class Hand:
    """Goes to a page and acts there. `clicks` counts those of the mouse; a choice from a list is two."""

    page: Page
    keyboard: bool
    clicks: int = 0

    async def open(self, name: str, action: str) -> None:
        """A page: by its link, or by the action of the palette."""
        if not self.keyboard:
            return await self.click(self.page.locator("#side").get_by_role("link", name=name, exact=True))
        await self.page.keyboard.press("Control+k")
        await self.page.keyboard.type(action)
        await expect(self.page.locator("#found")).to_have_attribute("data-asked", action)
        await expect(self.page.locator("#found [aria-selected=true]")).to_have_text(action)
        await self.page.keyboard.press("Enter")
        return await expect(self.page.locator("#palette")).to_be_hidden()

    async def click(self, wanted: Locator, key: str = "Enter") -> None:
        if self.keyboard:
            return await press_to(self.page, wanted, key)
        self.clicks += 1
        return await wanted.click()

    async def tick(self, box: Locator) -> None:
        await self.click(box, "Space")
        await expect(box).to_be_checked()

    async def choose(self, field: Locator, option: str) -> None:
        """By mouse alone: the palette leads a keyboard to the choice."""
        self.clicks += 2
        await field.select_option(option)


async def start_a_run(hand: Hand, world: World) -> None:
    await hand.tick(hand.page.locator("#run input[name=model]:not(:disabled)").first)
    known = set(world.jobs)
    start = hand.page.locator("#start")
    await expect(start).to_be_enabled()
    await (hand.page.keyboard.press("Control+Enter") if hand.keyboard else hand.click(start))
    await expect(hand.page).to_have_url(re.compile(r"/jobs/[0-9a-f-]{36}$"))
    (started,) = set(world.jobs) - known
    world.finish(world.start(started).job_id)


async def find_why_one_failed_and_retry_it(hand: Hand, world: World) -> None:
    job = next(one for one in world.jobs.values() if one.state == job_pb2.Job.STATE_FAILED)
    if not hand.keyboard:
        await hand.choose(hand.page.locator("#status"), "failed")
    await expect(hand.page).to_have_url(re.compile("status=failed"))
    await hand.click(hand.page.locator(f"#job-{job.job_id} .model a"))
    await expect(hand.page.locator("#job-notice")).to_contain_text("Set XAI_API_KEY where the evaluator runs")
    await hand.click(hand.page.get_by_role("button", name="Try again"))
    await expect(hand.page.locator("#job-head")).to_contain_text("pending")
    assert job.attempt == 2


async def open_the_items_only_a_has_right(hand: Hand, _: World) -> None:
    card = hand.page.locator("form.choice", has=hand.page.get_by_text("alpha"))
    for model in ("alpha", "beta"):
        await hand.tick(card.locator("tr", has_text=model).locator("input"))
    await hand.click(card.locator("[data-compare]"))
    await hand.click(hand.page.locator(".heads .figures div", has_text="only alpha right").locator("a"))
    await expect(hand.page.locator(".segments, .tag", has_text="only")).to_have_count(1)
    await expect(hand.page).to_have_url(re.compile(r"/side-by-side\?.*filter=only_right&only=[AB]"))


async def judge_ten_rows(hand: Hand, world: World) -> None:
    world.preferences.clear()
    for number in range(2):
        await hand.tick(hand.page.locator("#finished input[name=jobs]").nth(number))
    await hand.click(hand.page.get_by_role("button", name="Side by side"))
    for number in range(1, 11):
        await expect(hand.page.locator(".open > header")).to_contain_text(f"row {number} of 12")
        if hand.keyboard:
            await hand.page.keyboard.press("1")
        else:
            await hand.page.locator(".prefer button").first.click()
    await expect(hand.page.locator(".prefer")).to_contain_text("10 of")
    assert len(world.preferences) == 10


Task = Callable[[Hand, World], Awaitable[None]]
FIRST_STEPS: tuple[tuple[Task, str, str, str], ...] = (
    (start_a_run, "Run", "Start a run", "/run"),
    (find_why_one_failed_and_retry_it, "History", "Show jobs that failed", "/jobs"),
    (open_the_items_only_a_has_right, "Compare", "Compare jobs", "/compare"),
    (judge_ten_rows, "Dataset runs", "Open the runs over datasets", "/datasets/runs"),
)
"""Each task with the link and the action that lead to its first page."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def busy(browser: Browser) -> AsyncIterator[tuple[Visitor, World]]:
    world = World()
    finished(world, spec("alpha", limit=5), spec("beta", limit=5))
    dataset_with_runs(world, "triage.jsonl", "Which ward?")
    for _ in range(2):
        failed = world.start(world.add(spec("grok-4-fast", endpoint="grok"), "local").job_id)
        world.finish(failed.job_id, job_pb2.Job.STATE_FAILED, REFUSED_KEY)
    async with running(world) as gateway, visit(browser, gateway) as visitor:
        yield visitor, world


@pytest.mark.parametrize("keyboard", [False, True], ids=["mouse", "keyboard"])
@pytest.mark.parametrize(("task", "link", "action", "first"), FIRST_STEPS, ids=[one[0].__name__ for one in FIRST_STEPS])
async def test_a_task_is_done_from_every_page(
    busy: tuple[Visitor, World], task: Task, link: str, action: str, first: str, keyboard: bool
) -> None:
    visitor, world = busy
    page = await visitor.page()
    for address in PAGES:
        await page.goto(address)
        hand = Hand(page, keyboard)
        await hand.open(link, action)
        await expect(page).to_have_url(re.compile(rf"{first}(\?status=failed)?$"))
    await task(hand, world)
    assert hand.clicks <= MOST_CLICKS
    await page.context.close()
