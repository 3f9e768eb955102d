"""What the documentation names is there: files, tests, links with their anchors, targets of make."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDES = [
    ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "tests/README.md", "docs/architecture.md")
]
PAGES = sorted({*GUIDES, ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md"), ROOT / "docs/decisions/README.md"})
TOP = {path.name for path in ROOT.iterdir() if not path.name.startswith(".") or path.name == ".ci"}
"""A path is what begins with one of these."""


def prose(path: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"(?ms)^```.*?^```$", "", path.read_text())


def named(path: Path) -> list[str]:
    """Paths between backticks, from the root of the repository; perhaps with `*`, or with `::` and a test's name."""
    texts = re.findall(r"`([^`\s]+)`", prose(path))
    return [text for text in texts if re.fullmatch(r"[\w.*/-]+(::\w+)?", text) and text.split("/")[0] in TOP]


@cache
def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"(?m)^#+ (.+)$", prose(path))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_paths_are_found() -> None:
    for page, least in (("tests/README.md", 30), ("CONTRIBUTING.md", 40), ("docs/architecture.md", 80)):
        assert len(named(ROOT / page)) > least


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_is_there(page: Path) -> None:
    for text in named(page):
        path, _, test = text.partition("::")
        found = [ROOT / path] if (ROOT / path).exists() else list(ROOT.glob(path))
        assert found, f"{page.name} names {path}"
        if test:
            assert re.search(rf"(?m)^ *(async )?def {test}\(", found[0].read_text()), f"{page.name} names {text}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"https?:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), f"{page.name} links to {link}"
        if anchor:
            assert anchor in anchors(target), f"{page.name} links to {link}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_target_of_make_is_there(page: Path) -> None:
    known = set(re.findall(r"(?m)^([a-z][\w-]*):", (ROOT / "Makefile").read_text()))
    shown = re.findall(r"`make ([a-z][\w-]*)", page.read_text())
    assert set(shown) <= known
