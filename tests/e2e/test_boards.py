"""Overview and Leaderboard in a browser: the chart's tooltip, filters in the address, rows chosen by keys."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Browser, Page, expect

from tests.e2e.conftest import Visitor, visit
from tests.gateway.fake_world import World, busy_world
from tests.gateway.gateway_server import running

pytestmark = pytest.mark.asyncio(loop_scope="session")
OVERVIEW = "/overview?suite=glue&metric=score&days=30"


def ranged() -> World:
    """A busy world with ranges of ranks, of which the first three may be first."""
    world = busy_world()
    for entry in world.boards["glue"]:
        if entry.rank:
            entry.rank_low, entry.rank_high = max(1, entry.rank - 2), min(11, entry.rank + 2)
    return world


async def clipped(page: Page) -> list[str]:
    """Buttons, links and fields of the page that reach over the window's sides, except in parts that scroll."""
    return list(
        await page.evaluate(
            """[...document.querySelectorAll("main :is(button, a, select, input)")]
            .filter((one) => one.offsetParent && !one.closest(".scroll"))
            .map((one) => [one.outerHTML, one.getBoundingClientRect()])
            .filter(([, box]) => box.left < 0 || box.right > innerWidth)
            .map(([text]) => text)"""
        )
    )


@pytest.mark.stack
@pytest.mark.parametrize("dark", [False, True])
async def test_the_boards_fit_every_width(browser: Browser, dark: bool) -> None:
    async with running(ranged()) as gateway, visit(browser, gateway) as visitor:
        page = await visitor.page(dark=dark)
        for address in (OVERVIEW, "/leaderboard?suite=glue", "/overview?suite=demo", "/jobs", "/settings"):
            await page.goto(address)
            for width in (390, 1024, 1440):
                await page.set_viewport_size({"width": width, "height": 900})
                assert await page.evaluate("document.documentElement.scrollWidth") <= width, (address, width)
                assert await clipped(page) == [], (address, width)
                shown = page.locator(
                    "svg.trend:visible, .board tbody svg.score:visible, .over-time .empty:visible, "
                    "#history tr:visible, #endpoints tr:visible"
                )
                await expect(shown.first).to_be_in_viewport()


_OUTSIDE = """() => [...document.querySelectorAll("main :is(th, td)")]
  .filter((one) => /\\d/.test(one.textContent) && one.checkVisibility())
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
  .map((one) => one.textContent.trim())"""


async def test_long_names_push_no_figure_off(browser: Browser) -> None:
    world = ranged()
    long = "maker/" + "very-long-name-" * 18
    for job in world.jobs.values():
        if job.spec.model in ("llama3.3:70b", "qwen2.5:7b"):
            job.spec.model = long
    for entry in world.boards["glue"]:
        entry.model = long if entry.model == "llama3.3:70b" else entry.model
    async with running(world) as gateway, visit(browser, gateway) as visitor:
        page = await visitor.page()
        for address in ("/leaderboard?suite=glue", "/jobs", "/overview?suite=glue"):
            await page.emulate_media(media="screen")
            for width in (1440, 1024):
                await page.set_viewport_size({"width": width, "height": 900})
                await page.goto(address)
                tables = page.locator("main .scroll:visible:not(.over-time *)")
                if width == 1440 or "leaderboard" not in address:
                    wide = await tables.evaluate_all("all => all.map(one => one.scrollWidth - one.clientWidth)")
                    assert max(wide) <= 0, (address, width)
                cell = page.locator(":is(td, th).model", has=page.locator("a.long")).first
                assert await cell.evaluate("one => one.offsetWidth") <= 400, (address, width)
                assert await page.locator(f'a.long[title="{long}"]').count()
            await page.emulate_media(media="print")
            await page.set_viewport_size({"width": 703, "height": 1000})
            assert await page.evaluate(_OUTSIDE) == [], address
            lines = await page.locator(":is(td, th) > a.long").first.evaluate("one => one.getClientRects().length")
            assert lines > 1, "whole on paper"


