"""Draws every page in every state, light and dark, wide and on a phone: `make screenshots`."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import tempfile
from collections.abc import Iterable
from pathlib import Path

from playwright.async_api import Browser, async_playwright

from tests.e2e.conftest import ARGUMENTS, chromium
from tests.e2e.every_page import PROVIDER_PLACES, SIGN_IN, USERS_PLACES, Place, for_strangers, for_users, places
from tests.gateway.fake_services import SLOTS
from tests.gateway.fake_world import World
from tests.gateway.gateway_server import Running, running
from touchstone.v1 import job_pb2

SHOWN = {"leaderboard": "leaderboard", "job-running": "job", "dataset-job": "dataset", "decision-better": "decision"}
"""Pages that README and docs show, and their files in docs/images: light and wide, as they are first seen."""
EMPTY = ("/overview", "/run", "/jobs", "/leaderboard", "/compare", "/decisions", "/queue", "/datasets", "/experiments")
WIDTHS = (1440, 390)
HEIGHT = 900


async def draw(folder: Path, images: Path | None, only: str) -> None:
    """One file for each page, state, theme and width in `folder`; the shown ones also in `images`."""
    world, found = places()
    empty = [Place(f"{path.strip('/')}-first-visit", path) for path in EMPTY]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        for known, wanted in ((world, found), (World(), empty)):
            async with running(known) as gateway:
                await _drawn(browser, gateway, wanted, folder, only)
                if known is world and images is not None:
                    _calm(world, [place.address for place in found if place.name in SHOWN])
                    await _shown(browser, gateway, found, images)
        with tempfile.TemporaryDirectory() as state:
            async with for_users(Path(state)) as (gateway, session):
                await _drawn(browser, gateway, USERS_PLACES, folder, only, session)
                await _drawn(browser, gateway, (SIGN_IN,), folder, only)
        with tempfile.TemporaryDirectory() as state:
            async with for_strangers(Path(state)) as gateway:
                await _drawn(browser, gateway, PROVIDER_PLACES, folder, only)
        await browser.close()


async def _drawn(
    browser: Browser, gateway: Running, wanted: Iterable[Place], folder: Path, only: str, session: str = ""
) -> None:
    chosen = [place for place in wanted if only in place.name]
    for dark, width in itertools.product((False, True), WIDTHS):
        context = await browser.new_context(
            base_url=gateway.url,
            viewport={"width": width, "height": HEIGHT},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        if session:
            await context.add_cookies([{"name": "touchstone", "value": session, "url": gateway.url}])
        page = await context.new_page()
        for place in chosen:
            await page.goto(place.address)
            if place.key:
                await page.keyboard.press(place.key)
            name = f"{place.name}-{'dark' if dark else 'light'}-{width}.png"
            await page.screenshot(path=folder / name, full_page=True, animations="disabled")
        await context.close()


def _calm(world: World, shown: Iterable[str]) -> None:
    """Ends what runs on no shown page, so that no more runs than can."""
    ended = [job for job in world.holding() if not any(job.job_id in address for address in shown)]
    for job in ended[: len(world.holding()) - SLOTS + 1]:
        world.finish(job.job_id, job_pb2.Job.STATE_CANCELLED)


async def _shown(browser: Browser, gateway: Running, found: list[Place], images: Path) -> None:
    context = await browser.new_context(base_url=gateway.url, viewport={"width": 1440, "height": HEIGHT})
    page = await context.new_page()
    for place in found:
        if place.name in SHOWN:
            await page.goto(place.address)
            await page.screenshot(path=images / f"{SHOWN[place.name]}.png", animations="disabled")
    await context.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.screenshots", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("var/screenshots"), help="folder (default: var/screenshots)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only pages whose name has the text")
    parser.add_argument("--images", type=Path, help="also write the pages that docs show into this folder")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    asyncio.run(draw(options.out, options.images, options.only))
    print(f"{len(list(options.out.glob('*.png')))} pictures in {options.out}")


if __name__ == "__main__":
    main()
