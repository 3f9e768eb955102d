"""CHANGELOG.md: one section per release, newest first, in the form of Keep a Changelog."""

from __future__ import annotations

import re
from pathlib import Path

from services import __version__

TEXT = (Path(__file__).parents[2] / "CHANGELOG.md").read_text()


def test_releases_are_dated_newest_first_and_the_first_one_is_this_version() -> None:
    unreleased, *releases = re.findall(r"(?m)^## (.+)$", TEXT)
    assert unreleased == "Unreleased"
    found = [re.fullmatch(r"(\d+)\.(\d+)\.(\d+) – (\d{4}-\d\d-\d\d)", release) for release in releases]
    assert all(found), releases
    order = [(tuple(map(int, each.groups()[:3])), each[4]) for each in found if each]
    assert order == sorted(order, reverse=True)
    assert ".".join(map(str, order[0][0])) == __version__


def test_changes_stand_under_known_kinds() -> None:
    kinds = re.findall(r"(?m)^### (.+)$", TEXT)
    assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert len(kinds) >= 4
