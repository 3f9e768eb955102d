"""`--part K/N`: one part of a long suite, so that N runs with different K have run each test once.

Continuous integration takes K from the commit. Within each file the tests are dealt out one after the other, in the
order of their names' hashes, so that every part takes about as long. Tests that share a fixture stay together.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

NIGHTLY = os.environ.get("TOUCHSTONE_NIGHTLY") == "1"
"""Whether long tests take their full length. `make nightly` sets it."""
_WAITING = (("tests/e2e/", 3.0), ("tests/integration/", 3.0), ("tests/contract/", 0.4), ("tests/gateway/", 0.4))
"""Folders whose tests mostly wait, for a browser, a process or a server, and how many seconds one of them takes."""
_COMPUTING = (("tests/simulator/", 2.0), ("tests/chart/", 0.4), ("tests/unit/results/", 0.1), ("", 0.04))
"""The other folders, whose tests need the processor. Within both, folders with the longest files come first."""
_AHEAD = 0.85
"""When the last file that waits is begun, as a share of the whole run: the files of the last seconds are short."""


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


def mixed(items: list[pytest.Item]) -> None:
    """Files that wait and files that compute take turns, so that at any time some workers of `-n 4` need the processors
    while others wait. By the end only short files are left: a long one would keep a single worker busy while the others
    have nothing to do."""
    places = places_of([item.nodeid.partition("::")[0] for item in items])
    items.sort(key=lambda item: places[item.nodeid.partition("::")[0]])


def places_of(files: Sequence[str]) -> dict[str, tuple[float, str]]:
    """What to sort files by; `files` names the file of each test."""
    places: dict[str, tuple[float, str]] = {}
    counts, left = Counter(files), set(files)
    for folders, share in ((_WAITING, _AHEAD), (_COMPUTING, 1.0)):
        # In their order, each with the seconds that it takes.
        chosen: dict[str, float] = {}
        for folder, seconds in folders:
            chosen |= {file: counts[file] * seconds for file in sorted(left) if file.startswith(folder)}
            left -= chosen.keys()
        begun, whole = 0.0, sum(chosen.values())
        for file, seconds in chosen.items():
            places[file] = (share * begun / whole, file)
            begun += seconds
    return places


def without_chosen(source: str, expression: str) -> bool:
    """Whether no test of a module can match `-m expression`, as its source and its folder's conftest.py tell.

    Reads the two forms that the Makefile uses, `stack` and `not stack and not model`; of any other it says False.
    """
    if expression.isidentifier():
        return f"mark.{expression}" not in source
    left_out = [re.fullmatch(r"not (\w+)", term) for term in expression.split(" and ")]
    return all(left_out) and not _marks(source).isdisjoint(found[1] for found in left_out if found)


def _marks(source: str) -> set[str]:
    """Those of all tests of a module, without marks that take arguments."""
    whole = re.search(r"^pytestmark = (pytest\.mark\.\w+|\[.*?\])$", source, re.MULTILINE | re.DOTALL)
    if whole is None:
        return set()
    made = ast.parse(whole[1], mode="eval").body
    return {one.attr for one in (made.elts if isinstance(made, ast.List) else [made]) if isinstance(one, ast.Attribute)}


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
