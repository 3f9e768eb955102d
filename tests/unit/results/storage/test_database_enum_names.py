"""Enums in SQL and templates bear their names."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from services.results.storage.database import query, with_numbers
from tests.unit.test_structure import ROOT, relative, sources

QUERIES = ROOT / "services/results/storage/queries"
COLUMNS = "state|outcome|mode|mark|verdict|priority|reading|weighting"
DIGIT = re.compile(rf"\b(?:{COLUMNS})\s*(?:==?|!=|<>|<=?|>=?|(?:NOT\s+)?IN\s*\(|BETWEEN)\s*\d+\b", re.IGNORECASE)


def texts() -> Iterator[tuple[str, str]]:
    """Queries, the SQL in modules of the results service, and templates. Released migrations are never edited."""
    for path in (*QUERIES.rglob("*.sql"), *sources("services/results"), *(ROOT / "web/templates").rglob("*.html")):
        yield relative(path), path.read_text()


def test_no_enum_is_compared_with_a_digit() -> None:
    found = {path: DIGIT.findall(text) for path, text in texts()}

    assert len(found) > 150
    assert {path: digits for path, digits in found.items() if digits} == {}


@pytest.mark.parametrize(
    "text",
    ["outcome <> 6", "items.outcome = 6", "state NOT IN (6, 7)", "endpoint.state in (3, 5)", "outcome BETWEEN 2 AND 5"],
)
def test_digits_are_seen(text: str) -> None:
    assert DIGIT.search(text)


def test_names_become_the_numbers_that_are_stored() -> None:
    assert (
        with_numbers("outcome <> OUTCOME_INFRASTRUCTURE_ERROR AND state = STATE_FAILED") == "outcome <> 6 AND state = 6"
    )
    assert with_numbers("mark = RUN_MARK_INVALIDATED AND weighting = WEIGHTING_TASKS") == "mark = 2 AND weighting = 2"


def test_a_name_that_the_protos_do_not_have_is_refused() -> None:
    with pytest.raises(KeyError, match="OUTCOME_LOST"):
        with_numbers("outcome = OUTCOME_LOST")


def test_queries_are_read_with_numbers() -> None:
    assert "count(*) FILTER (state = 5)" in query("boards/overview_jobs")
    assert not re.search("OUTCOME_|STATE_", query("items/judged_items") + query("items/item_page"))


def test_queries_are_in_the_folder_of_modules_that_use_them() -> None:
    for folder in QUERIES.iterdir():
        text = "".join(path.read_text() for path in sources(f"services/results/{folder.name}"))
        named = re.findall(rf"[\"']{folder.name}/([a-z_]+)", text)

        assert named
        assert [path for path in folder.glob("*.sql") if not path.stem.startswith(tuple(named))] == []
