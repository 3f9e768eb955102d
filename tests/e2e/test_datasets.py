"""Datasets in a browser: from the file to answers side by side; every page in both themes and on a phone."""

from __future__ import annotations

import json
import re

import pytest
from playwright.async_api import FilePayload, Page, expect

from tests.e2e.conftest import Visitor, press_to
from tests.e2e.every_page import finished
from tests.gateway.fake_world import World
from tests.gateway.fake_world import spec as world_spec
from tests.unit.results.datasets.files.workbooks import texts, workbook
from touchstone.v1 import job_pb2, results_service_pb2

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOSTILE = "<img src=x onerror=alert(1)>.jsonl"


def file_of(rows: int, name: str = "triage.jsonl") -> FilePayload:
    lines = [
        {
            "custom_id": f"case-{n}",
            "prompt": f"Question {n}? <b>bold</b>",
            "reference": "A",
            "metadata": {"ward": f"w{n}"},
        }
        for n in range(rows)
    ]
    data = "\n".join(json.dumps(line) for line in lines).encode()
    return {"name": name, "mimeType": "application/jsonl", "buffer": data}


async def uploaded(page: Page, payload: FilePayload) -> None:
    await page.goto("/datasets")
    await page.locator("#file").set_input_files(payload)
    await page.get_by_role("button", name="Upload").click()
    await expect(page).to_have_url(re.compile(r"/datasets/ds_[0-9a-f]{32}$"))


async def judged_by_keys(page: Page, world: World) -> None:
    """Ten rows from the Overview page: by keys alone, and begun by mouse in five clicks."""
    await page.goto("/overview")
    await press_to(page, page.get_by_role("link", name="Dataset runs"), "Enter")
    boxes = page.locator("#finished input[name=jobs]")
    for box in (boxes.nth(0), boxes.nth(1)):
        await press_to(page, box, "Space")
    await press_to(page, page.get_by_role("button", name="Side by side"), "Enter")
    for number, key in enumerate("12t0121t21", 1):
        await expect(page.locator(".open > header")).to_contain_text(f"row {number} of 40")
        await page.keyboard.press(key)
    await expect(page.locator(".prefer")).to_contain_text("10 of")
    assert [row[6] for row in world.preferences] == [1, 1, 2, 3, 1, 1, 1, 2, 1, 1]
    await page.keyboard.press("k")
    await expect(page.locator(".open > header")).to_contain_text("row 10 of 40")
    await page.keyboard.press("u")
    await expect(page.locator(".prefer")).to_contain_text("9 of")
    await page.keyboard.press("b")
    await expect(page.locator(".open article header").first).to_have_text("Answer 1")
    await page.goto("/overview")
    await page.get_by_role("link", name="Dataset runs").click()
    for box in (boxes.nth(0), boxes.nth(1)):
        await box.click()
    await page.get_by_role("button", name="Side by side").click()
    await page.locator(".prefer button").first.click()
    await expect(page.locator(".open > header")).to_contain_text("row 2 of 40")


def live(world: World) -> list[job_pb2.Job]:
    return [job for job in world.jobs.values() if job.state == job_pb2.Job.STATE_PENDING]