async def test_the_tooltip_follows_the_mouse_and_the_arrow_keys(browser: Browser) -> None:
    async with running(ranged()) as gateway, visit(browser, gateway) as visitor:
        page = await visitor.page()
        await page.goto(OVERVIEW)
        tip, first = page.locator(".tip"), page.locator("#run-0 td, #run-0 th")
        name, at, score, interval, items, job = [text.strip() for text in await first.all_text_contents()]
        await page.locator('svg.trend.wide [data-run="0"]').hover()
        await expect(tip).to_have_text(f"{name} {score}95 % CI {interval}, n = {items}{at} UTC, job {job}")
        await page.mouse.move(5, 5)
        await expect(tip).to_be_empty()
        await page.locator("#days").focus()
        for _ in range(10):
            await page.keyboard.press("Tab")
            if await page.evaluate("document.activeElement.matches('svg.trend')"):
                break
        await expect(tip).to_contain_text(name)
        await page.keyboard.press("ArrowUp")
        await expect(tip).not_to_contain_text(name)
        await page.keyboard.press("ArrowDown")
        await expect(tip).to_contain_text(name)
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(re.compile(rf"/jobs/[0-9a-f-]*{job}$"))


async def test_filters_of_the_overview_are_in_the_address_and_a_reload_keeps_them(visitor: Visitor) -> None:
    page = await visitor.page()
    await page.goto("/overview")
    await page.locator("#suite").select_option("demo")
    await expect(page.locator("#overview-cards")).to_contain_text("completed of 0 jobs")
    await page.locator("#days").fill("7")
    await page.locator("#days").press("Tab")
    await expect(page.locator("#overview-trend")).to_contain_text("in the last 7 days")
    await expect(page).to_have_url(re.compile(r"suite=demo.*days=7"))
    await page.reload()
    await expect(page.locator("#days")).to_have_value("7")
    await expect(page.locator("#overview-cards")).to_contain_text("completed of 0 jobs")


async def test_ranges_explain_themselves_and_rows_are_chosen_by_x(browser: Browser) -> None:
    async with running(ranged()) as gateway, visit(browser, gateway) as visitor:
        visitor.expected = ("400", "404")
        page = await visitor.page()
        await page.goto("/leaderboard?suite=glue")
        said = "getComputedStyle(document.querySelectorAll('.range')[3], '::after').content"
        assert await page.evaluate(said) == "none"
        await page.locator(".range").nth(3).focus()
        assert await page.evaluate(said) == '"may be 2nd to 6th"'
        widths = await page.locator("thead .task").evaluate_all("all => all.map((one) => one.offsetWidth)")
        assert len(set(widths)) == 1
        compare = page.get_by_role("button", name="Compare")
        await expect(compare).to_be_disabled()
        for key in "jxjjx":
            await page.keyboard.press(key)
        await expect(compare).to_have_text("Compare 2")
        entries = gateway.world.boards["glue"]
        async with page.expect_request(re.compile("/compare")) as request:
            await compare.click()
        sent = (await request.value).url.partition("/compare?")[2]
        assert sent == f"jobs={entries[4].job_id}&jobs={entries[6].job_id}"


async def test_what_a_reader_unfolded_or_folded_stays_so_when_the_region_is_drawn_again(browser: Browser) -> None:
    async with running(ranged()) as gateway, visit(browser, gateway) as visitor:
        page = await visitor.page()
        await page.goto(OVERVIEW)
        table = page.locator("#overview-trend details.as-table")
        for days, shown in (("28", True), ("29", False)):
            await table.locator("summary").click()
            await table.evaluate("(one) => one.dataset.drawn = 'before'")
            await page.locator("#days").fill(days)
            await page.locator("#days").press("Tab")
            await expect(page.locator("[data-drawn]")).to_have_count(0)
            assert await table.evaluate("(one) => one.open") is shown


async def test_without_script_the_overview_has_every_figure(visitor: Visitor) -> None:
    world = ranged()
    for name in ("jobs", "results"):
        setattr(visitor.gateway.world, name, getattr(world, name))
    page = await visitor.page(script=False)
    await page.goto("/overview")
    await page.locator("#suite").select_option("glue")
    await page.get_by_role("button", name="Show").click()
    await expect(page).to_have_url(re.compile("suite=glue"))
    await page.get_by_text("Show as a table").click()
    await expect(page.locator("#overview-trend tbody tr").first).to_be_visible()
