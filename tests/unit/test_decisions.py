"""docs/decisions: numbers, headers, links between decisions, and the index."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/decisions"
FILES = sorted(FOLDER.glob("[0-9]*.md"))
NAME = re.compile(r"(\d{4})-[a-z0-9]+(-[a-z0-9]+)*\.md")
LINK = re.compile(r"\[(\d+)\]\((\d{4}-[a-z0-9-]+\.md)\)")
STATUS = re.compile(rf"Accepted|Superseded( in part)? by {LINK.pattern}((, | and ){LINK.pattern})*")
OPPOSITE = {"Extends": "Extended by", "Supersedes": "Superseded by", "Supersedes in part": "Superseded in part by"}


def number(path: Path) -> int:
    return int(path.name[:4])


@cache
def header(path: Path) -> dict[str, str]:
    """The lines `- Name: value` under the title."""
    lines = path.read_text().split("\n\n")[1].splitlines()
    return dict(line.removeprefix("- ").split(": ", 1) for line in lines)


def linked(path: Path, name: str) -> set[int]:
    """The decisions that one line of the header names; a status is read as the line that it begins with."""
    status = header(path)["Status"]
    value = status if status.startswith(f"{name} [") else header(path).get(name, "")
    return {int(found) for found, _ in LINK.findall(value)}


def test_numbers_have_no_gaps_and_stand_in_names_and_titles() -> None:
    assert [number(path) for path in FILES] == list(range(1, len(FILES) + 1))
    for path in FILES:
        assert NAME.fullmatch(path.name), path.name
        assert path.read_text().startswith(f"# {number(path)}. "), path.name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name[:4])
def test_a_decision_has_a_status_a_date_and_working_links(path: Path) -> None:
    assert STATUS.fullmatch(header(path)["Status"])
    assert re.fullmatch(r"2\d{3}-\d\d-\d\d", header(path)["Date"])
    assert set(header(path)) <= {"Status", "Date", *OPPOSITE, "Extended by"}
    for shown, name in LINK.findall(path.read_text()):
        assert (FOLDER / name).is_file(), name
        assert int(name[:4]) == int(shown)


def test_decisions_that_change_others_are_linked_from_both_sides() -> None:
    by_number = {number(path): path for path in FILES}
    for later, path in by_number.items():
        for name, opposite in OPPOSITE.items():
            for earlier in linked(path, name):
                assert earlier < later
                assert later in linked(by_number[earlier], opposite), f"{earlier} does not name {later}"
            for successor in linked(path, opposite):
                assert later in linked(by_number[successor], name), f"{successor} does not name {later}"


def test_the_index_has_each_decision_once_under_its_title() -> None:
    lines = re.findall(r"(?m)^- \[(\d+)\]\((.+?)\): (.+?)(?: \*\((.*)\)\*)?$", (FOLDER / "README.md").read_text())

    assert Counter(name for _, name, _, _ in lines) == Counter(path.name for path in FILES)
    for shown, name, title, remark in lines:
        path = FOLDER / name
        assert path.read_text().startswith(f"# {shown}. {title}\n")
        assert remark.startswith("superseded") == header(path)["Status"].startswith("Superseded by"), name
        assert remark.startswith("in part") == header(path)["Status"].startswith("Superseded in part"), name


def test_the_tree_names_existing_decisions_by_their_files() -> None:
    known = {path.name for path in FILES}
    texts = [
        path
        for folder in ("services", "client", "deploy", "web", "docs", "tests", "benchmarks", ".")
        for path in ((ROOT / folder).glob("*") if folder == "." else (ROOT / folder).rglob("*"))
        if path.suffix in (".py", ".md") and path != Path(__file__)
    ]

    assert len(texts) > 1000
    for path in texts:
        text = path.read_text()
        assert "decisions.md" not in text, path
        assert set(re.findall(r"decisions/(\d{4}-[\w-]+\.md)", text)) <= known, path
