"""How a continuation is chosen."""

from __future__ import annotations

import math

import pytest

from services.evaluator.answers.scoring import Choice, choose
from services.evaluator.items.task import Continuation


def _choose(*scored: tuple[str, float]) -> Choice:
    return choose([text for text, _ in scored], [Continuation(text, value, 1) for text, value in scored])


def test_sum_characters_and_bytes_may_choose_differently() -> None:
    # Per character −1.0, −0.9, −0.95; per byte −1.0, −0.9, −0.475.
    assert _choose((" a", -1.0), (" aaaaaaaaaa", -9.0), (" éé", -1.9)) == Choice(0, 1, 2)


def test_lengths_are_counted_without_the_delimiter_and_with_a_choices_own_blank() -> None:
    # COPA's choices begin with a blank of their own, which lm_eval counts: −3/3 against −2.2/2.
    assert _choose(("  aa", -3.0), (" bb", -2.2)) == Choice(1, 0, 0)


def test_first_of_equals_is_chosen() -> None:
    assert _choose((" no", -1.5), (" ja", -1.5)) == Choice(0, 0, 0)
    assert _choose((" x", -2.0), (" yy", -2.0), (" zz", -2.0)) == Choice(0, 1, 1)


def test_empty_choice_never_wins_by_length() -> None:
    assert _choose((" ", -0.1), (" yes", -5.0)) == Choice(0, 1, 1)


def test_impossible_continuation_loses() -> None:
    assert _choose((" a", -math.inf), (" b", -700.0)) == Choice(1, 1, 1)


@pytest.mark.parametrize("scored", [[], [Continuation(" a", -1.0, 1)]])
def test_other_number_of_scores_than_choices_is_refused(scored: list[Continuation]) -> None:
    with pytest.raises(ValueError, match="continuations were scored instead of 2"):
        choose([" a", " b"], scored)


def test_score_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="not a number"):
        _choose((" a", math.nan), (" b", -1.0))
