"""Fields of a job as they are declared: ranges, names and words."""

from __future__ import annotations

from typing import Annotated, TypedDict

import pytest

from services.words.fields import INT64_MAX, Field, Number, decimal, declared, number_problem


class Options(TypedDict, total=False):
    share: Annotated[float | None, Number("Share of the rows.", "Share", 0, 1)]
    most_rows: Annotated[int, Number("Most rows.", "Rows", 1, 2_000, rest="limit", unit="rows")]
    seed: Annotated[int, Number("Random seed. Of the sample.", "Seed", -INT64_MAX - 1, INT64_MAX)]
    name: Annotated[str, Field("A name.", "Name")]
    plain: str


SHARE, ROWS, SEED = declared(Options, Number).values()


def test_members_say_their_names_and_kinds() -> None:
    assert [*declared(Options, Field)] == ["share", "most_rows", "seed", "name"]
    assert (SHARE.whole, ROWS.whole, SEED.whole) == (False, True, True)
    assert [(one.name, one.rest, one.flags) for one in (SHARE, ROWS)] == [
        ("share", "share", ("--share",)),
        ("most_rows", "limit", ("--most-rows", "--limit")),
    ]


def test_ranges_are_told_where_they_mean_something() -> None:
    assert [(one.range, one.hint, one.help) for one in (SHARE, ROWS, SEED)] == [
        ("0 to 1", "0–1", "share of the rows (0 to 1)"),
        ("1 to 2,000", "rows", "most rows (1 to 2,000)"),
        ("", "optional", "random seed"),
    ]


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        (SHARE, 0, ""),
        (SHARE, 1.0, ""),
        (SHARE, 1.5, "x must be between 0 and 1."),
        (SHARE, 10**400, "x must be between 0 and 1."),
        (SHARE, True, "x must be a number."),
        (SHARE, float("nan"), "x must be a finite number."),
        (ROWS, 2_000, ""),
        (ROWS, 0, "x must be between 1 and 2,000."),
        (ROWS, 5.0, "x must be a whole number."),
        (ROWS, None, "x must be a whole number."),
        (SEED, -(2**63), ""),
        (SEED, 2**63, "x must be between -9,223,372,036,854,775,808 and 9,223,372,036,854,775,807."),
    ],
)
def test_one_sentence_says_what_is_wrong(field: Number, value: object, problem: str) -> None:
    assert field.problem(value, "x") == problem


def test_the_lower_end_may_be_too_small_itself() -> None:
    assert number_problem(0, "x", 0, 1e9, whole=False, above=True) == "x must be above 0 and at most 1,000,000,000."
    assert number_problem(0.5, "x", 0, 1e9, whole=False, above=True) == ""


@pytest.mark.parametrize("text", ["1_0", "\u0661", " 1", "1 ", "one", ""])
def test_a_decimal_is_written_in_plain_digits(text: str) -> None:
    assert decimal(text) is None
    assert decimal("-1.5e1") == -15
