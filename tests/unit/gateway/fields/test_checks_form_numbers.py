"""Numbers in fields of forms: commas part thousands, and stand for nothing else."""

from __future__ import annotations

import pytest

from services.gateway.fields.checks import amount, whole


@pytest.mark.parametrize(
    ("text", "value"),
    [("5", 5.0), ("5.50", 5.5), (".5", 0.5), ("$5", 5.0), ("$ 1,250.50", 1250.5), ("1,000,000", 1e6), ("0", 0.0)],
)
def test_an_amount_is_read_as_it_is_written(text: str, value: float) -> None:
    assert amount(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "5,5", "0,50", "1,25.50", "1,2345", "1_000", "5$", "\uff15", "nan", "1e3", "-1", "much", "9" * 400],
)
def test_what_may_mean_another_amount_is_none(text: str) -> None:
    assert amount(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("4096", 4096), ("4,096", 4096), ("-1", -1), ("4,5", None), ("40,96", None), ("4.0", None), ("9" * 5000, None)],
)
def test_a_whole_number_may_have_its_thousands_parted(text: str, value: int | None) -> None:
    assert whole(text) == value
