"""A browser logs in to a whole installation with an OpenID Connect provider of another maker."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from deploy.local.ports import free_port
from tests.e2e.conftest import PATIENCE_MS
from tests.stack import Stack

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.stack]
JAVASCRIPT = Path(__file__).with_name("oidc_js")
SECRET = "s3cret: with a colon"


@contextmanager
def provider(folder: Path, pages: str) -> Iterator[str]:
    """Serves the provider for pages at that address; gives its issuer. Skips where npm cannot fetch it."""
    work = folder / "oidc_js"
    shutil.copytree(JAVASCRIPT, work, ignore=shutil.ignore_patterns("node_modules"))
    if shutil.which("npm") is None:
        pytest.skip("npm is not on PATH: it fetches the provider of this test.")
    fetched = subprocess.run(
        ["npm", "ci", "--no-progress", "--loglevel=error"],
        cwd=work, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if fetched.returncode:
        pytest.skip(f"npm cannot fetch oidc-provider: {fetched.stderr[-300:]}")
    with (folder / "provider.log").open("w") as errors:
        process = subprocess.Popen(
            ["node", "provider.mjs", pages, SECRET], cwd=work, stdout=subprocess.PIPE, stderr=errors, text=True
        )
    try:
        assert process.stdout is not None
        issuer = process.stdout.readline().strip()
        assert issuer, (folder / "provider.log").read_text()
        yield issuer
    finally:
        process.kill()
        process.wait()


async def visitor(browser: Browser, *, script: bool) -> Page:
    context = await browser.new_context(java_script_enabled=script)
    # The provider's pages want a web font.
    await context.route(re.compile("googleapis"), lambda route: route.abort())
    page = await context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    return page


async def identify(page: Page, name: str, pages: str) -> None:
    """On the provider's pages: who it is, and that Touchstone may know. Without scripts, they ask once more."""
    await page.fill("input[name=login]", name)
    await page.fill("input[name=password]", "any")
    await page.click("button[type=submit]")
    while not page.url.startswith(pages):
        async with page.expect_navigation():
            await page.click("button:has-text('Continue')")


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of the pages, and the provider's name there."""
    folder = tmp_path_factory.mktemp("login")
    port = free_port()
    pages = f"http://127.0.0.1:{port}"
    with provider(folder, pages) as issuer:
        environment = {
            "TOUCHSTONE_HTTP_PORT": str(port),
            "TOUCHSTONE_OIDC_ISSUER": issuer,
            "TOUCHSTONE_OIDC_CLIENT_ID": "touchstone",
            "TOUCHSTONE_OIDC_CLIENT_SECRET": SECRET,
            "TOUCHSTONE_OIDC_PAGES_URL": pages,
            "TOUCHSTONE_OIDC_SCOPES": "openid groups",
            "TOUCHSTONE_OIDC_USER_GROUPS": "bench",
            "TOUCHSTONE_OIDC_ADMIN_GROUPS": "bench-admins",
        }
        stack = Stack(folder / "stack", [], auth="token", environment=environment)
        stack.port = port
        stack.start()
        try:
            yield pages, issuer.removeprefix("http://")
        finally:
            stack.stop()


@pytest.mark.parametrize("script", [True, False], ids=["with scripts", "without scripts"])
async def test_login_role_refusal_and_logout(browser: Browser, installation: tuple[str, str], script: bool) -> None:
    pages, host = installation
    page = await visitor(browser, script=script)
    sign_in, name = page.get_by_role("link", name=f"Sign in with {host}"), page.locator(".user .name")

    await page.goto(f"{pages}/jobs?model=a%26b")
    await sign_in.click()
    await identify(page, "ada", pages)
    await expect(page).to_have_url(f"{pages}/jobs?model=a%26b")
    await expect(name).to_have_text("oidc:ada")
    await page.goto(f"{pages}/settings")
    await expect(page.locator("form[action='/settings/tokens']")).to_be_visible()

    await page.get_by_role("button", name="Sign out").click()
    await page.click("button:has-text('Yes, sign me out')")
    await expect(page).to_have_url(f"{pages}/login")
    await page.goto(f"{pages}/settings")
    await expect(page).to_have_url(f"{pages}/login?next=%2Fsettings")

    await sign_in.click()
    await identify(page, "eve", pages)
    await expect(page.get_by_role("alert")).to_contain_text(
        f"You are signed in at {host} as eve, but none of your groups has access to Touchstone."
    )
    await page.get_by_role("link", name="Use another account").click()
    await identify(page, "bob", pages)
    await expect(page).to_have_url(f"{pages}/settings")
    await expect(name).to_have_text("oidc:bob")
    await expect(page.locator("form[action='/settings/tokens']")).to_have_count(0)
    await page.context.close()
