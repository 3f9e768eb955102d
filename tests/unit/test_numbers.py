"""Numbers from outside are in range or not known."""

from __future__ import annotations

import math

import pytest

from services import numbers


@pytest.mark.parametrize("value", [True, "3", None, math.nan, math.inf, -0.1, 10.1])
def test_what_is_no_number_in_range_is_not_known(value: object) -> None:
    assert numbers.real(value, 0.0, 10.0) is None


def test_both_ends_of_a_range_are_in_it_and_zero_has_no_sign() -> None:
    assert [numbers.real(value, 0, 10) for value in (0, 10)] == [0.0, 10.0]
    assert math.copysign(1.0, numbers.real(-0.0, 0.0, 1.0) or 0.0) == 1.0


@pytest.mark.parametrize(("value", "read"), [(12.0, 12), (0, 0), (12.5, None), (-1, None), (True, None), (101, None)])
def test_a_whole_number_may_be_written_as_a_float(value: object, read: int | None) -> None:
    assert numbers.whole(value, 100) == read


def test_a_count_above_which_a_float_is_not_exact_is_not_known() -> None:
    assert numbers.whole(2**53 - 1) == 2**53 - 1
    assert numbers.whole(2**53) is None


def test_an_answer_costs_less_than_a_job_may() -> None:
    assert numbers.answer_usd(20_000.0) is None
    assert numbers.job_usd(20_000.0) == 20_000.0


@pytest.mark.parametrize(
    ("text", "billions"),
    [
        ("7.6B", 7.6),
        ("qwen2.5:7b", 7),
        ("qwen2.5-0.5b-instruct", 0.5),
        ("mixtral:8x7b", 56),
        ("gemma3:270m", 0.27),
        ("allenai/OLMo-2-1124-7B-Instruct", 7),
        ("gpt-4o", 0),
        ("mistral:latest", 0),
        ("phi3b5", 0),
    ],
)
def test_a_models_size_is_read_from_its_name(text: str, billions: float) -> None:
    assert numbers.parameters_b(text) == pytest.approx(billions)
