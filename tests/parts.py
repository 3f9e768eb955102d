"""`--part K/N`: one part of a long suite, so that N runs with different K have run each test once.

Continuous integration takes K from the commit. Within each file the tests are dealt out one after the other, in the
order of their names' hashes, so that every part takes about as long.
"""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

NIGHTLY = os.environ.get("TOUCHSTONE_NIGHTLY") == "1"
"""Whether long tests take their full length. `make nightly` sets it."""


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

    def chosen(self, names: Sequence[str]) -> set[str]:
        """Those of the pytest node ids that belong to this part."""
        by_file: dict[str, list[str]] = defaultdict(list)
        for name in names:
            by_file[name.partition("::")[0]].append(name)
        return {
            name
            for file, own in by_file.items()
            # A file with a single test must not always be in the first part.
            for place, name in enumerate(sorted(own, key=_digest), start=_digest(file))
            if place % self.count == self.number
        }


def _digest(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])


def add_option(parser: pytest.Parser) -> None:
    parser.addoption("--part", metavar="K/N", default="0/1", help="Run the K-th of N parts of the chosen tests.")


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects the tests of other parts."""
    part = Part.parse(config.getoption("--part"))
    chosen = part.chosen([item.nodeid for item in items])
    left_out = [item for item in items if item.nodeid not in chosen]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.nodeid in chosen]
