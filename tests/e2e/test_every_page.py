"""All pages together: their figures in emulated media and at a zoom, what axe finds, what works without scripts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio
from axe_playwright_python.base import AXE_SCRIPT
from playwright.async_api import Browser, Page, expect

from tests.e2e.conftest import Visitor, visit
from tests.e2e.every_page import PROVIDER_PLACES, SIGN_IN, USERS_PLACES, Place, for_strangers, for_users, places
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
_ZOOMED_SMALL = {"width": 512, "height": 384}
"""What is left of 1,024 × 768 at 200 %."""
_CUT = """() => {
  const cut = [];
  for (const cell of document.querySelectorAll("main :is(td, th)")) {
    if (!/\\d/.test(cell.textContent) || !cell.checkVisibility() || cell.matches(".model, .names, .text")) continue;
    const range = document.createRange();
    range.selectNodeContents(cell);
    const box = range.getBoundingClientRect();
    for (let one = cell.closest("table"); one && one !== document.body; one = one.parentElement) {
      const flow = getComputedStyle(one).overflowX;
      if (flow === "auto" || flow === "scroll") break;
      if (flow === "visible") continue;
      const edge = one.getBoundingClientRect();
      if (box.right > edge.right + 1 || box.left < edge.left - 1) { cut.push(cell.textContent.trim()); break; }
    }
  }
  return cut;
}"""
"""Texts with figures that a box cuts at its sides and does not scroll to."""
_AXE = """async asked => {
  const found = await axe.run(document, {runOnly: asked, resultTypes: ["violations"]});
  return found.violations.filter(one => one.impact !== "minor")
    .map(one => `${one.impact} ${one.id}: ${one.nodes.slice(0, 3).map(node => node.target.join(" ")).join("; ")}`);
}"""
_MISFITS = """() => {
  const wrong = new Set();
  const room = document.documentElement.clientWidth;
  const over = document.documentElement.scrollWidth - room;
  if (over > 0) wrong.add(`scrolls sideways by ${over} px`);
  const seen = (one) => one.checkVisibility({visibilityProperty: true, opacityProperty: true})
    && !one.closest(".hidden");
  const scrolled = (one) => one !== document.body
    && (/auto|scroll/.test(getComputedStyle(one).overflowX) || scrolled(one.parentElement));
  const name = (one) => `${one.tagName} ${(one.innerText || one.ariaLabel || one.name || "").trim().slice(0, 30)}`;
  for (const one of document.querySelectorAll(":is(main, .top) :is(button, a, select, input, textarea, summary)")) {
    if (!seen(one) || !one.getClientRects().length) continue;
    const box = one.getBoundingClientRect();
    const outside = box.left < -1 || box.right > room + 1;
    if (outside && !scrolled(one.parentElement)) wrong.add(`outside: ${name(one)}`);
    if (one.matches("button, .button") && one.scrollWidth > one.clientWidth + 1) wrong.add(`cut: ${name(one)}`);
  }
  const walker = document.createTreeWalker(document.querySelector(".top, main").parentElement, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const holder = node.parentElement;
    if (holder.closest("pre, code, .code, svg, textarea, script, option, [hx-ignore]") || !seen(holder)) continue;
    for (const word of node.data.matchAll(/(?<=^|[\\s(])\\p{L}{2,15}(?=$|[\\s,.:;)])/gu)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const lines = new Set([...range.getClientRects()].map(one => Math.round(one.top)));
      if (lines.size > 1) wrong.add(`broken: ${word[0]} in ${name(holder)}`);
    }
  }
  return [...wrong].slice(0, 9);
}"""
"""What does not fit the window: a page that scrolls sideways, controls outside it or cut, words broken within."""
_WIDTHS = (1440, 1024, 390)
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_OF_COLOURS = ["color-contrast", "link-in-text-block"]
"""Rules whose findings depend on the theme."""


async def seen(page: Page) -> tuple[set[str], int]:
    """The figures in sight, and the number of drawings. Times and what moves with them are left out."""
    text, drawings = await page.evaluate(_SEEN)
    return set(_FIGURE.findall(re.sub(r"\d+ (s|min|h|d)\b|\d\d:\d\d|95\s%", "", text))), drawings


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def walked(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[list[tuple[Visitor, Place]]]:
    """All pages of a world that stands still, each with who visits it: the last ones where users have tokens."""
    world, found = places()
    async with (
        running(world) as gateway,
        for_users(tmp_path_factory.mktemp("nats")) as (guarded, session),
        for_strangers(tmp_path_factory.mktemp("nats")) as elsewhere,
        visit(browser, gateway) as visitor,
        visit(browser, guarded) as admin,
        visit(browser, guarded) as stranger,
        visit(browser, elsewhere) as refused,
    ):
        admin.session = session
        visitor.expected = ("400", "404")
        refused.expected = ("400", "403")
        users = [*((admin, place) for place in USERS_PLACES), (stranger, SIGN_IN)]
        users += [(refused, place) for place in PROVIDER_PLACES]
        yield [*((visitor, place) for place in found), *users]


async def opened(page: Page, place: Place) -> None:
    """With what the place's key opens."""
    await page.goto(place.address)
    if place.key:
        await page.keyboard.press(place.key)
        await expect(page.locator("dialog[open]")).to_be_visible()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_every_page_fits_and_axe_finds_nothing_above_minor(
    walked: list[tuple[Visitor, Place]], dark: bool
) -> None:
    """At 1,440, 1,024 and 390 px. axe leaves out 1,024, whose controls and colours are those of 1,440."""
    pages: dict[str, Page] = {}
    found: dict[str, list[str]] = {}
    for visitor, place in walked:
        url = visitor.gateway.url
        if url not in pages:
            pages[url] = await visitor.page(dark=dark)
            await pages[url].emulate_media(reduced_motion="reduce")
        page = pages[url]
        await opened(page, place)
        await page.evaluate(AXE_SCRIPT)
        for width in _WIDTHS:
            await page.set_viewport_size({"width": width, "height": 900})
            broken = await page.evaluate(_MISFITS)
            if width != 1024:
                broken += await page.evaluate(_AXE, _OF_COLOURS if dark else _RULES)
            if broken:
                found[f"{place.name} at {width} px"] = broken
    assert not found, "\n".join(f"{name}: {one}" for name, broken in found.items() for one in broken)


