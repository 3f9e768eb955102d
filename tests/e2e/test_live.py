"""All pages of a browser share one event stream, and are right whenever they are in sight."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import BrowserContext, Page, expect

from tests.e2e.conftest import Visitor
from tests.gateway.fake_world import spec

pytestmark = pytest.mark.asyncio(loop_scope="session")

_SHOW = """shown => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => !shown });
    document.dispatchEvent(new Event("visibilitychange"));
}"""


async def _open(context: BrowserContext, address: str) -> Page:
    page = await context.new_page()
    await page.goto(address)
    return page


@pytest.mark.stack
@pytest.mark.parametrize(
    ("count", "worker"),
    [pytest.param(20, True, marks=pytest.mark.stack), (8, False)],
    ids=["shared worker", "leading page"],
)
async def test_many_pages_of_a_job_move_and_another_opens_and_stops_it(
    visitor: Visitor, count: int, worker: bool
) -> None:
    world = visitor.gateway.world
    job = world.start(world.add(spec("qwen2.5:7b", "demo"), "local").job_id)
    world.advance(job.job_id, 160)
    first = await visitor.page()
    context = first.context
    streams: list[str] = []
    context.on("request", lambda request: streams.append(request.url) if "/events" in request.url else None)
    if not worker:
        await context.add_init_script("delete window.SharedWorker")
    address = f"/jobs/{job.job_id}"
    await first.goto(address)
    pages = [first, *[await _open(context, address) for _ in range(1, count)]]
    for page in pages:
        await expect(page.locator("#job-progress .figure")).to_have_text("10 %")
    world.advance(job.job_id, 640)
    await asyncio.gather(*(expect(page.locator("#job-progress .figure")).to_have_text("50 %") for page in pages))
    if not worker:
        assert len(streams) == 1, "only one page holds a stream"
        # The next page takes over when the one that leads is closed.
        await pages.pop(0).close()

    hidden = pages[0]
    await hidden.evaluate(_SHOW, False)
    world.advance(job.job_id, 400)
    await expect(pages[1].locator("#job-progress .figure")).to_have_text("75 %")
    await expect(hidden.locator("#job-progress .figure")).to_have_text("50 %")
    await hidden.evaluate(_SHOW, True)
    await expect(hidden.locator("#job-progress .figure")).to_have_text("75 %")

    last = await _open(context, address)
    await last.get_by_role("button", name="Stop", exact=True).click()
    await last.get_by_role("button", name="Stop the job").click()
    await expect(last.locator("#job-head")).to_contain_text("cancelled")
    await asyncio.gather(*(expect(page.locator("#job-head")).to_contain_text("cancelled") for page in pages))


_COUNT_SWAPS = """() => {
    window.swaps = 0;
    const swap = htmx.swap;
    htmx.swap = (...given) => { window.swaps += 1; return swap.apply(htmx, given); };
}"""


@pytest.mark.stack
async def test_a_page_in_sight_that_nobody_works_in_moves_less_often_and_a_hidden_one_not_at_all(
    visitor: Visitor,
) -> None:
    world = visitor.gateway.world
    job = world.start(world.add(spec("qwen2.5:7b", "demo"), "local").job_id)
    page = await visitor.page()
    await page.goto(f"/jobs/{job.job_id}")
    figure = page.locator("#job-progress .figure")

    async def swaps_while_it_moves() -> int:
        before = int(await page.evaluate("swaps"))
        for _ in range(16):
            world.advance(job.job_id, 16)
            await asyncio.sleep(0.25)
        return int(await page.evaluate("swaps")) - before

    world.advance(job.job_id, 160)
    await expect(figure).to_have_text("10 %")
    await page.evaluate(_COUNT_SWAPS)
    await page.evaluate("document.hasFocus = () => false")
    assert await swaps_while_it_moves() <= 2
    await page.evaluate(_SHOW, False)
    await asyncio.sleep(0.5)
    assert await swaps_while_it_moves() == 0
    await page.evaluate(_SHOW, True)
    await expect(figure).to_have_text("42 %")
    # What it has already is not swapped again: the sidebar and the job, each once.
    assert await page.evaluate("swaps") <= 5
    world.finish(job.job_id)
    await expect(page.locator("#job-head")).to_contain_text("completed")


async def test_lists_show_what_happens_and_say_when_a_service_is_away(visitor: Visitor) -> None:
    gateway = visitor.gateway
    world = gateway.world
    visitor.expected = ("Failed to load resource",)
    world.add(spec("qwen2.5:7b", "demo"), "local")
    first = await visitor.page()
    context = first.context
    await first.goto("/jobs")
    overview, queue = await _open(context, "/overview"), await _open(context, "/queue")
    job = world.add(spec("phi4-mini", "demo"), "local")
    row = f'a[href="/jobs/{job.job_id}"]'
    for page in (first, overview, queue):
        await expect(page.locator(row).first).to_be_visible()
        await expect(page.locator("#waiting-count")).to_have_text("2")
    world.start(job.job_id)
    await expect(queue.locator("#holding")).to_contain_text("phi4-mini")
    await expect(first.locator(f"#job-{job.job_id}")).to_contain_text("running")
    world.advance(job.job_id, 1600)
    await expect(first.locator(f"#job-{job.job_id}")).to_contain_text("scoring")
    await expect(queue.locator("#holding")).to_contain_text("scoring")

    await gateway.stop_service("scheduler")
    for page in (first, overview, queue):
        await expect(page.locator("#silence")).to_contain_text("Reconnecting to the scheduler. Figures are from ")
    await gateway.start_service("scheduler")
    world.finish(job.job_id)
    for page in (first, overview, queue):
        await expect(page.locator("#silence")).to_be_hidden()
    await expect(first.locator(f"#job-{job.job_id}")).to_contain_text("completed")
    assert await first.locator("#toasts > *").count() == 0