@pytest.mark.stack
async def test_from_an_upload_to_judged_answers_side_by_side(visitor: Visitor) -> None:
    world = visitor.gateway.world
    page = await visitor.page()
    await uploaded(page, file_of(40))
    await expect(page.locator(".preview")).to_contain_text("Question 0? <b>bold</b>")
    await expect(page.locator("#start")).to_be_disabled()
    await page.get_by_label("qwen2.5:7b", exact=True).check()
    await page.get_by_label("gemini-2.5-flash", exact=True).check()
    await page.get_by_label("Temperature").fill("0.2")
    await page.locator("#start").click()
    await expect(page.locator("#active tbody tr")).to_have_count(2)
    first, second = live(world)
    assert {first.spec.model, second.spec.model} == {"qwen2.5:7b", "gemini-2.5-flash"}
    for job in (first, second):
        world.start(job.job_id)
    world.advance(first.job_id, 10)
    bar = page.locator(f"#run-{first.job_id} progress")
    await expect(bar).to_have_attribute("value", "10")
    world.advance(first.job_id, 20)
    await expect(bar).to_have_attribute("value", re.compile("^[23]0$"))
    for job in (first, second):
        world.finish(job.job_id)
    await expect(page.locator("#finished tbody tr")).to_have_count(2)
    await expect(page.locator("#active table")).to_have_count(0)

    await page.get_by_role("link", name="View results").last.click()
    await expect(page.locator("h1")).to_contain_text("triage.jsonl on")
    await page.locator("tr.item", has_text="case-3").first.click()
    opened = page.locator("tr.detail")
    await expect(opened).to_contain_text("w3")
    await page.keyboard.press("1")
    await expect(opened).to_contain_text("golden by local")
    await expect(page.locator("tr.item", has_text="case-3").first.locator(".judged")).to_have_text("golden")
    await page.keyboard.press("2")
    await opened.get_by_label("Corrected answer, for Fix").fill("The answer is A.")
    await page.keyboard.press("Control+Enter")
    await expect(opened).to_contain_text("fix by local")
    (held,) = world.annotations.values()
    assert (held.verdict, held.corrected_answer) == (results_service_pb2.Annotation.VERDICT_FIX, "The answer is A.")
    await page.locator("#metadata_value").fill("w12")
    await page.locator("#metadata_value").press("Enter")
    await expect(page.locator("tr.item")).to_have_count(1)
    await expect(page).to_have_url(re.compile(r"/jobs/[0-9a-f-]{36}\?metadata_value=w12$"))

    await page.get_by_role("link", name="triage.jsonl").first.click()
    for box in await page.locator("#finished input[name=jobs]").all():
        await box.check()
    await page.get_by_role("button", name="Side by side").click()
    await expect(page).to_have_url(re.compile(r"/side-by-side\?jobs=[0-9a-f-]{36},[0-9a-f-]{36}$"))
    await expect(page.locator(".runs-beside tbody tr")).to_have_count(2)
    await expect(page.locator(".viewer .row")).to_have_count(40)
    await judged_by_keys(page, world)


async def test_a_run_that_ends_while_it_is_watched_can_be_scored_again(visitor: Visitor) -> None:
    visitor.expected = ("422",)
    world = visitor.gateway.world
    page = await visitor.page()
    await uploaded(page, file_of(9))
    await page.get_by_label("qwen2.5:7b", exact=True).check()
    await page.locator("#start").click()
    await expect(page.locator("#active tbody tr")).to_have_count(1)
    (job,) = live(world)
    world.start(job.job_id)
    await page.goto(f"/jobs/{job.job_id}")
    await expect(page.locator("#job-strip")).to_contain_text("Exact match so far")
    world.finish(job.job_id)
    await page.get_by_role("button", name="Score again").click()
    sheet = page.locator("#rescore-sheet")
    await expect(sheet.get_by_label("Choices")).to_be_hidden()
    await sheet.get_by_label("Scored by").select_option("numeric")
    await sheet.get_by_label("Tolerance").fill("much")
    await sheet.get_by_role("button", name="Score again").click()
    await expect(sheet).to_contain_text("Tolerance must be a number.")
    await sheet.get_by_label("Scored by").select_option("choice")
    await expect(sheet.get_by_label("Tolerance")).to_be_hidden()
    await sheet.get_by_label("Choices").fill("A, B")
    await sheet.get_by_role("button", name="Score again").click()
    await expect(page).not_to_have_url(re.compile(job.job_id))
    made = world.specs[-1]
    assert (made.reuse.job_id, made.dataset.scoring.scorer) == (job.job_id, "choice")
    assert list(made.dataset.scoring.choices) == ["A", "B"]