async def test_every_page_keeps_its_figures(walked: list[tuple[Visitor, Place]]) -> None:
    pages: dict[str, Page] = {}
    lost: dict[tuple[str, str], set[str]] = {}
    for visitor, place in walked:
        page = pages.get(visitor.gateway.url) or await visitor.page()
        pages[visitor.gateway.url] = page
        await page.set_viewport_size({"width": 1440, "height": 900})
        await opened(page, place)
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
        for size in (_ZOOMED, _ZOOMED_SMALL):
            await page.set_viewport_size(size)  # type: ignore[arg-type]
            if cut := await page.evaluate(_CUT):
                lost[place.name, f"cut at {size['width']} px"] = set(cut)
        assert await page.evaluate("document.documentElement.scrollWidth") <= _ZOOMED_SMALL["width"], place.name
    assert not lost, "\n".join(f"{name}: {sorted(gone)}" for name, gone in lost.items())


async def test_every_page_link_and_form_works_without_scripts(walked: list[tuple[Visitor, Place]]) -> None:
    pages: dict[str, Page] = {}
    links: dict[str, tuple[Visitor, str]] = {}
    for visitor, place in walked:
        page = pages.get(visitor.gateway.url) or await visitor.page(script=False)
        pages[visitor.gateway.url] = page
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
            links.setdefault(shape, (visitor, address))
    broken = Counter[str]()
    for visitor, address in links.values():
        status = (await visitor.gateway.client.get(address, headers={"Accept": "text/html"})).status_code
        if status not in (200, 303):
            broken[f"{status} {address}"] += 1
    assert not broken
