"""Each kind of refusal has one sentence."""

from __future__ import annotations

import pytest

from services.words import refusals


def test_limits_are_named_with_what_0_means() -> None:
    assert refusals.between("alpha", 0.001, 0.5) == "alpha must be between 0.001 and 0.5."
    assert refusals.between("keep_alive", 0, 0) == "keep_alive must be 0."
    assert refusals.between("limit", 0, 1000, zero="10") == "limit must be between 0 and 1,000. 0 means 10."
    assert refusals.between("budget_usd", 0, 1e9, zero="no budget").startswith(
        "budget_usd must be between 0 and 1,000,000,000."
    )
    assert refusals.at_least("shots", 0) == "shots must be 0 or more."
    assert (
        refusals.too_large("The row", 70_000, 65_536, "bytes")
        == "The row has 70,000 bytes; at most 65,536 are allowed."
    )


@pytest.mark.parametrize(
    ("value", "told"),
    [("bleu", "bleu"), (7, "7"), ("two words", "'two words'"), ("a\nb", r"'a\nb'"), ("", "''"), ("x" * 200, "x" * 80)],
)
def test_a_value_of_the_callers_is_quoted_unless_it_is_a_word(value: object, told: str) -> None:
    assert refusals.not_valid(value, "scorer", ("json", "regex")) == (
        f"{told} is not a valid scorer. Use one of: json, regex."
    )


def test_what_is_not_found_is_named_as_in_the_api_document() -> None:
    assert refusals.not_found("Benchmark job", "a967f363-ee96") == "Benchmark job a967f363-ee96 not found"


def test_one_of_a_thing_is_said_in_the_singular() -> None:
    assert refusals.busy(1, "exports").startswith("1 export is running, the most allowed at once.")
    assert refusals.busy(2, "exports").startswith("2 exports are running, the most allowed at once.")
    assert refusals.counted(1, "row") == "1 row"
    assert refusals.counted(1200, "row") == "1,200 rows"
    assert refusals.quota(1, "schedules").startswith("You have 1 schedule, the most")
    assert refusals.quota(20, "schedules").startswith("You have 20 schedules, the most")
    assert refusals.open_already(1, "uploads").startswith("1 upload is open, the most")
    assert refusals.open_already(8, "live pages and event streams").startswith(
        "8 live pages and event streams are open"
    )


def test_nothing_is_to_delete_where_none_is_allowed() -> None:
    assert refusals.quota(0, "webhooks") == "This installation does not allow users to have webhooks."
