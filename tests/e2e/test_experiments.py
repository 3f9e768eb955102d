"""Pages of experiments in a browser: live figures, narrow and wide, and the form by keyboard."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.e2e.conftest import Visitor, press_to
from tests.gateway import experiment_boards
from tests.gateway.gateway_server import Running

pytestmark = pytest.mark.asyncio(loop_scope="session")
NAME = "tip-bench-2026-04-27"


async def test_jobs_are_followed_and_what_is_ticked_stays(gateway: Running, visitor: Visitor) -> None:
    # The fakes have no rows of these jobs to show side by side.
    visitor.expected = ("400",)
    found = experiment_boards.add(gateway.world, NAME, live=True)
    page = await visitor.page()
    await page.goto(f"/experiments/{NAME}")
    await expect(page.locator("#experiment-jobs > header")).to_contain_text("80 of 180 answers")
    first = page.get_by_label("Read gemma3:4b side by side")
    await first.check()
    for job in found.experiment.jobs:
        known = gateway.world.jobs[job.job_id]
        if known.finished_at.seconds:
            continue
        if not known.started_at.seconds:
            gateway.world.start(job.job_id)
        gateway.world.finish(job.job_id)
        known.progress.items_total = known.progress.items_done = 60
        job.CopyFrom(known)
    await expect(page.locator("#experiment-jobs > header")).to_contain_text("180 of 180 answers")
    await expect(page.locator("#experiment-jobs > header")).to_contain_text("completed")
    await expect(page.locator("#experiment")).not_to_have_attribute("data-watch", "jobs")
    await expect(first).to_be_checked()
    await page.get_by_label("Read phi4-mini side by side").check()
    await page.get_by_role("button", name="Side by side").click()
    both = ",".join(job.job_id for job in found.experiment.jobs[:2])
    await expect(page).to_have_url(f"{gateway.url}/side-by-side?jobs={both}")


@pytest.mark.parametrize("dark", [False, pytest.param(True, marks=pytest.mark.stack)], ids=["light", "dark"])
async def test_no_page_scrolls_sideways(gateway: Running, visitor: Visitor, dark: bool) -> None:
    experiment_boards.odd(gateway.world)
    experiment_boards.large(gateway.world)
    page = await visitor.page(dark=dark)
    for width in (390, 1024, 1440):
        await page.set_viewport_size({"width": width, "height": 900})
        for address in (
            "/experiments",
            f"/experiments/{experiment_boards.LONG}",
            "/experiments/large",
            "/experiments/new",
        ):
            await page.goto(address)
            assert await page.evaluate("document.documentElement.scrollWidth") <= width, (address, width)


async def test_whose_scores_rank_is_chosen_without_leaving_the_page(gateway: Running, visitor: Visitor) -> None:
    experiment_boards.add(gateway.world, NAME)
    page = await visitor.page()
    await page.goto(f"/experiments/{NAME}")
    await page.get_by_label("Scores of").select_option("combined")
    await expect(page).to_have_url(f"{gateway.url}/experiments/{NAME}?source=combined")
    await expect(page.get_by_label("Scores of")).to_have_value("combined")
    await page.go_back()
    await expect(page.get_by_label("Scores of")).to_have_value("")


async def test_an_experiment_is_checked_and_started_by_keyboard(gateway: Running, visitor: Visitor) -> None:
    visitor.expected = ("422",)
    page = await visitor.page()
    await page.goto("/experiments")
    await press_to(page, page.get_by_role("link", name="New experiment"), "Enter")
    await expect(page.locator("h1")).to_have_text("New experiment")
    await press_to(page, page.get_by_label("Name of the experiment"), "Control+Enter")
    await expect(page.locator("#name-problem")).to_contain_text("name is required")
    await expect(page.locator("#models-problem")).to_be_visible()
    await page.get_by_label("Name of the experiment").fill(NAME)
    await press_to(page, page.get_by_label("phi4-mini"), "Space")
    await page.get_by_label("How many").fill("4")
    await page.keyboard.press("Enter")
    await expect(page.locator("aside")).to_contain_text("12 calls")
    await expect(page.get_by_label("Name of the experiment")).to_have_value(NAME)
    await expect(page.locator("#name-problem")).to_have_count(0)
    await page.keyboard.press("Control+Enter")
    await expect(page).to_have_url(f"{gateway.url}/experiments/{NAME}")
    await expect(page.locator("#experiment-jobs")).to_contain_text("phi4-mini")


async def test_a_definition_is_pasted(gateway: Running, visitor: Visitor) -> None:
    visitor.expected = ("422",)
    page = await visitor.page(phone=True)
    await page.goto("/experiments/new")
    await page.get_by_text("YAML or JSON", exact=True).click()
    await expect(page.get_by_label("Name of the experiment")).to_be_hidden()
    field = page.get_by_label("Definition, in YAML or JSON")
    await field.fill("name: pasted\nmodels: [phi4-mini]\nprompts: [v1, v9]\nn_scenarios: 3\n")
    await page.locator("#start").click()
    await expect(page.locator("#definition-problem")).to_contain_text("v9")
    await field.fill((await field.input_value()).replace(", v9", ""))
    await page.locator("#start").click()
    await expect(page.locator("aside")).to_contain_text("3 calls")
    await page.locator("#start").click()
    await expect(page).to_have_url(f"{gateway.url}/experiments/pasted")
