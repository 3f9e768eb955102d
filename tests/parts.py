"""`--part K/N`: one part of a long suite, so that N runs with different K have run each test once.

Continuous integration takes K from the commit. Within each file the tests are dealt out one after the other, in the
order of their names' hashes, so that every part takes about as long. Tests that share a fixture stay together.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

NIGHTLY = os.environ.get("TOUCHSTONE_NIGHTLY") == "1"
"""Whether long tests take their full length. `make nightly` sets it."""
_LONG = (
    "tests/e2e/",
    "tests/integration/",
    "tests/simulator/",
    "tests/contract/",
    "tests/gateway/",
    "tests/unit/results/",
)
"""Folders by the usual length of their files."""


@dataclass(frozen=True, slots=True)
class Part:
    """Part `number` of `count`, from 0."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Part:
        """Raises ValueError unless it is K/N with 0 <= K < N."""
        number, _, count = text.partition("/")
        part = cls(int(number), int(count))
        if not 0 <= part.number < part.count:
            raise ValueError(f"{text} is not a part. Use K/N with 0 <= K < N, for example 0/3.")
        return part

    def chosen(self, groups: Iterable[str]) -> set[str]:
        """Those of the groups that belong to this part. A group's name begins with its file."""
        by_file: dict[str, set[str]] = defaultdict(set)
        for group in groups:
            by_file[group.partition("::")[0]].add(group)
        return {
            group
            for file, own in by_file.items()
            # A file with a single group must not always be in the first part.
            for place, group in enumerate(sorted(own, key=_digest), start=_digest(file))
            if place % self.count == self.number
        }


def group_of(item: pytest.Item) -> str:
    """The test itself, or its file where it shares more than one test's fixtures: what an earlier test left behind may
    be what a later one builds on."""
    info = getattr(item, "_fixtureinfo", None)
    fixtures = [one for found in info.name2fixturedefs.values() for one in found] if info else []
    shared = any(one.scope != "function" and one.baseid for one in fixtures)
    return item.nodeid.partition("::")[0] if shared else item.nodeid


def _digest(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])


def longest_first(items: list[pytest.Item]) -> None:
    """Files of browsers and of processes come first: begun last, one of them would keep a single worker busy while the
    others have nothing left. Otherwise the order stays."""
    items.sort(
        key=lambda item: next((i for i, folder in enumerate(_LONG) if item.nodeid.startswith(folder)), len(_LONG))
    )


def without_chosen(source: str, expression: str) -> bool:
    """Whether no test of a module can match `-m expression`, as its source and its folder's conftest.py tell.

    Reads the two forms that the Makefile uses, `stack` and `not stack and not model`; of any other it says False.
    """
    if expression.isidentifier():
        return f"mark.{expression}" not in source
    left_out = [re.fullmatch(r"not (\w+)", term) for term in expression.split(" and ")]
    whole = re.search(r"^pytestmark = pytest\.mark\.(\w+)$", source, re.MULTILINE)
    return whole is not None and all(left_out) and whole[1] in {found[1] for found in left_out if found}


def passed_over(config: pytest.Config, path: Path) -> bool:
    """Whether collecting can leave the module alone. Importing all of them takes each worker many seconds."""
    expression = config.getoption("markexpr")
    if not expression or not path.match("test_*.py"):
        return False
    shared = path.with_name("conftest.py")
    return without_chosen(path.read_text() + (shared.read_text() if shared.exists() else ""), expression)


def add_option(parser: pytest.Parser) -> None:
    parser.addoption("--part", metavar="K/N", default="0/1", help="Run the K-th of N parts of the chosen tests.")


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects the tests of other parts."""
    part = Part.parse(config.getoption("--part"))
    chosen = part.chosen(group_of(item) for item in items)
    left_out = [item for item in items if group_of(item) not in chosen]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if group_of(item) in chosen]
