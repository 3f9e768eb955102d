"""The compare page in a browser: runs selected by key, the page at each width, and without scripts."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import expect

from tests.e2e.conftest import Visitor
from tests.gateway.fake_data import HOSTILE
from tests.gateway.fake_world import World, spec

pytestmark = pytest.mark.asyncio(loop_scope="session")


def finished(world: World, *models: str) -> list[str]:
    return [
        world.finish(world.start(world.add(spec(model, limit=5), "local").job_id).job_id).job_id for model in models
    ]


async def test_rows_of_history_are_selected_by_key_and_compared(visitor: Visitor) -> None:
    finished(visitor.gateway.world, "alpha", "beta", "gamma")
    page = await visitor.page()
    await page.goto("/jobs")
    compare = page.locator("[data-compare]")
    await expect(compare).to_be_disabled()
    for key in "jxjx":
        await page.keyboard.press(key)
    await expect(compare).to_have_text("Compare 2")
    await page.locator("#query").focus()
    await page.keyboard.press("x")
    await expect(page.get_by_text("No jobs match")).to_be_visible()
    await page.locator("#query").fill("")
    await expect(compare).to_have_text("Compare 2")
    await compare.click()
    await expect(page).to_have_url(re.compile(r"/compare\?jobs=[0-9a-f-]{36},[0-9a-f-]{36}$"))
    # The order of jobs of one millisecond is chance.
    await expect(page.locator(".headline")).to_contain_text(re.compile("better|worse"))


async def test_runs_stay_selected_when_the_list_is_read_again(visitor: Visitor) -> None:
    finished(visitor.gateway.world, "alpha", "beta")
    page = await visitor.page()
    await page.goto("/jobs")
    await page.get_by_label("Select alpha").check()
    await page.locator("#suite").select_option("glue")
    await expect(page).to_have_url(re.compile("suite=glue"))
    await expect(page.get_by_label("Select alpha")).to_be_checked()
    await expect(page.locator("tr.at")).to_contain_text("alpha")


@pytest.mark.stack
@pytest.mark.parametrize("dark", [False, True])
async def test_the_page_fits_every_width(visitor: Visitor, dark: bool) -> None:
    ids = finished(visitor.gateway.world, "alpha", HOSTILE, "gamma", "x" * 290)
    page = await visitor.page(dark=dark)
    chosen = [f"compare?jobs={','.join(ids)}", f"compare?jobs={ids[0]},{ids[2]}", f"compare?jobs={ids[0]},{ids[3]}"]
    reports = [address.replace("compare?", "compare/report.html?") for address in chosen]
    for address in ("/compare", *(f"/{one}" for one in [*chosen, *reports])):
        await page.goto(address)
        for width in (390, 1024, 1440):
            await page.set_viewport_size({"width": width, "height": 900})
            assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, (address, width)
        assert await page.evaluate("window.pwned") is None


async def test_without_scripts_runs_are_chosen_and_removed(visitor: Visitor) -> None:
    finished(visitor.gateway.world, "alpha", "beta", "gamma")
    page = await visitor.page(script=False)
    await page.goto("/compare")
    for model in ("alpha", "beta", "gamma"):
        await page.get_by_label(model).check()
    await page.get_by_role("button", name="Compare").click()
    await expect(page.locator(".compared li:not(.add)")).to_have_count(3)
    await page.get_by_label("Remove beta").click()
    await expect(page.locator(".compared li:not(.add)")).to_have_count(2)
    await page.get_by_label("δ").select_option("0.05")
    await page.get_by_role("button", name="Set").click()
    await expect(page).to_have_url(re.compile("margin=0.05"))
