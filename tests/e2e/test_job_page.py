"""The Job page in a browser: live, stoppable, safe against what models write."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress

import pytest
from playwright.async_api import Error, Route, expect

from tests.e2e.conftest import PATIENCE_MS, Visitor
from tests.gateway.fake_data import HOSTILE
from tests.gateway.fake_world import spec
from tests.gateway.test_pages_answers import WITH_TOOLS
from tests.gateway.test_pages_datasets import dataset_of, run_over
from tests.gateway.test_pages_judges import completed, judged
from touchstone.v1 import item_result_pb2, job_pb2, scoring_pb2

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_figures_move_while_the_job_runs_and_metrics_replace_them_at_its_end(visitor: Visitor) -> None:
    world = visitor.gateway.world
    job = world.start(world.add(spec("qwen2.5:7b", "demo"), "local").job_id)
    world.advance(job.job_id, 160)
    page = await visitor.page()
    await page.goto(f"/jobs/{job.job_id}")
    figure = page.locator("#job-progress .figure")
    await expect(figure).to_have_text("10 %")
    world.advance(job.job_id, 640)
    await expect(figure).to_have_text("50 %")
    await expect(page.locator("#job-strip")).to_contain_text("Accuracy so far")
    world.finish(job.job_id)
    await expect(page.locator("#job-head")).to_contain_text("completed")
    await expect(figure).to_have_text("100 %")
    await expect(page.locator("#job-strip")).to_contain_text("Suite score")
    await expect(page.locator("#job-strip .value").first).to_have_text("79.5")
    await expect(page.locator("#job-actions")).not_to_contain_text("Stop")
    await expect(page.locator("#items nav")).to_contain_text("1,600")


async def test_stop_asks_first_and_then_cancels(visitor: Visitor) -> None:
    world = visitor.gateway.world
    job = world.start(world.add(spec("qwen2.5:7b", "demo"), "local").job_id)
    page = await visitor.page()
    await page.goto(f"/jobs/{job.job_id}")
    await page.get_by_role("button", name="Stop", exact=True).click()
    await expect(page.get_by_text("Stop this job?")).to_be_visible()
    assert job.state == job_pb2.Job.STATE_RUNNING
    await page.get_by_role("button", name="Stop the job").click()
    await expect(page.locator("#job-head")).to_contain_text("cancelled")
    assert job.state == job_pb2.Job.STATE_CANCELLED
    await page.get_by_role("button", name="Run what is missing").click()
    await expect(page.locator("#job-head")).to_contain_text("pending")
    assert job.attempt == 2


async def test_one_click_scores_unread_answers_again_by_the_offered_layer(visitor: Visitor) -> None:
    world = visitor.gateway.world
    job = world.start(world.add(spec("qwen2.5:7b", "demo"), "local").job_id)
    world.finish(job.job_id)
    result = world.results[job.job_id]
    result.caution = "31.0% of the answers could not be read"
    result.offer = "The marked layer would read 120 of the 310 unread answers, the lenient one 260."
    result.offered_reading = scoring_pb2.READING_LENIENT
    page = await visitor.page()
    await page.goto(f"/jobs/{job.job_id}")
    await expect(page.locator("#job-notice")).to_contain_text(result.offer)
    await page.get_by_role("button", name="Score again by the lenient layer").click()
    await page.wait_for_url(lambda url: not url.endswith(job.job_id))
    made = world.specs[-1]
    assert (made.reuse.job_id, made.reading) == (job.job_id, scoring_pb2.READING_LENIENT)


@pytest.mark.parametrize("phone", [False, True])
async def test_intervals_around_zero_are_not_cut(visitor: Visitor, phone: bool) -> None:
    world = visitor.gateway.world
    job = world.finish(world.start(world.add(spec("qwen2.5:7b", "demo"), "local").job_id).job_id)
    page = await visitor.page(phone=phone)
    await page.goto(f"/jobs/{job.job_id}")
    for cell in await page.locator(".tasks td.range").all():
        fits = "one => { one.textContent = '−32.4 to 27.0'; return one.scrollWidth <= one.clientWidth; }"
        assert await cell.evaluate(fits), await cell.evaluate("one => one.parentElement.textContent")


async def test_what_a_model_writes_is_shown_as_text(visitor: Visitor) -> None:
    world = visitor.gateway.world
    job = world.start(world.add(spec("qwen2.5:7b", "demo"), "local").job_id)
    world.advance(job.job_id, 50)
    page = await visitor.page()
    await page.goto(f"/jobs/{job.job_id}")
    await page.locator("tr.item").nth(3).click()
    opened = page.locator("tr.detail pre").last
    await expect(opened).to_contain_text('<img src=x onerror="window.pwned=1"><script>')
    await expect(page.locator("tr.detail")).to_contain_text("How it was read")
    assert await page.evaluate("window.pwned") is None
    assert await page.locator("tr.detail img, tr.detail script").count() == 0
    await expect(page.locator("#job-head h1")).to_contain_text("Demo on qwen2.5:7b")
    await page.locator("tr.item").nth(3).click()
    await expect(page.locator("tr.detail")).to_have_count(0)


async def test_an_opened_row_stays_open_while_the_job_goes_on(visitor: Visitor) -> None:
    world = visitor.gateway.world
    job = world.start(world.add(spec("qwen2.5:7b", "demo"), "local").job_id)
    world.advance(job.job_id, 50)
    page = await visitor.page()
    await page.goto(f"/jobs/{job.job_id}")
    await page.locator("tr.item").nth(1).click()
    await expect(page.locator("tr.detail")).to_have_count(1)
    world.advance(job.job_id, 700)
    await expect(page.locator("#job-progress .figure")).to_have_text("46 %")
    await asyncio.sleep(2)
    await expect(page.locator("tr.detail")).to_have_count(1)


async def test_counts_follow_and_new_items_are_offered_beside_an_open_row(visitor: Visitor) -> None:
    world = visitor.gateway.world
    job = world.start(world.add(spec("qwen2.5:7b", "demo"), "local").job_id)
    world.advance(job.job_id, 150)
    page = await visitor.page()
    await page.goto(f"/jobs/{job.job_id}")
    await expect(page.locator(".beat")).to_contain_text("live")
    await expect(page.locator("#fresh")).to_be_hidden()
    await page.locator("tr.item").nth(1).click()
    await page.locator("#items nav a", has_text="Failures").focus()
    world.advance(job.job_id, 250)
    await expect(page.locator("#count-all")).to_have_text("400")
    await expect(page.locator("#fresh")).to_have_text("250 new items")
    await expect(page.locator("tr.detail")).to_have_count(1)
    await expect(page.locator("#items nav a", has_text="Failures")).to_be_focused()
    await page.locator("#fresh").click()
    await expect(page.locator("#fresh")).to_be_hidden()
    await page.locator("#find").fill("(item 17)")
    await expect(page.locator("tr.item")).to_have_count(1)
    world.advance(job.job_id, 100)
    await expect(page.locator("#job-progress")).to_contain_text("500")
    await asyncio.sleep(2.5)
    await expect(page.locator("#count-all")).to_have_text("1")
    await expect(page.locator("#find")).to_have_value("(item 17)")


async def test_rows_are_filtered_searched_and_continued(visitor: Visitor) -> None:
    world = visitor.gateway.world
    job = world.start(world.add(spec("qwen2.5:7b", "demo"), "local").job_id)
    world.finish(job.job_id)
    page = await visitor.page()
    await page.goto(f"/jobs/{job.job_id}")
    await expect(page.locator("tr.item")).to_have_count(100)
    await page.locator("#more").scroll_into_view_if_needed()
    await expect(page.locator("tr.item").nth(150)).to_be_attached()
    await page.locator("#items nav a", has_text="Unparsed").click()
    await expect(page.locator("#items nav [aria-current]")).to_contain_text("Unparsed")
    await expect(page).to_have_url(f"{visitor.gateway.url}/jobs/{job.job_id}?items=unparsed")
    await expect(page.locator("tr.item .tag.warn").first).to_have_text("unparsed")
    await page.locator("#items nav a", has_text="All").click()
    await page.keyboard.press("Escape")
    await page.locator("#find").fill("(item 17)")
    await expect(page.locator("tr.item")).to_have_count(4)
    await page.go_back()
    await expect(page.locator("#items nav [aria-current]")).to_contain_text("Unparsed")


async def test_a_search_typed_before_the_filters_answer_searches_within_the_chosen_filter(visitor: Visitor) -> None:
    world = visitor.gateway.world
    job = world.start(world.add(spec("qwen2.5:7b", "demo"), "local").job_id)
    world.finish(job.job_id)
    page = await visitor.page()
    await page.goto(f"/jobs/{job.job_id}?items=unparsed")
    searched, held = asyncio.Event(), []

    async def hold(route: Route) -> None:
        """Answers to what is clicked come only after the search has been asked."""
        if "q=" in route.request.url:
            searched.set()
        else:
            held.append(route.request.url)
            await searched.wait()
        with suppress(Error):  # The browser may have given the request up.
            await route.continue_()

    await page.route(re.compile(r"/items\b"), hold)
    await page.locator("#items nav a", has_text="All").click()
    await page.locator("#find").fill("(item 17)")
    await expect(page.locator("tr.item")).to_have_count(4)
    assert len(held) == 1, "the click was asked first"
    await expect(page.locator("#items nav [aria-current]")).to_contain_text("All")
    await expect(page.locator("#find")).to_have_value("(item 17)")
    await expect(page).to_have_url(f"{visitor.gateway.url}/jobs/{job.job_id}?q=%28item+17%29")
    await page.reload()
    await expect(page.locator("tr.item")).to_have_count(4)
    await page.go_back()
    await expect(page.locator("#items nav [aria-current]")).to_contain_text("Unparsed")


async def test_rows_that_were_to_follow_another_filter_are_not_added(visitor: Visitor) -> None:
    world = visitor.gateway.world
    job = world.start(world.add(spec("qwen2.5:7b", "demo"), "local").job_id)
    world.finish(job.job_id)
    page = await visitor.page()
    await page.goto(f"/jobs/{job.job_id}")
    asked = asyncio.Event()

    async def hold(route: Route) -> None:
        """More rows of all items never come."""
        if "after=" in route.request.url and "failures" not in route.request.url:
            asked.set()
        else:
            await route.continue_()

    await page.route(re.compile(r"/items\b"), hold)
    await page.locator("#more").scroll_into_view_if_needed()
    await asyncio.wait_for(asked.wait(), 60)
    async with page.expect_event("requestfailed", lambda request: "after=" in request.url, timeout=10_000):
        await page.locator("#items nav a", has_text="Failures").click()
    await expect(page.locator("#items nav [aria-current]")).to_contain_text("Failures")
    await page.locator("#more").scroll_into_view_if_needed()
    await expect(page.locator("tr.item").nth(150)).to_be_attached()


async def test_figures_stay_and_say_their_time_while_the_scheduler_is_away(visitor: Visitor) -> None:
    gateway = visitor.gateway
    job = gateway.world.start(gateway.world.add(spec("qwen2.5:7b", "demo"), "local").job_id)
    gateway.world.advance(job.job_id, 800)
    page = await visitor.page()
    await page.goto(f"/jobs/{job.job_id}")
    await expect(page.locator(".beat")).to_contain_text("live")
    await gateway.stop_service("scheduler")
    await expect(page.locator(".beat")).to_have_text("reconnecting")
    await expect(page.locator("#silence")).to_contain_text("Figures are from ")
    await expect(page.locator("#job-progress .figure")).to_have_text("50 %")
    await gateway.start_service("scheduler")
    gateway.world.advance(job.job_id, 80)
    await expect(page.locator("#job-progress .figure")).to_have_text("55 %")
    await expect(page.locator(".beat")).to_have_text("live")


async def test_a_conversation_with_a_picture_and_tools_is_read_without_a_script_of_it_running(visitor: Visitor) -> None:
    dataset = await dataset_of(visitor.gateway, WITH_TOOLS)
    job = run_over(visitor.gateway, dataset)
    visitor.gateway.world.finish(job.job_id)
    page = await visitor.page()
    await page.goto(f"/jobs/{job.job_id}")
    await page.get_by_role("link", name="case-0").click()
    opened = page.locator(".opened")
    picture = opened.get_by_role("img", name="image/png")
    await expect(picture).to_be_visible()
    assert await picture.evaluate("image => image.complete && image.naturalWidth") == 1
    await expect(opened).to_contain_text("calls look_up")
    await opened.get_by_text("1 tool offered").click()
    await expect(opened).to_contain_text('"title": "<b>"')
    await opened.get_by_text("Log-probabilities, 1 token").click()
    await expect(opened.get_by_text("-0.250")).to_be_visible()
    assert await page.evaluate("window.pwned") is None


@pytest.mark.parametrize("phone", [False, True])
async def test_judges_are_read_whatever_they_write(visitor: Visitor, phone: bool) -> None:
    world = visitor.gateway.world
    job = completed(world)
    run = judged(world, job)
    run.rubric.instructions = run.rubric.criteria[0].examples[0].why = HOSTILE
    run.judgements.add(number=1, outcome=item_result_pb2.OUTCOME_UNPARSED, response=5 * HOSTILE)
    page = await visitor.page(phone=phone)
    await page.goto(f"/jobs/{job.job_id}")
    section = page.locator("#job-judges")
    await expect(section).to_contain_text("3.9 of 1–5")
    await section.get_by_text("Rubric tip-v1").click()
    await expect(section.locator("p.words").first).to_have_text(HOSTILE)
    assert await page.evaluate("document.documentElement.scrollWidth") <= (390 if phone else 1440)
    await page.goto(f"/jobs/{job.job_id}/items/{job.plan[0].task}/1")
    opinions = page.locator(".opinions")
    await expect(opinions).to_contain_text("moves no score")
    await opinions.locator("summary").click()
    await expect(opinions.locator("pre")).to_have_text(5 * HOSTILE)
    assert await page.evaluate("document.documentElement.scrollWidth") <= (390 if phone else 1440)
    assert await page.evaluate("window.pwned") is None


async def test_judges_follow_what_happens(visitor: Visitor) -> None:
    world = visitor.gateway.world
    job = completed(world)
    run = judged(world, job)
    run.job.state = job_pb2.Job.STATE_RUNNING
    page = await visitor.page()
    await page.goto(f"/jobs/{job.job_id}")
    section = page.locator("#job-judges")
    await expect(section).to_contain_text("running")
    run.job.state = job_pb2.Job.STATE_COMPLETED
    world.finish(world.start(world.add(spec("qwen2.5:7b", "demo"), "local").job_id).job_id)
    await expect(section).to_contain_text("completed")


async def test_what_happens_during_a_slow_answer_is_shown_after_it(visitor: Visitor) -> None:
    world = visitor.gateway.world
    job = completed(world)
    run = judged(world, job)
    run.job.state = job_pb2.Job.STATE_RUNNING
    page = await visitor.page()
    await page.goto(f"/jobs/{job.job_id}")
    asked, answered = asyncio.Event(), asyncio.Event()

    async def slow(route: Route) -> None:
        response = await route.fetch(timeout=PATIENCE_MS)
        asked.set()
        await answered.wait()
        await route.fulfill(response=response)

    await page.route("**/judges", slow, times=1)
    other = world.start(world.add(spec("qwen2.5:7b", "demo"), "local").job_id)
    await asyncio.wait_for(asked.wait(), PATIENCE_MS / 1000)
    run.job.state = job_pb2.Job.STATE_COMPLETED
    world.finish(other.job_id)
    # The section is asked for every three seconds at the most, and pages hear every two seconds.
    await asyncio.sleep(6)
    answered.set()
    await expect(page.locator("#job-judges")).to_contain_text("completed")


@pytest.mark.parametrize("script", [True, False])
async def test_a_rubric_that_is_refused_stays_until_it_is_right(visitor: Visitor, script: bool) -> None:
    visitor.expected = ("422",)
    job = completed(visitor.gateway.world)
    page = await visitor.page(script=script)
    await page.goto(f"/jobs/{job.job_id}")
    await page.get_by_role("link", name="Judge these answers").click()
    await page.get_by_label("Model that judges").select_option("ollama|mistral:7b")
    rubric = page.get_by_label("Rubric, as JSON")
    await expect(rubric).to_be_hidden()
    await page.get_by_label("A rubric of your own").check()
    example = await rubric.input_value()
    await rubric.fill("{}")
    await page.get_by_role("button", name="Start the judge").click()
    await expect(page.locator("#rubric-problem")).to_contain_text("The rubric needs a version")
    await expect(rubric).to_have_value("{}")
    await rubric.fill(example)
    await page.get_by_role("button", name="Start the judge").click()
    await expect(page.locator("main")).to_contain_text(f"Judges the answers of\xa0job {job.job_id[-8:]}")
