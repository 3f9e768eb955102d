"""All pages together: what emulated media and a zoom leave of their figures, and what works without scripts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.e2e.conftest import Visitor, visit
from tests.e2e.every_page import Place, places
from tests.gateway.gateway_server import running

# They go through all pages, for a minute each.
pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.stack]
_FIGURE = re.compile(r"[−+]?\d[\d,.]*\d|\d")
_SEEN = """() => {
  const code = "code, .code, .axis, option";
  const shown = (one) => one.checkVisibility({visibilityProperty: true, opacityProperty: true})
    && one.getClientRects().length > 0;
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) {
    const holder = walker.currentNode.parentElement;
    if (!holder.closest(code) && shown(holder)) texts.push(walker.currentNode.data);
  }
  return [texts.join("\\n"), [...document.querySelectorAll("main svg")].filter(shown).length];
}"""
"""The texts that are shown, without codes, ticks of axes and choices of lists, and how many drawings are."""
_MEDIA: Mapping[str, Mapping[str, Any]] = {
    "reduced motion": {"reduced_motion": "reduce"},
    "forced colours": {"forced_colors": "active"},
    "print": {"media": "print"},
}
_PLAIN = {"media": "screen", "reduced_motion": "no-preference", "forced_colors": "none"}
_PAPER = {"width": 703, "height": 1000}
_ZOOMED = {"width": 720, "height": 450}
"""What is left of 1,440 × 900 at 200 %."""


async def seen(page: Page) -> tuple[set[str], int]:
    """The figures in sight, and the number of drawings. Times and what moves with them are left out."""
    text, drawings = await page.evaluate(_SEEN)
    return set(_FIGURE.findall(re.sub(r"\d+ (s|min|h|d)\b|\d\d:\d\d|95 %", "", text))), drawings


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def walked(browser: Browser) -> AsyncIterator[tuple[Visitor, list[Place]]]:
    """All pages of a world that stands still."""
    world, found = places()
    async with running(world) as gateway, visit(browser, gateway) as visitor:
        visitor.expected = ("400", "404")
        yield visitor, found


async def test_every_page_keeps_its_figures(walked: tuple[Visitor, list[Place]]) -> None:
    visitor, found = walked
    page = await visitor.page()
    lost: dict[tuple[str, str], set[str]] = {}
    for place in found:
        await page.set_viewport_size({"width": 1440, "height": 900})
        await page.goto(place.address)
        if place.key:
            await page.keyboard.press(place.key)
            await expect(page.locator("dialog[open]")).to_be_visible()
        figures, drawings = await seen(page)
        for name, media in _MEDIA.items():
            await page.emulate_media(**{**_PLAIN, **media})
            if name == "print":
                await page.set_viewport_size(_PAPER)  # type: ignore[arg-type]
            kept, drawn = await seen(page)
            if figures - kept or (drawn < drawings and name != "print"):
                lost[place.name, name] = figures - kept
        await page.emulate_media(**_PLAIN)  # type: ignore[arg-type]
        await page.set_viewport_size(_ZOOMED)  # type: ignore[arg-type]
        kept, _ = await seen(page)
        for part in ("#items", "#job-receipt"):
            # On narrow screens, the job page's parts are behind tabs.
            if await page.locator(f'.tabs a[href="{part}"]:visible').count():
                await page.goto(place.address.partition("#")[0] + part)
                kept |= (await seen(page))[0]
        if figures - kept:
            lost[place.name, "200 %"] = figures - kept
        assert await page.evaluate("document.documentElement.scrollWidth") <= _ZOOMED["width"], place.name
    assert not lost, "\n".join(f"{name}: {sorted(gone)}" for name, gone in lost.items())


async def test_every_page_link_and_form_works_without_scripts(walked: tuple[Visitor, list[Place]]) -> None:
    visitor, found = walked
    page = await visitor.page(script=False)
    links: dict[str, str] = {}
    for place in found:
        answer = await page.goto(place.address)
        assert answer is not None
        assert answer.status == place.status, place.name
        assert await page.locator("main").inner_text(), place.name
        for form in await page.locator("main form:visible").all():
            sends = form.locator("button:not([type=button]), input[type=submit]")
            if not await sends.and_(page.locator(":visible")).count():
                raise AssertionError(f"{place.name}: {await form.evaluate('one => one.outerHTML.slice(0, 400)')}")
        for address in await page.locator("main a[href^='/']").evaluate_all(
            "all => all.map(a => a.pathname + a.search)"
        ):
            shape = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|ds_[0-9a-f]{32}|=[^&]*", "*", address)
            links.setdefault(shape, address)
    broken = Counter[str]()
    for address in links.values():
        status = (await visitor.gateway.client.get(address, headers={"Accept": "text/html"})).status_code
        if status not in (200, 303):
            broken[f"{status} {address}"] += 1
    assert not broken
