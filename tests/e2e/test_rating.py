"""Rating answers in a browser: by keys alone, in light and dark, at all widths, and without scripts."""

from __future__ import annotations

import asyncio
import json

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.async_api import Page, Route, expect

from services.gateway.pages.jobs import rating
from services.words import rubrics
from tests.e2e.conftest import Visitor
from tests.e2e.every_page import odd_rubric, rated
from tests.gateway.fake_world import World
from tests.gateway.test_pages_judges import agreed, completed, judged
from touchstone.v1 import job_pb2

pytestmark = pytest.mark.asyncio(loop_scope="session")

TIPS = rating.shipped()
_SCORES, _NOTE = 7, 8
"""Columns of the stored ratings."""
_FAST_KEYS = """() => {
  let left = Infinity;
  document.addEventListener("htmx:after:swap", () => { left = Math.min(left, 5); });
  window.typed = new Promise((done) => {
    const timer = setInterval(() => {
      document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "5", bubbles: true, cancelable: true}));
      left -= 1;
      if (left <= 0) { clearInterval(timer); done(true); }
    }, 20);
  });
}"""
"""Types digits until some have followed the next answer."""
_AT_HAND = "document.activeElement.closest('.question')?.querySelector('legend').innerText || ''"


def address(job: job_pb2.Job) -> str:
    return rating.View(job.job_id, rubrics.digest(TIPS)).address()


def stored(world: World) -> list[tuple[dict[str, int], str]]:
    """Scores and notes, the oldest first."""
    rows = world.ratings.get("ratings", [])
    return [(json.loads(row[_SCORES]) if row[_SCORES] else {}, row[_NOTE]) for row in rows]


async def at_hand(page: Page) -> str:
    """The criterion whose scores have the focus."""
    return str(await page.evaluate(_AT_HAND))


async def test_ten_answers_are_rated_by_keys_alone(visitor: Visitor) -> None:
    world = visitor.gateway.world
    job = completed(world)
    page = await visitor.page()
    await page.goto(address(job))
    await expect(page.locator("#desk .question").first).to_contain_text("relevance")
    for number in range(10):
        await expect(page.locator("#rating header")).to_contain_text(f"{number} rated")
        assert (await at_hand(page)).startswith("relevance")
        for name, key in (("actionability", 1 + number % 5), ("tone", 1 + (number + 1) % 5), ("", 5)):
            await page.keyboard.press(str(key))
            assert (await at_hand(page)).startswith(name)
        if number == 3:
            await page.keyboard.press("n")
            await page.keyboard.type("2 of 3 tips repeat.")
            await page.keyboard.press("Control+Enter")
        else:
            await page.keyboard.press("Enter")
    await expect(page.locator("#rating header")).to_contain_text("10 rated")
    found = stored(world)
    assert [scores for scores, _ in found] == [
        {"relevance": 1 + number % 5, "actionability": 1 + (number + 1) % 5, "tone": 5} for number in range(10)
    ]
    assert [note for _, note in found if note] == ["2 of 3 tips repeat."]
    assert page.url.endswith(address(job))


async def test_going_back_changing_skipping_and_taking_back_by_keys(visitor: Visitor) -> None:
    world = visitor.gateway.world
    job = completed(world)
    first, second = rated(world, job.job_id, TIPS, 2)
    page = await visitor.page()
    await page.goto(address(job))
    waiting = await page.locator("[name=answer]").first.input_value()
    await page.keyboard.press("s")
    await expect(page.locator("[name=answer]").first).not_to_have_value(waiting)
    await page.keyboard.press("[")
    await expect(page.locator("[form=clear]")).to_be_visible()
    assert await page.locator("[name=answer]").first.input_value() in (first, second)
    await page.keyboard.press("j")
    assert (await at_hand(page)).startswith("actionability")
    await page.keyboard.press("k")
    await page.keyboard.press("5")
    await page.keyboard.press("Enter")
    await expect(page.locator("[form=clear]")).to_have_count(0)
    assert stored(world)[-1][0]["relevance"] == 5
    await page.keyboard.press("[")
    await expect(page.locator("[form=clear]")).to_be_visible()
    await page.keyboard.press("u")
    await expect(page.locator("[form=clear]")).to_have_count(0)
    await expect(page.locator("#rating header")).to_contain_text("1 rated")
    await expect(page.locator(".options :checked")).to_have_count(0)
    assert stored(world)[-1][0] == {}


async def test_keys_pressed_before_the_next_answer_is_there_score_nothing(visitor: Visitor) -> None:
    world = visitor.gateway.world
    job = completed(world)
    page = await visitor.page()
    await page.goto(address(job))
    held = asyncio.Event()

    async def hold(route: Route) -> None:
        await held.wait()
        await route.continue_()

    await page.route("**/rate?*", hold)
    for key in ("1", "2", "3", "Enter", "5", "5", "5", "Enter"):
        await page.keyboard.press(key)
    held.set()
    await expect(page.locator("#rating header")).to_contain_text("1 rated")
    await expect(page.locator(".options :checked")).to_have_count(0)
    assert [scores for scores, _ in stored(world)] == [{"relevance": 1, "actionability": 2, "tone": 3}]


