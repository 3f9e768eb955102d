"""A real browser on a gateway over the fake services. Every page must stay free of CSP violations and script errors."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, async_playwright, expect

from tests.gateway.gateway_server import Running, running
from web import vendor

ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PATIENCE_MS = 60_000
"""For a busy machine: what is expected is waited for no longer than it takes."""
_WATCH_CSP = "document.addEventListener('securitypolicyviolation', e => console.error('CSP ' + e.violatedDirective))"


def chromium() -> str:
    """The installed browser; tests skip with a sentence where there is none. The one without windows draws the same
    pages, and opens one with a third of the work."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"No Chromium on PATH: install the package {BROWSERS[0]} to run the browser tests.")
    return found


@dataclass
class Visitor:
    """Opens pages and remembers what went wrong in them."""

    browser: Browser
    gateway: Running
    complaints: list[str] = field(default_factory=list)
    expected: tuple[str, ...] = ()
    session: str = ""
    """The cookie of a user who is signed in."""

    async def page(self, *, dark: bool = False, phone: bool = False, script: bool = True) -> Page:
        context = await self.browser.new_context(
            base_url=self.gateway.url,
            viewport={"width": 390, "height": 844} if phone else {"width": 1440, "height": 900},
            color_scheme="dark" if dark else "light",
            java_script_enabled=script,
        )
        if self.session:
            await context.add_cookies([{"name": "touchstone", "value": self.session, "url": self.gateway.url}])
        await context.add_init_script(_WATCH_CSP)
        page = await context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("pageerror", lambda error: self._note("error", str(error)))
        return page

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and not any(part in text for part in self.expected):
            self.complaints.append(f"{kind}: {text}")


@asynccontextmanager
async def visit(browser: Browser, gateway: Running) -> AsyncIterator[Visitor]:
    """A visitor whose complaints fail the test."""
    visitor = Visitor(browser, gateway)
    try:
        yield visitor
    finally:
        for context in browser.contexts:
            await context.close()
    assert visitor.complaints == []


async def press_to(page: Page, wanted: Locator, key: str) -> None:
    """Tab to an element, then a key."""
    await expect(wanted).to_be_visible()
    for _ in range(120):
        if await wanted.evaluate("one => one === document.activeElement"):
            return await page.keyboard.press(key)
        await page.keyboard.press("Tab")
    raise AssertionError("Tab does not reach it")


@pytest.fixture(scope="session", autouse=True)
def vendored_scripts() -> None:
    if not vendor.is_current():
        pytest.skip("The pages' scripts are not there: run `python -m web.vendor`.")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One browser for all tests; each has contexts of its own."""
    expect.set_options(timeout=PATIENCE_MS)
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS, timeout=2 * PATIENCE_MS)
        yield launched
        await launched.close()


@pytest_asyncio.fixture(loop_scope="session")
async def gateway() -> AsyncIterator[Running]:
    async with running() as started:
        yield started


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(browser: Browser, gateway: Running) -> AsyncIterator[Visitor]:
    async with visit(browser, gateway) as opened:
        yield opened
