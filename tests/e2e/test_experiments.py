"""Pages of experiments in a browser: live figures, narrow and wide, and the form by keyboard."""

from __future__ import annotations

import pytest
from playwright.async_api import FilePayload, expect

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
            hidden = await page.evaluate(
                """() => [...document.querySelectorAll(".ranked .interval svg")].map(
                    chart => chart.getBoundingClientRect().right
                        - chart.closest(".scroll").getBoundingClientRect().right).filter(more => more > -40)"""
            )
            reached = await page.evaluate(
                """() => [...document.querySelectorAll(".jobs .do a")]
                    .map(link => link.getBoundingClientRect().right)"""
            )
            assert all(0 < right <= width for right in reached), f"a link needs scrolling sideways: {address}, {width}"
            assert hidden == [], f"the chart ends in the edge that fades, or behind it: {address}, {width}"


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


YAML = b"name: filed\nmodels: [phi4-mini]\nprompts: [v1]\nn_scenarios: 3\n"


def chosen(name: str, data: bytes) -> FilePayload:
    return {"name": name, "mimeType": "text/plain", "buffer": data}


async def test_a_file_is_read_once_and_a_refused_one_takes_nothing_with_it(gateway: Running, visitor: Visitor) -> None:
    visitor.expected = ("422",)
    page = await visitor.page()
    await page.goto("/experiments/new")
    await page.get_by_text("YAML or JSON", exact=True).click()
    text, file = page.get_by_label("Definition, in YAML or JSON"), page.get_by_label("Or a file, YAML or JSON").first
    await text.fill("name: typed")
    await file.set_input_files(chosen("tips.yaml", b"name: \0"))
    await page.locator("#start").click()
    await expect(page.locator("#definition-problem")).to_have_text(
        "tips.yaml: Line 1 has a NUL byte. Remove it, and save the file as UTF-8."
    )
    await expect(text).to_have_value("name: typed")
    await expect(file).to_have_value("")
    await file.set_input_files(chosen("tips.yaml", YAML))
    # The text is in focus while it is replaced.
    await text.press("Control+Enter")
    await expect(page.locator("aside")).to_contain_text("3 calls")
    await expect(text).to_have_value(YAML.decode())
    await expect(file).to_have_value("")
    # The same file over a text that was changed by hand.
    await text.fill("name: other")
    await file.set_input_files(chosen("tips.yaml", YAML))
    await page.get_by_role("button", name="Check again").click()
    await expect(text).to_have_value(YAML.decode())
    await text.fill(YAML.decode().replace("3", "4"))
    await page.get_by_role("button", name="Check again").click()
    await expect(page.locator("aside")).to_contain_text("4 calls")
    await page.locator("#start").click()
    await expect(page).to_have_url(f"{gateway.url}/experiments/filed")


async def test_files_of_prompts_and_scenarios_fill_the_form(gateway: Running, visitor: Visitor) -> None:
    page = await visitor.page(phone=True)
    await page.goto("/experiments/new")
    await page.get_by_label("Name of the experiment").fill(NAME)
    await page.get_by_label("phi4-mini").check()
    for shipped in ("v1", "v2-mentor", "v3-few-shot"):
        await page.locator(f"#prompt-{shipped}").uncheck()
    prompts = page.get_by_label("Or files, a template in each")
    await prompts.set_input_files([chosen("a.txt", b"Tips for {{city}}"), chosen("b.txt", b"{{city}}?")])
    await page.get_by_role("button", name="Another prompt of your own").click()
    await expect(page.get_by_label("Own prompt, its id")).to_have_count(3)
    await expect(prompts).to_have_value("")
    await page.get_by_label("Your own").check()
    lines = b'{"city": "Rome"}\n{"city": "Oslo"}\n'
    await page.get_by_label("Or a file of such lines").set_input_files(chosen("cities.jsonl", lines))
    await page.locator("#start").click()
    await expect(page.locator("aside")).to_contain_text("4 calls")
    await expect(page.get_by_label("JSON Lines, one scenario a line")).to_have_value(lines.decode())


async def test_a_file_is_sent_without_scripts(gateway: Running, visitor: Visitor) -> None:
    visitor.expected = ("422",)
    page = await visitor.page(script=False)
    await page.goto("/experiments/new")
    await page.get_by_text("YAML or JSON", exact=True).click()
    file = page.get_by_label("Or a file, YAML or JSON").first
    await file.set_input_files(chosen("tips.yaml", b"name: ["))
    await page.locator("#start").click()
    await expect(page.locator("#definition-problem")).to_contain_text("tips.yaml: The file is not valid YAML on line")
    await file.set_input_files(chosen("tips.yaml", YAML))
    await page.locator("#start").click()
    await expect(page.get_by_label("Definition, in YAML or JSON")).to_have_value(YAML.decode())
    await page.locator("#start").click()
    await expect(page).to_have_url(f"{gateway.url}/experiments/filed")