async def test_a_second_enter_and_the_rest_of_a_burst_do_not_reach_the_next_answer(visitor: Visitor) -> None:
    world = visitor.gateway.world
    page = await visitor.page()
    await page.goto(address(completed(world)))
    for key in ("1", "2", "3", "Enter"):
        await page.keyboard.press(key)
    await expect(page.locator("#rating header")).to_contain_text("1 rated")
    await page.keyboard.press("Enter")
    await expect(page.locator("#rating [role=alert]")).to_have_count(0)
    held = asyncio.Event()

    async def hold(route: Route) -> None:
        await held.wait()
        await route.continue_()

    await page.route("**/rate?*", hold)
    for key in ("4", "4", "4", "Enter"):
        await page.keyboard.press(key)
    # The next answer arrives in the middle of the keys.
    await page.evaluate(_FAST_KEYS)
    await page.evaluate("document.getElementById('note').style.height = '90px'")
    held.set()
    await expect(page.locator("#rating header")).to_contain_text("2 rated")
    await page.evaluate("window.typed")
    await expect(page.locator(".options :checked")).to_have_count(0)
    assert len(stored(world)) == 2


async def test_a_refusal_keeps_what_was_entered_and_leads_to_what_is_missing(visitor: Visitor) -> None:
    visitor.expected = ("422",)
    world = visitor.gateway.world
    page = await visitor.page()
    await page.goto(address(completed(world)))
    await page.keyboard.press("4")
    await page.keyboard.press("n")
    await page.keyboard.type("Kept.")
    await page.keyboard.press("Control+Enter")
    await expect(page.locator("#problem-tone")).to_have_text("Give a score: a whole number from 1 to 5.")
    assert (await at_hand(page)).startswith("actionability")
    await expect(page.locator("[name='score.relevance'][value='4']")).to_be_checked()
    await expect(page.locator("#note")).to_have_value("Kept.")
    await page.keyboard.press("1")
    await page.keyboard.press("2")
    await page.keyboard.press("Enter")
    await expect(page.locator("#rating header")).to_contain_text("1 rated")
    assert stored(world) == [({"relevance": 4, "actionability": 1, "tone": 2}, "Kept.")]


async def test_it_works_without_scripts(visitor: Visitor) -> None:
    visitor.expected = ("422",)
    world = visitor.gateway.world
    job = completed(world)
    page = await visitor.page(script=False)
    await page.goto(f"/jobs/{job.job_id}")
    await page.get_by_role("link", name="Rate answers").click()
    await page.get_by_role("link", name="Rate by it").click()
    for name in ("relevance", "actionability"):
        await page.locator(f"[name='score.{name}'][value='3'] + span").click()
    await page.get_by_role("button", name="Store").click()
    await expect(page.locator("#problem-tone")).to_be_visible()
    await page.locator("[name='score.tone'][value='1'] + span").click()
    await page.get_by_role("button", name="Store").click()
    await expect(page.locator("#rating header")).to_contain_text("1 rated")
    assert stored(world) == [({"relevance": 3, "actionability": 3, "tone": 1}, "")]
    await page.get_by_role("link", name="Show it").click()
    await expect(page.locator("h1")).to_have_text("Agreement")
    await page.get_by_role("link", name="Rate answers").click()
    await page.get_by_role("link", name="Back").click()
    await page.get_by_role("button", name="Take back").click()
    await expect(page.locator("#rating header")).to_contain_text("0 rated")


async def test_agreement_opens_at_the_answer_and_follows_while_one_rates(visitor: Visitor) -> None:
    world = visitor.gateway.world
    job = completed(world)
    agreed(judged(world, job, json.loads(rubrics.written(TIPS))))
    page = await visitor.page()
    await page.goto(address(job))
    await page.get_by_role("link", name="Show it").click()
    await expect(page.locator("#agreement")).to_contain_text("above people's")
    await expect(page.locator("#agreement")).not_to_contain_text(job.spec.model)
    world.judges[job.job_id].judges[0].agreement[0].ratings_to_halve = 44
    for key in ("1", "2", "3", "Enter"):
        await page.keyboard.press(key)
    await expect(page.locator("#agreement")).to_contain_text("About 44 more ratings")
    await expect(page.locator("#rating header")).to_contain_text("1 rated")


@pytest.mark.parametrize(
    ("width", "dark"),
    [
        *((390, False), (1440, True)),
        *(
            pytest.param(*case, marks=pytest.mark.stack)
            for case in ((390, True), (1440, False), (1024, False), (1024, True))
        ),
    ],
)
async def test_every_state_fits_and_axe_finds_nothing_above_minor(visitor: Visitor, width: int, dark: bool) -> None:
    world = visitor.gateway.world
    job = completed(world)
    agreed(judged(world, job, json.loads(rubrics.written(TIPS))))
    odd = odd_rubric()
    rated(world, job.job_id, odd, 1, "m.keller")
    first, *_ = rated(world, job.job_id, TIPS, 3)
    visitor.expected = ("422",)
    page = await visitor.page(dark=dark)
    await page.set_viewport_size({"width": width, "height": 900})
    of_tips, of_odd = (rating.View(job.job_id, rubrics.digest(one)) for one in (TIPS, odd))
    found: dict[str, list[str]] = {}
    for place in (
        f"/jobs/{job.job_id}",
        f"/jobs/{job.job_id}/rate",
        of_tips.address(),
        of_tips.address(answer=first),
        of_odd.address(),
        of_odd.address(answer=f"{job.plan[0].task}:3"),
        of_tips.address("rate/agreement"),
    ):
        await page.goto(place)
        if "?rubric" in place and "agreement" not in place:
            await page.get_by_role("link", name="Show it").click()
            await expect(page.locator("#agreement")).to_contain_text("As it is now")
            if "answer" not in place:
                await page.locator("#rating .primary").click()
                await expect(page.locator("#desk .question .problem").first).to_be_visible()
        wide = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide == 0, place
        await page.evaluate(AXE_SCRIPT)
        told = await page.evaluate(
            "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"
            ".filter(one => one.impact !== 'minor').map(one => one.id + ' ' + one.nodes[0].html.slice(0, 200))"
        )
        if told:
            found[place] = told
    assert not found
    assert await page.evaluate("window.pwned") is None
