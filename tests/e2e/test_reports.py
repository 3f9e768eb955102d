"""Reports in a browser without a network: every figure of the page is in the file, and it prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Route

from tests.e2e.conftest import Visitor, visit
from tests.gateway.fake_data import HOSTILE
from tests.gateway.fake_world import busy_world, spec
from tests.gateway.gateway_server import Running, running
from touchstone.v1 import job_pb2

pytestmark = pytest.mark.asyncio(loop_scope="session")
_FIGURE = re.compile(r"[−+]?\d[\d,.]*(?:–\d[\d.]*)?")
_SHOWN = "all => all.map((one) => one.innerText).join('\\n')"


async def saved(visitor: Visitor, address: str, folder: Path) -> Path:
    """The report as the gateway sends it, in a file."""
    answer = await visitor.gateway.client.get(address, headers={"Accept": "text/html"})
    assert answer.status_code == 200, answer.text
    assert "<script" not in answer.text
    assert re.search(r'filename="touchstone-[\w.-]+\.html"', answer.headers["content-disposition"])
    path = folder / "report.html"
    path.write_text(answer.text)
    return path


async def figures(page: Page, parts: str) -> set[str]:
    return set(_FIGURE.findall(await page.locator(parts).evaluate_all(_SHOWN)))


async def opened(visitor: Visitor, path: Path, *, dark: bool = False) -> tuple[Page, list[str]]:
    """The file in a browser that reaches nothing, and what it tried to reach."""
    page = await visitor.page(dark=dark)
    reached: list[str] = []

    async def refuse(route: Route) -> None:
        if route.request.url != path.as_uri():
            reached.append(route.request.url)
            await route.abort()
        else:
            await route.continue_()

    await page.route("**/*", refuse)
    await page.goto(path.as_uri())
    return page, reached


def compared(gateway: Running, *models: str) -> list[str]:
    world = gateway.world
    return [
        world.finish(world.start(world.add(spec(model, limit=5), "local").job_id).job_id).job_id for model in models
    ]


@pytest.mark.stack
async def test_the_report_of_a_job_holds_the_pages_figures_and_prints(browser: Browser, tmp_path: Path) -> None:
    world = busy_world()
    whole, *_ = (job for job in world.jobs.values() if job.spec.model == "qwen2.5:7b" and job.finished_at.seconds)
    bounded, *_ = (job for job in world.jobs.values() if job.incomplete)
    failed, *_ = (job for job in world.jobs.values() if job.state == job_pb2.Job.STATE_FAILED)
    async with running(world) as gateway, visit(browser, gateway) as visitor:
        for job in (whole, bounded, failed):
            live = await visitor.page()
            await live.goto(f"/jobs/{job.job_id}")
            told = await figures(live, "#job-strip .value, #job-strip .range, #job-tasks td, #job-receipt dd")
            page, reached = await opened(
                visitor, await saved(visitor, f"/jobs/{job.job_id}/report.html", tmp_path), dark=job is bounded
            )
            assert len(told) > 20
            assert told - await figures(page, "main") == set()
            assert reached == []
            text = await page.locator("main").inner_text()
            assert job.job_id in text
            assert job.receipt.model_digest in text
            assert "touchstone run --suite glue" in text
            assert job.reason in text
            for width in (390, 1024, 1440):
                await page.set_viewport_size({"width": width, "height": 900})
                assert await page.evaluate("document.documentElement.scrollWidth") <= width, width
            assert (await page.pdf(prefer_css_page_size=True)).startswith(b"%PDF")


@pytest.mark.stack
async def test_the_report_of_a_comparison_holds_the_pages_figures(visitor: Visitor, tmp_path: Path) -> None:
    gateway = visitor.gateway
    ids = compared(gateway, "alpha", HOSTILE, "gamma")
    for job_ids in (ids, ids[::2]):
        live = await visitor.page()
        query = f"jobs={','.join(job_ids)}&margin=0.02"
        await live.goto(f"/compare?{query}")
        told = await figures(live, ".verdict, .evidence, .below")
        page, reached = await opened(visitor, await saved(visitor, f"/compare/report.html?{query}", tmp_path))
        assert len(told) > 15
        assert told - await figures(page, "main") == set()
        assert reached == []
        assert await page.evaluate("window.pwned") is None
        text = await page.locator("main").inner_text()
        assert all(job_id in text for job_id in job_ids)
        assert "--margin 0.02" in text
        await page.emulate_media(media="print")
        await page.set_viewport_size({"width": 703, "height": 900})
        assert await page.evaluate("document.documentElement.scrollWidth") <= 703
        assert await figures(page, "main") >= told


async def test_what_has_no_report_says_why(visitor: Visitor) -> None:
    gateway = visitor.gateway
    waiting = gateway.world.add(spec(), "local").job_id
    for address, status, words in (
        (f"/jobs/{waiting}/report.html", 409, "is pending. Its report is there once it is finished"),
        (f"/compare/report.html?jobs={waiting}", 400, "Name 2 to 10 jobs to compare"),
    ):
        answer = await gateway.client.get(address)
        assert (answer.status_code, words in answer.json()["detail"]) == (status, True), answer.text
