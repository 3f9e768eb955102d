"""What a difference is said to be."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

from services.results.paired.differences import task_differences
from services.results.paired.pairs.difference import Difference, Terms
from services.results.paired.verdicts import Verdict, sentence, verdict
from tests.unit.results.paired_rows import counted
from touchstone.v1 import comparison_pb2

TERMS = Terms()
SHOWN = Difference(0.021, 872, 0.006, 0.008, 0.034, 0.002, "exact McNemar", 40, 22, 0.02, 0.9)
OPEN = Difference(0.004, 872, 0.008, -0.011, 0.019, 0.61, "exact McNemar", 30, 27, 0.023, 0.2)


def say(
    difference: Difference, adjusted: float | None, terms: Terms = TERMS, reason: str = "", **how: int | str
) -> str:
    found = verdict(difference, adjusted, terms, reason)
    return sentence(found, difference, "alpha", "beta", adjusted, terms, reason=reason, **how)  # type: ignore[arg-type]


def test_a_shown_difference_is_told_with_its_interval_and_p() -> None:
    expected = "alpha is better than beta by 2.1 points (95 % interval 0.8 to 3.4, adjusted p = .004)."
    assert say(SHOWN, 0.004) == expected
    assert say(SHOWN, None) == expected.replace("adjusted p = .004", "p = .002")


def test_the_worse_run_is_told_with_the_interval_turned_round() -> None:
    assert say(-SHOWN, 0.0004) == (
        "alpha is worse than beta by 2.1 points (95 % interval 0.8 to 3.4, adjusted p < .001)."
    )


def test_no_difference_shown_says_what_would_have_been_shown() -> None:
    assert say(OPEN, 0.9) == (
        "No difference shown: 0.4 points (−1.1 to 1.9); these 872 items would show 2.3 points or more with 80 % power."
    )


def test_an_interval_beside_zero_without_a_shown_difference_gives_the_p_that_says_why() -> None:
    corrected_by = "the p is corrected for 6 comparisons (Holm)"
    assert say(SHOWN, 0.2, comparisons=6, corrected_by=corrected_by) == (
        "No difference shown: 2.1 points (0.8 to 3.4), adjusted p = .20: the interval is for this comparison alone, "
        "the p is corrected for 6 comparisons (Holm); these 872 items would show 2.0 points or more with 80 % power "
        "as one of 6 comparisons."
    )
    exact = replace(SHOWN, smallest=0.03, p=0.07)
    for adjusted in (None, 0.2):
        assert "p = " in say(exact, adjusted)
        assert ": the exact McNemar test is stricter than the interval; these" in say(exact, adjusted)


def test_a_difference_of_the_size_that_would_be_shown_says_why_it_is_not() -> None:
    wide = replace(OPEN, value=0.03, low=-0.001, high=0.061, p=0.06)
    assert "p = .060: 80 % power misses one real difference in five; these 872 items" in say(wide, None)


def test_one_item_is_told_as_one() -> None:
    assert "; this 1 item would show" in say(replace(OPEN, n=1), None)
    assert say(replace(OPEN, n=1, smallest=None), None).endswith("; it is unknown what difference 1 item would show.")


def test_what_is_not_shown_is_never_called_equal() -> None:
    for text in (say(OPEN, 0.9), say(SHOWN, 0.051), say(Difference(0.0, 9, p=1.0), None)):
        assert not any(word in text.lower() for word in ("tie", "equal", "same", "significant"))


def test_a_shown_equivalence_names_its_margin() -> None:
    close = Difference(0.002, 5000, 0.003, -0.004, 0.008, 0.5, "t", smallest=0.0084, equivalence_p=0.004)
    assert verdict(close, None, TERMS) is Verdict.EQUIVALENT
    assert say(close, None) == (
        "alpha and beta are equivalent within 1.0 points: the difference is 0.2 points (−0.4 to 0.8), "
        "equivalence p = .004."
    )
    tiny = Difference(0.002, 50_000, 0.0005, 0.001, 0.003, 0.0001, equivalence_p=1e-9)
    assert verdict(tiny, 0.0002, TERMS) is Verdict.BETTER
    assert say(tiny, 0.0002).endswith(", within the margin of 1.00 points.")


def test_the_adjusted_p_decides_and_not_the_raw_one() -> None:
    assert verdict(SHOWN, 0.2, TERMS) is Verdict.NO_DIFFERENCE_SHOWN
    assert verdict(SHOWN, None, Terms(alpha=0.001)) is Verdict.NO_DIFFERENCE_SHOWN
    assert verdict(SHOWN, 0.05, TERMS) is Verdict.BETTER


def test_what_does_not_compare_says_why() -> None:
    assert say(SHOWN, None, reason="the modes differ") == "alpha and beta cannot be compared: the modes differ."
    flat = Difference(None, 60, undefined_reason="all predictions are equal")
    assert say(flat, None) == "alpha and beta cannot be compared: all predictions are equal."


def test_a_correlation_is_told_in_its_own_range() -> None:
    assert say(SHOWN, 0.004, points=False) == (
        "alpha is better than beta by 0.021 (95 % interval 0.008 to 0.034, adjusted p = .004)."
    )


def test_verdicts_have_the_numbers_of_the_protos() -> None:
    assert {f"VERDICT_{each.name}": each.value for each in Verdict} == {
        name: number for name, number in comparison_pb2.Verdict.items() if number
    }


def test_two_identical_runs_are_equivalent_only_with_enough_items() -> None:
    few, many = (task_differences([counted(n, 0, 0, n)], [(0, 1)], TERMS)[0]["accuracy"][0] for n in (25, 2000))
    assert verdict(few, None, TERMS) is Verdict.NO_DIFFERENCE_SHOWN
    assert verdict(many, None, TERMS) is Verdict.EQUIVALENT


def test_a_comparison_imports_no_scipy() -> None:
    """It would double the time that the results service takes to start."""
    script = """import sys
from services.results.comparison import rank_ranges
from services.results.paired import corrections, differences, verdicts
print([m for m in sys.modules if 'scipy' in m])
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
