"""Tables about the fields of a job say what is declared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.job_tables import PAGES, TABLES, names, renewed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_tables_say_what_is_declared(page: Path) -> None:
    text = page.read_text()
    assert names(text)
    assert renewed(text) == text, "Renew them: make docs"


def test_every_table_stands_somewhere_once() -> None:
    assert sorted(name for page in PAGES for name in names(page.read_text())) == sorted(TABLES)