async def test_rows_side_by_side_are_found_by_their_metadata(visitor: Visitor) -> None:
    world = visitor.gateway.world
    page = await visitor.page()
    await uploaded(page, file_of(30))
    await page.get_by_label("qwen2.5:7b", exact=True).check()
    await page.get_by_label("llama3.2:3b", exact=True).check()
    await page.locator("#start").click()
    await expect(page.locator("#active tbody tr")).to_have_count(2)
    made = [job.job_id for job in live(world)]
    for job_id in made:
        world.finish(world.start(job_id).job_id)
    address = f"/side-by-side?jobs={','.join(made)}"
    await page.goto(address)
    await page.set_viewport_size({"width": 1280, "height": 900})
    await page.get_by_text("Columns and conditions").click()
    await page.locator("#metadata_value").fill("w12")
    await page.locator("#metadata_value").press("Enter")
    await expect(page.locator(".viewer .row")).to_have_count(1)
    await expect(page).to_have_url(re.compile(re.escape(f"{address}&metadata_value=w12") + "$"))
    await page.get_by_role("link", name="Clear").click()
    await expect(page.locator(".viewer .row")).to_have_count(30)
    await page.goto(f"{address}&field=ward&sort=-ward")
    await expect(page.locator(".viewer .row .asked").first).to_have_text("w9")


async def test_keys_pressed_before_the_next_row_is_there_do_not_judge_this_one_again(visitor: Visitor) -> None:
    world = visitor.gateway.world
    pair = finished(world, world_spec("alpha", limit=5), world_spec("beta", limit=5))
    page = await visitor.page()
    await page.goto(f"/side-by-side?jobs={','.join(pair)}")
    await page.evaluate(
        "for (const key of '10t') document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}))"
    )
    await expect(page.locator(".prefer")).to_contain_text("1 of")
    assert [row[6] for row in world.preferences] == [1]
    await page.keyboard.press("0")
    await expect(page.locator(".prefer")).to_contain_text("2 of")
    await page.keyboard.press("k")
    await expect(page.locator(".prefer [aria-pressed=true]")).to_have_attribute("value", "all_bad")
    await page.keyboard.press("t")
    await expect(page.locator(".viewer .row", has_text="tie")).to_have_count(1)
    assert [row[6] for row in world.preferences][-1] == 2


async def test_a_dropped_file_is_taken_and_its_bad_lines_are_told(visitor: Visitor) -> None:
    visitor.expected = ("400",)
    page = await visitor.page()
    await page.goto("/datasets")
    await page.evaluate(
        """() => {
          const held = new DataTransfer();
          held.items.add(new File(['{"prompt": "a"}\\nno <b>json</b>\\n'], '<b>bad</b>.jsonl'));
          document.getElementById('drop').dispatchEvent(new DragEvent('drop', {dataTransfer: held, bubbles: true}));
        }"""
    )
    await expect(page.locator("#chosen")).to_have_text("<b>bad</b>.jsonl")
    await page.get_by_role("button", name="Upload").click()
    await expect(page.locator("#refused .lines tbody tr")).to_have_text([re.compile("^The line is not JSON.*12$")])
    await expect(page.locator("#preview")).to_be_hidden()
    await expect(page.get_by_role("button", name="Upload")).to_be_enabled()
    assert visitor.gateway.world.datasets == {}
    await page.locator("#file").set_input_files(file_of(2))
    await expect(page.locator("#refused")).to_be_hidden()

    row = {"prompt": "a", "custom_id": "<b onclick=x()>"}
    many = "\n".join(json.dumps(one) for one in [row] * 1200 + [{"prompt": n} for n in range(3)])
    file = FilePayload(name="many.jsonl", mimeType="", buffer=many.encode())
    await page.locator("#file").set_input_files(file)
    counts = [
        re.compile(r'^The id "<b onclick=x\(\)>" is already on line 1. .*1,1992, 3, .*, 21, …$'),
        re.compile("3.*1,203$"),
    ]
    await expect(page.locator("#preview .lines tbody tr")).to_have_text(counts)
    await page.get_by_role("button", name="Upload").click()
    await expect(page.locator("#refused .lines tbody tr")).to_have_text(counts)
    plain = await visitor.page(script=False)
    await plain.goto("/datasets")
    await plain.locator("#file").set_input_files(file)
    await plain.get_by_role("button", name="Upload").click()
    await expect(plain.locator("#refused .lines tbody tr")).to_have_text(counts)


