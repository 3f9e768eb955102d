"""Run, Leaderboard and History in a browser; every page in both themes and on a phone."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Browser, expect

from tests.e2e.conftest import Visitor, visit
from tests.gateway.fake_world import busy_world, spec
from tests.gateway.gateway_server import running
from touchstone.v1 import job_pb2, results_service_pb2

pytestmark = pytest.mark.asyncio(loop_scope="session")
STACK = pytest.mark.stack


async def test_starting_two_models_makes_two_jobs_with_the_settings(visitor: Visitor) -> None:
    page = await visitor.page()
    await page.goto("/run")
    await page.locator(".cards label", has_text="ollama").click()
    await page.get_by_label("llama3.2:3b").check()
    await expect(page.get_by_role("button", name="Start job")).to_be_visible()
    await page.get_by_label("qwen2.5:7b").check()
    await page.get_by_label("Temperature").fill("0.1")
    await page.get_by_label("Temperature").press("Tab")
    await expect(page.get_by_role("button", name="Start 2 jobs")).to_be_visible()
    await page.get_by_role("button", name="Start 2 jobs").click()
    await expect(page).to_have_url(re.compile(r"/jobs$"))
    specs = visitor.gateway.world.specs
    assert [s.model for s in specs] == ["qwen2.5:7b", "llama3.2:3b"]
    assert {(s.endpoint, s.suite.suite, round(s.sampling.temperature, 3)) for s in specs} == {("ollama", "glue", 0.1)}


async def test_a_click_anywhere_in_a_models_row_ticks_it_and_start_waits_for_one(visitor: Visitor) -> None:
    page = await visitor.page()
    await page.goto("/run?endpoint=ollama&suite=glue")
    start = page.locator("#start")
    await expect(start).to_be_disabled()
    await expect(start.get_by_text("Start job")).to_be_visible()
    row = page.locator(".models tbody tr", has_text="qwen2.5:7b")
    await row.locator("td").last.click()
    await expect(row.get_by_role("checkbox")).to_be_checked()
    await expect(start).to_be_enabled()
    await expect(page.locator(".estimate")).to_contain_text("No completed run of qwen2.5:7b")
    await row.locator("td").last.click()
    await expect(page.locator(".estimate")).to_contain_text("Choose a model.")
    await expect(start).to_be_disabled()


async def test_a_wrong_setting_is_named_under_its_field_and_starts_nothing(visitor: Visitor) -> None:
    visitor.expected = ("422",)
    page = await visitor.page()
    await page.goto("/run?endpoint=ollama&suite=glue&model=qwen2.5%3A7b")
    await page.get_by_label("Top K").fill("140")
    await page.keyboard.press("Control+Enter")
    await expect(page.locator(".field.wrong .problem")).to_have_text("Top K must be between 0 and 100.")
    assert visitor.gateway.world.specs == []
    await page.get_by_label("Top K").fill("40")
    await page.get_by_role("button", name="Start job").click()
    await expect(page).to_have_url(re.compile(r"/jobs/[0-9a-f-]{36}$"))
    assert [s.sampling.top_k for s in visitor.gateway.world.specs] == [40]


async def test_an_empty_leaderboard_starts_the_baselines(visitor: Visitor) -> None:
    page = await visitor.page()
    await page.goto("/leaderboard?suite=glue")
    await expect(page.get_by_role("heading", name="No GLUE runs yet")).to_be_visible()
    await page.get_by_role("button", name="Run the baselines").dblclick()
    await expect(page).to_have_url(re.compile(r"/jobs$"))
    specs = visitor.gateway.world.specs
    assert sorted(s.model for s in specs) == ["bag-of-words", "majority", "random"]
    assert {s.suite.suite for s in specs} == {"glue"}


async def test_leaderboard_choices_are_in_the_address_and_back_returns(visitor: Visitor) -> None:
    visitor.gateway.world.boards = busy_world().boards
    page = await visitor.page()
    await page.goto("/leaderboard?suite=glue")
    await expect(page.locator("tbody .tag.dashed")).to_have_count(2)
    await page.get_by_role("checkbox", name="Baselines").uncheck()
    await expect(page.locator("tbody .tag.dashed")).to_have_count(0)
    await expect(page).to_have_url(re.compile("show=unranked"))
    await page.locator("#suite").select_option("demo")
    await expect(page.get_by_role("heading", name="No Demo runs yet")).to_be_visible()
    await page.go_back()
    await expect(page.locator("tbody .rank").first).to_have_text("1")


async def test_pages_work_without_script(visitor: Visitor) -> None:
    page = await visitor.page(script=False)
    await page.goto("/run?endpoint=baselines&suite=demo")
    await page.get_by_label("majority").check()
    await page.get_by_role("button", name="Start").click()
    await expect(page.locator("#job-head")).to_contain_text("Demo on majority")
    assert [s.model for s in visitor.gateway.world.specs] == ["majority"]


async def test_the_theme_switch_holds_over_pages(visitor: Visitor) -> None:
    page = await visitor.page()
    await page.goto("/run")
    ground = "getComputedStyle(document.body).backgroundColor || ''"
    for expected in ("light", "dark"):
        await page.locator("[data-theme-switch]").click()
        await expect(page.locator("html")).to_have_attribute("data-theme", expected)
    await page.goto("/leaderboard")
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert await page.evaluate(ground) is not None


@pytest.mark.stack
@pytest.mark.parametrize(
    ("dark", "phone"),
    [(False, False), pytest.param(True, False, marks=STACK), pytest.param(False, True, marks=STACK), (True, True)],
)
async def test_no_page_scrolls_sideways_or_breaks_the_policy(browser: Browser, dark: bool, phone: bool) -> None:
    world = busy_world()
    by_state = {job.state: job.job_id for job in world.jobs.values()}
    addresses = ["/leaderboard", "/leaderboard?suite=demo", "/run?endpoint=ollama&suite=glue&limit=400", "/jobs"]
    addresses += [f"/jobs/{job_id}" for job_id in by_state.values()]
    assert job_pb2.Job.STATE_FAILED in by_state
    async with running(world) as gateway, visit(browser, gateway) as visitor:
        page = await visitor.page(dark=dark, phone=phone)
        for address in addresses:
            await page.goto(address)
            await expect(page.locator("main h1, main h2").first).to_be_visible()
            width, room = await page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert width <= room, address
        ground = await page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert ground == ("rgb(17, 19, 21)" if dark else "rgb(251, 251, 249)")


async def test_on_a_phone_the_sidebar_is_a_drawer(visitor: Visitor) -> None:
    page = await visitor.page(phone=True)
    await page.goto("/run")
    side = page.locator("#side")
    await expect(side).to_be_hidden()
    await page.get_by_role("button", name="Pages").click()
    await expect(side).to_be_visible()
    await side.get_by_role("link", name="History").click()
    await expect(page.get_by_role("heading", name="History")).to_be_visible()


async def test_history_filters_are_in_the_address_and_back_returns(browser: Browser) -> None:
    async with running(busy_world()) as gateway, visit(browser, gateway) as visitor:
        page = await visitor.page()
        await page.goto("/jobs")
        rows = page.locator(".list tbody tr")
        every = await rows.count()
        await page.locator("#status").select_option("completed")
        await expect(page).to_have_url(re.compile("status=completed"))
        await expect(page.locator(".tag.live")).to_have_count(0)
        await page.locator("#query").press_sequentially("GEMMA", delay=40)
        await expect(page).to_have_url(re.compile("query=GEMMA"))
        await expect(rows).to_have_count(2)
        await expect(rows.first.locator("td.score")).to_contain_text("73.4")
        await expect(page.locator("#query")).to_be_focused()
        await page.reload()
        await expect(rows).to_have_count(2)
        await page.goto("/jobs")
        await expect(rows).to_have_count(every)
        await page.go_back()
        await expect(page.locator("#query")).to_have_value("GEMMA")
        await expect(rows).to_have_count(2)


@pytest.mark.parametrize("script", [True, False])
async def test_selected_jobs_of_history_are_retried_and_cancelled(browser: Browser, script: bool) -> None:
    world = busy_world()
    failed = next(job for job in world.jobs.values() if job.state == job_pb2.Job.STATE_FAILED)
    running_ones = [job for job in world.jobs.values() if job.state == job_pb2.Job.STATE_RUNNING]
    async with running(world) as gateway, visit(browser, gateway) as visitor:
        page = await visitor.page(script=script)
        await page.goto("/jobs?suite=glue")
        for column in ("accuracy", "f1"):
            await expect(page.locator(f"th.{column}")).to_be_in_viewport()
        for job in (failed, *running_ones):
            await page.locator(f"#job-{job.job_id} .pick input").check()
        if script:
            for words, enabled in (("Compare 3", False), ("Retry 1", True), ("Cancel 2", True)):
                await expect(page.get_by_role("button", name=words)).to_be_enabled(enabled=enabled)
        await page.locator("[data-act=retry]").click()
        await expect(page.locator(f"#job-{failed.job_id} .state")).to_contain_text("pending")
        await expect(page).to_have_url(re.compile("/jobs\\?suite=glue$"))
        for job in running_ones:
            await page.locator(f"#job-{job.job_id} .pick input").check()
        await page.locator("[data-act=cancel]").click()
        await page.get_by_role("button", name="Cancel the jobs").click()
        await expect(page.locator("#history .tag.live")).to_have_count(0)
        assert {job.state for job in running_ones} == {job_pb2.Job.STATE_CANCELLED}
        await page.locator(f"#job-{failed.job_id}").get_by_role("link", name="again with changes").click()
        await expect(page).to_have_url(re.compile(f"/run\\?from={failed.job_id}"))


async def test_the_item_set_of_the_board_is_in_the_address(browser: Browser) -> None:
    world = busy_world()
    world.item_sets = [
        results_service_pb2.ItemSet(
            item_set="7f3ac1d9", items=2933, published_items=58379, subset=True, configurations=11
        ),
        results_service_pb2.ItemSet(item_set="aa00bb11", items=58379, published_items=58379, configurations=2),
    ]
    async with running(world) as gateway, visit(browser, gateway) as visitor:
        page = await visitor.page()
        await page.goto("/leaderboard?suite=glue")
        await page.locator("#item_set").select_option("aa00bb11")
        await expect(page).to_have_url(re.compile("item_set=aa00bb11"))
        await expect(page.locator(".set")).to_have_text("aa00bb")
        asked = [one for one in world.asked if isinstance(one, results_service_pb2.GetLeaderboardRequest)]
        assert asked[-1].item_set == "aa00bb11"
        await page.go_back()
        await expect(page.locator(".set")).to_have_text("7f3ac1")


async def test_the_palette_the_shortcuts_and_titles_by_keyboard_alone(visitor: Visitor) -> None:
    world = visitor.gateway.world
    job = world.start(world.add(spec("qwen2.5:7b", "demo"), "local").job_id)
    world.advance(job.job_id, 160)
    page = await visitor.page()
    await page.goto("/queue")
    await page.keyboard.press("?")
    await expect(page.locator("#shortcuts")).to_contain_text("Judge the open answer")
    await page.keyboard.press("Escape")
    await expect(page.locator("#shortcuts")).to_be_hidden()
    await page.keyboard.press("Control+k")
    text = page.get_by_role("combobox", name="Job, model")
    await expect(text).to_be_focused()
    await page.keyboard.type("compare?")
    await expect(text).to_have_value("compare?")
    await expect(page.locator("#shortcuts")).to_be_hidden()
    await expect(page.locator("#found")).to_contain_text("Nothing fits")
    await page.keyboard.press("Backspace")
    chosen = page.locator("#found [aria-selected=true]")
    await expect(chosen).to_have_text("Compare jobs")
    await page.keyboard.press("Control+a")
    await page.keyboard.type("demo")
    await expect(page.locator("#found")).to_have_attribute("data-asked", "demo")
    await expect(chosen).to_contain_text("Demo on qwen2.5:7b")
    await page.keyboard.press("ArrowUp")
    await expect(chosen).to_contain_text("leaderboard")
    await page.keyboard.press("ArrowDown")
    await expect(text).to_have_attribute("aria-activedescendant", str(await chosen.get_attribute("id")))
    await page.keyboard.press("Enter")
    await expect(page).to_have_title("10 % · Demo on qwen2.5:7b · Touchstone")
    world.advance(job.job_id, 640)
    await expect(page).to_have_title("50 % · Demo on qwen2.5:7b · Touchstone")
    world.finish(job.job_id)
    await expect(page).to_have_title("Demo on qwen2.5:7b · Touchstone")
