"""Quantities that are stated again in another unit."""

from __future__ import annotations

import pytest

from services.evaluator.answers.reading.numerals.units import same_quantity


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("90", " minutes"), ("1.5", " hours")),
        (("2", " kg"), ("2000", " g.")),
        (("60", " kg"), ("132", " pounds")),
        (("-5", " °C"), ("23", "°F")),
        (("75", "%"), ("45", " out of 60")),
        (("3", " feet"), ("0.9144", " m")),
    ],
)
def test_the_same_in_another_unit(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert same_quantity(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("90", " minutes"), ("2", " hours")),
        (("90", " minutes"), ("90", " minutes")),
        (("90", " minutes"), ("1.5", " kg")),
        (("1/4", ","), ("25", "%")),
        (("5", " apples"), ("5", " pears")),
    ],
)
def test_another_quantity_or_the_same_unit(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert not same_quantity(one, other)