async def test_columns_open_the_template_and_are_named(visitor: Visitor) -> None:
    page = await visitor.page()
    await page.goto("/datasets")
    await expect(page.locator("#template")).to_be_hidden()
    table = b"sum;total\n1 + 1?;2\n"
    await page.locator("#file").set_input_files({"name": "sums.csv", "mimeType": "text/csv", "buffer": table})
    await expect(page.locator("#template")).to_be_visible()
    await expect(page.locator("#columns-found")).to_have_text("Insert sumtotal")
    await page.locator("#columns-found").get_by_role("button", name="sum").click()
    await expect(page.locator("#preview .reading")).to_have_text(
        "CSV with semicolons, read as columns: prompt from the template."
    )
    await expect(page.locator("#preview .first tbody td").nth(1)).to_have_text("1 + 1?")


async def test_another_sheet_of_a_workbook_is_chosen(visitor: Visitor) -> None:
    page = await visitor.page()
    await page.goto("/datasets")
    await expect(page.locator("#sheet")).to_be_hidden()
    sheets = '<sheet name="Notes" sheetId="1" r:id="rId4"/><sheet name="&lt;i&gt;" sheetId="2" r:id="rId1"/>'
    data = workbook(texts(("question", "answer"), ("1 + 1?", "2")), sheets=sheets)
    await page.locator("#file").set_input_files({"name": "a.xlsx", "mimeType": "", "buffer": data})
    await expect(page.locator("#preview .reading")).to_contain_text('The sheet "Notes" has no rows.')
    await page.locator("#sheet").select_option("<i>")
    await expect(page.locator("#preview .reading")).to_contain_text('of the sheet "<i>", number 2 of 2')
    await page.get_by_role("button", name="Take this row").click()
    await expect(page).to_have_url(re.compile(r"/datasets/ds_[0-9a-f]{32}$"))


@pytest.mark.stack
async def test_a_file_is_previewed_and_taken_with_one_click(visitor: Visitor) -> None:
    page = await visitor.page()
    await page.goto("/datasets")
    rows = [{"instruction": f"<b>{n}</b>", "output": "a", "question": "Why?", "answer": "b"} for n in range(7)]
    data = json.dumps(rows).encode()
    await page.locator("#file").set_input_files({"name": "a.csv", "mimeType": "text/csv", "buffer": data})
    await expect(page.locator("#preview .reading")).to_contain_text("can be read as alpaca or question_answer")
    await expect(page.locator("#preview .take")).to_be_hidden()
    await page.get_by_role("button", name="Read as Alpaca").click()
    await expect(page.locator("#preview .reading")).to_have_text(
        "JSON array, read as Alpaca: prompt from instruction, reference from output."
    )
    await expect(page.locator("#preview .fit")).to_have_text("7 of 7 rows fit, 7 with a reference.")
    await expect(page.locator("#preview .first tbody td").nth(1)).to_have_text("<b>0</b>")
    await page.get_by_role("button", name="Take all 7 rows").click()
    await expect(page).to_have_url(re.compile(r"/datasets/ds_[0-9a-f]{32}$"))
    (made,) = visitor.gateway.world.datasets.values()
    assert (made.rows, made.rows_with_reference) == (7, 7)
    assert (made.format, made.reading.startswith("JSON array, read as Alpaca")) == (made.FORMAT_ALPACA, True)


async def test_a_dataset_is_deleted_after_it_is_asked(visitor: Visitor) -> None:
    page = await visitor.page()
    await uploaded(page, file_of(3, HOSTILE))
    await page.goto("/datasets")
    await expect(page.locator(".sets tbody th")).to_have_text(HOSTILE)
    await page.get_by_role("button", name="Delete <img").click()
    await expect(page.get_by_text(f"Delete {HOSTILE}?")).to_be_visible()
    await page.get_by_role("button", name="Delete the dataset").click()
    await expect(page.locator("#datasets")).to_contain_text("No datasets yet")


