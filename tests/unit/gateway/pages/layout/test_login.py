"""Where signing in may lead: to paths of this site only."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.pages.layout.login import own_path


@pytest.mark.parametrize("path", ["/jobs/0b5c", "/leaderboard?suite=glue&form=1", "/jobs?model=qwen2.5%3A7b", "/"])
def test_own_paths_are_kept(path: str) -> None:
    assert own_path(path) == path


@pytest.mark.parametrize(
    "address",
    [
        "",
        "//evil.example",
        "///evil.example",
        "https://evil.example/jobs",
        "https:evil.example",
        "javascript:alert(1)",
        "/\\evil.example",
        "\\\\evil.example",
        "/jobs\\..\\x",
        "/\t/evil.example",
        "/\n/evil.example",
        "\t//evil.example",
        " //evil.example",
        "jobs",
        "evil.example",
        "//[",
        "/jobs\r\nSet-Cookie: x=1",
        "/login",
        "/login?next=/login",
        "/" + "x" * 3000,
    ],
)
def test_what_could_lead_elsewhere_is_refused(address: str) -> None:
    assert own_path(address) == "/"


@given(st.text(alphabet="/\\:.@?#%\t\n ahtps[]", max_size=12))
def test_no_address_leaves_the_site(address: str) -> None:
    # As browsers read it: without tabs and line ends, a backslash being a slash.
    read = own_path(address).replace("\t", "").replace("\n", "").replace("\\", "/")
    assert urlsplit(urljoin("https://touchstone.example/login", read)).netloc == "touchstone.example"
