"""What users call and set: nothing of it is lost unnoticed.

The file is renewed when something is added, or taken away on purpose, which the changelog then says:
`.venv/bin/python -m tests.surface > tests/unit/surface.txt`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.surface import surface

FILE = Path(__file__).with_name("surface.txt")
RENEW = f"Renew {FILE.name} if this is meant: .venv/bin/python -m tests.surface > tests/unit/{FILE.name}"


@pytest.fixture(scope="module")
def found() -> list[str]:
    return surface()


@pytest.fixture(scope="module")
def known() -> list[str]:
    return FILE.read_text().splitlines()


def test_nothing_that_users_call_is_lost(found: list[str], known: list[str]) -> None:
    assert sorted(set(known) - set(found)) == [], RENEW


def test_the_file_says_what_was_added(found: list[str], known: list[str]) -> None:
    assert sorted(set(found) - set(known)) == [], RENEW
    assert known == sorted(set(known))


@pytest.mark.parametrize("kind", ["rest", "page", "rpc", "command", "python", "setting"])
def test_every_kind_is_listed(found: list[str], kind: str) -> None:
    assert sum(line.startswith(f"{kind} ") for line in found) >= 30