@pytest.mark.stack
@pytest.mark.parametrize("phone", [False, True])
async def test_nothing_of_finished_runs_lies_outside_the_window(visitor: Visitor, phone: bool) -> None:
    world = visitor.gateway.world
    page = await visitor.page(phone=phone)
    if not phone:
        await page.set_viewport_size({"width": 1280, "height": 900})
    await uploaded(page, file_of(30))
    address, data = page.url, next(iter(world.datasets.values()))
    for scorer in ("exact_match", "token_f1"):
        made = world.add(world_spec("a-model-with-a-long-name-instruct:70b"), "local")
        made.spec.dataset.dataset_id, made.spec.dataset.name = data.dataset_id, data.name
        made.spec.dataset.scoring.scorer, made.spec.labels["pilot"] = scorer, "0"
        world.finish(world.start(made.job_id).job_id)
    made.spec.reuse.job_id = made.job_id
    world.results[made.job_id].items_reused = 30
    for shown, label in ((address, "Finished runs"), ("/jobs", "Jobs"), (f"/jobs/{made.job_id}#items", "Items")):
        await page.goto(shown)
        table = page.get_by_role("region", name=label)
        await expect(table).to_be_visible()
        if not (phone and label == "Items"):
            width = await table.evaluate("one => one.scrollWidth - one.clientWidth")
            assert width <= 0, f"{label}: {width} px lie outside"
    strip = await page.locator("#job-strip").evaluate("one => one.scrollWidth - one.clientWidth")
    assert strip <= 0, f"the strip is {strip} px too narrow"
    for button in await page.locator("#job-actions > *:visible").all():
        assert await button.evaluate("one => one.getBoundingClientRect().right <= innerWidth")


@pytest.mark.stack
@pytest.mark.parametrize(("dark", "phone"), [(False, False), (True, True)])
async def test_pages_of_datasets_fit_their_window(visitor: Visitor, dark: bool, phone: bool) -> None:
    world = visitor.gateway.world
    page = await visitor.page(dark=dark, phone=phone)
    await uploaded(page, file_of(30, "a-name-without-any-space-" * 6 + ".jsonl"))
    address = page.url
    await page.get_by_label("qwen2.5:7b", exact=True).check()
    await page.get_by_label("llama3.2:3b", exact=True).check()
    await page.locator("#start").click()
    await expect(page.locator("#active tbody tr")).to_have_count(2)
    made = [job.job_id for job in live(world)]
    for job_id in made:
        world.finish(world.start(job_id).job_id)
    for shown in ("/datasets", address, f"/jobs/{made[0]}", f"/side-by-side?jobs={','.join(made)}"):
        await page.goto(shown)
        width = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert width <= 0, f"{shown} is {width} px wider than its window"


async def test_the_form_asks_what_the_assistants_last_message_is(visitor: Visitor) -> None:
    page = await visitor.page()
    tuning = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]
    data = json.dumps({"messages": tuning}).encode()
    payload: FilePayload = {"name": "tuning.jsonl", "mimeType": "application/jsonl", "buffer": data}
    await page.goto("/datasets")
    choice = page.get_by_label("Assistant’s last message")
    await page.locator("#file").set_input_files(file_of(1))
    await expect(choice).not_to_have_attribute("required", "")
    await page.locator("#file").set_input_files(payload)
    await expect(page.locator("#last-note")).to_have_text("Rows of this file have one. Choose.")
    await page.get_by_role("button", name="Upload").click()
    await expect(page).to_have_url(re.compile(r"/datasets$"))
    await choice.select_option("reference")
    await page.get_by_role("button", name="Upload").click()
    await expect(page).to_have_url(re.compile(r"/datasets/ds_[0-9a-f]{32}$"))
    assert visitor.gateway.world.options[-1].last_assistant == job_pb2.LAST_ASSISTANT_REFERENCE
