"""Pages of decisions in a browser: live evidence, the form by keyboard, and both without scripts."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.e2e.conftest import Visitor, press_to
from tests.gateway import fake_decisions
from tests.gateway.gateway_server import Running

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_decision_is_followed_until_its_verdict(gateway: Running, visitor: Visitor) -> None:
    world = gateway.world
    found = fake_decisions.add(world, upto=40)
    page = await visitor.page()
    await page.goto(f"/decisions/{found.decision_id}")
    await expect(page.locator(".headline")).to_have_text(
        "It is not decided whether qwen2.5:7b is better than llama3.2:3b."
    )
    first = await page.locator("svg.evidence.wide .way").first.get_attribute("d")
    ended = fake_decisions.add(world)
    own = found.decision_id
    for job_id in (own, world.jobs[own].spec.deciding.against_job_id):
        fake_decisions.stop(world, job_id, "Stopped: decided.")
    found.CopyFrom(ended)
    found.decision_id = own
    world.touch()
    await expect(page.locator(".headline")).to_have_text("qwen2.5:7b is better than llama3.2:3b.")
    await expect(page.locator(".saved-strip")).to_contain_text("Calls saved")
    await expect(page.locator("#decision")).not_to_have_attribute("data-watch", "jobs")
    assert await page.locator("svg.evidence.wide .way").first.get_attribute("d") != first
    await page.get_by_text("The same in figures").click()
    await expect(page.get_by_role("region", name="Evidence in figures")).to_be_visible()


async def test_a_race_of_models_with_long_names_fits(gateway: Running, visitor: Visitor) -> None:
    long = "laboratory/foundation-model-instruct-long-context-thinking-preview-235b-a22b-awq-int4-gguf"
    found = fake_decisions.add_race(gateway.world, {f"{long}-{n}": share for n, share in enumerate((0.5, 0.62, 0.9))})
    page = await visitor.page()
    await page.goto(f"/decisions/{found.decision_id}")
    table = page.get_by_role("region", name="Models of the race")
    await expect(table.get_by_text("beaten by").first).to_be_visible()
    hidden = await table.evaluate("one => one.scrollWidth - one.clientWidth")
    assert hidden == 0, "no column is out of sight"


async def test_a_long_name_of_a_dataset_stays_on_a_phone(gateway: Running, visitor: Visitor) -> None:
    found = fake_decisions.add(gateway.world)
    for job_id in (found.decision_id, gateway.world.jobs[found.decision_id].spec.deciding.against_job_id):
        gateway.world.jobs[job_id].spec.dataset.name = "questions that somebody has named at length, " * 3
    page = await visitor.page(phone=True)
    await page.goto(f"/decisions/{found.decision_id}")
    await expect(page.locator(".verdict .tag").first).to_contain_text("questions that somebody", ignore_case=True)
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_a_decision_is_started_by_keyboard(gateway: Running, visitor: Visitor) -> None:
    visitor.expected = ("422",)
    page = await visitor.page()
    await page.goto("/decisions")
    await press_to(page, page.get_by_role("link", name="New decision"), "Enter")
    await expect(page.locator("h1")).to_have_text("New decision")
    await press_to(page, page.get_by_label("On the items of"), "d")
    await expect(page.locator("#decision-estimate")).to_contain_text("calls")
    await press_to(page, page.get_by_role("button", name="Start the decision"), "Enter")
    await expect(page.locator("#candidate-problem")).to_have_text("Choose a model.")
    await page.get_by_label("Is this model better").select_option("ollama|phi4-mini")
    await page.get_by_label("than this one, the baseline?").select_option("ollama|llama3.2:3b")
    await page.get_by_label("Difference that does not matter").fill("2")
    await page.keyboard.press("Enter")
    await expect(page.locator("h1")).to_have_text("Decision")
    await expect(page.locator(".headline")).to_contain_text("phi4-mini is better than llama3.2:3b")
    await page.get_by_role("button", name="Stop").click()
    await expect(page.locator("#decision")).to_contain_text("cancelled")


async def test_without_scripts_a_decision_is_started_and_read(gateway: Running, visitor: Visitor) -> None:
    page = await visitor.page(phone=True, script=False)
    await page.goto("/decisions/new")
    await page.get_by_label("Is this model better").select_option("ollama|phi4-mini")
    await page.get_by_label("than this one, the baseline?").select_option("ollama|llama3.2:3b")
    await page.get_by_label("On the items of").select_option("demo")
    await page.get_by_role("button", name="Start the decision").click()
    await expect(page.locator(".headline")).to_contain_text("It is not decided")
    found = fake_decisions.add(gateway.world)
    await page.goto(f"/decisions/{found.decision_id}")
    await expect(page.locator("svg.evidence.narrow")).to_be_visible()
    await expect(page.locator("svg.evidence.wide")).to_be_hidden()
    await expect(page.locator(".headline")).to_have_text("qwen2.5:7b is better than llama3.2:3b.")


@pytest.mark.parametrize("dark", [False, pytest.param(True, marks=pytest.mark.stack)], ids=["light", "dark"])
async def test_no_page_of_decisions_scrolls_sideways(gateway: Running, visitor: Visitor, dark: bool) -> None:
    long = ("vendor/" + "a-very-long-name-" * 6, "vendor/" + "another-long-name-" * 6)
    found = fake_decisions.add(gateway.world, models=long, margin=0.05, items=900)
    live = fake_decisions.add(gateway.world, upto=150)
    page = await visitor.page(dark=dark)
    for width in (390, 1024, 1440):
        await page.set_viewport_size({"width": width, "height": 900})
        for address in (
            "/decisions",
            *(f"/decisions/{one.decision_id}" for one in (found, live)),
            "/decisions/new",
        ):
            await page.goto(address)
            assert await page.evaluate("document.documentElement.scrollWidth") <= width, (address, width)
