"""What a comparison says, and in which order."""

from __future__ import annotations

import pytest

from services.gateway.pages.compare.figures import points
from services.gateway.pages.compare.view import View
from tests.unit.gateway.pages.compare.compared import BETTER, JOBS, NOT, OPEN, SAME, WORSE, add, figures, found


def test_the_last_run_is_the_baseline_and_the_best_other_one_is_in_focus() -> None:
    answer = found("a", "b", "c")
    for pair in ((0, 1), (0, 2), (1, 2)):
        add(answer, *pair)
    shown = figures(answer)
    assert (shown.focus.name, shown.reference.name) == ("a", "c")
    assert figures(answer, view=View(JOBS[:3], baseline=JOBS[0])).focus.name == "b"
    assert figures(answer, view=View(JOBS[:3], focus=JOBS[1])).focus.name == "b"


def test_differences_turn_with_the_baseline() -> None:
    answer = found("a", "b")
    add(answer, 0, 1, difference=0.031, low=0.015, high=0.048, p_value=0.0002)
    headline = figures(answer).headline
    assert (headline.verdict, headline.amount, headline.interval, headline.p) == ("better", "3.1", "1.5–4.8", "0.0002")
    turned = figures(answer, view=View(JOBS[:2], baseline=JOBS[0]))
    assert (turned.headline.verdict, turned.headline.amount, turned.headline.interval) == ("worse", "3.1", "1.5–4.8")
    assert turned.whole is not None
    assert (turned.whole.change, turned.whole.interval) == ("−3.1", "−4.8 to −1.5")


def test_a_headline_has_what_a_reader_needs_to_act() -> None:
    answer = found("a", "b")
    add(
        answer, 0, 1, verdict=OPEN, difference=0.004, low=-0.01, high=0.018, smallest_difference=0.02, items_needed=9000
    )
    headline = figures(answer).headline
    assert (headline.change, headline.interval, headline.reach, headline.needed) == (
        "+0.4",
        "−1.0 to 1.8",
        "2.0",
        "9,000",
    )
    within = found("a", "b")
    add(within, 0, 1, equivalence_p=0.01)
    assert figures(within).headline.within
    other = found("a", "b")
    other.differences.add(a=JOBS[0], b=JOBS[1], metric="score", verdict=NOT, reason="the prompts differ")
    assert (figures(other).headline.verdict, figures(other).headline.reason) == ("not_comparable", "the prompts differ")


def test_tasks_are_sorted_by_evidence_and_those_without_end_the_table() -> None:
    answer = found("a", "b", tasks=("t", "u", "v", "w", "x"))
    add(answer, 0, 1)
    add(answer, 0, 1, "t", verdict=OPEN, p_value=0.04, p_adjusted=0.08)
    add(answer, 0, 1, "u", p_value=0.002, p_adjusted=0.01)
    add(answer, 0, 1, "v", verdict=WORSE, difference=-0.05, p_value=0.001, p_adjusted=0.004)
    answer.differences.add(a=JOBS[0], b=JOBS[1], task="w", metric="accuracy", verdict=NOT, reason="the prompts differ")
    add(answer, 0, 1, "x", verdict=SAME, difference=0.0, p_value=1.0, p_adjusted=1.0)
    shown = figures(answer)
    assert [(line.task, line.shown) for line in shown.lines] == [
        ("v", True),
        ("u", True),
        ("t", False),
        ("x", False),
        ("w", False),
    ]
    assert shown.tasks_words == (
        "It is better on 1, is worse on 1, is equivalent on 1, shows no difference on 1 and cannot be compared on 1 "
        "of 5 tasks."
    )
    assert [line.adjusted for line in shown.lines] == ["0.004", "0.010", "0.080", "1", "–"]


def test_names_are_as_long_as_they_must_be() -> None:
    answer = found("a", "a", "b")
    answer.runs[1].endpoint = "f"
    for pair in ((0, 1), (0, 2), (1, 2)):
        add(answer, *pair)
    assert [side.name for side in figures(answer).sides] == ["a@e", "a@f", "b"]
    answer.runs[1].endpoint = "e"
    sides = figures(answer).sides
    assert [side.name for side in sides] == [f"a ({JOBS[0][-8:]})", f"a ({JOBS[1][-8:]})", "b"]
    assert len({side.slot for side in sides}) == 3, "runs of one model look different"


@pytest.mark.parametrize(("margin", "words"), [(0.01, "1 point"), (0.005, "0.5 points"), (0.02, "2 points")])
def test_the_margin_is_in_points(margin: float, words: str) -> None:
    assert points(margin) == words


def test_the_verdict_of_several_metrics_is_that_of_the_first() -> None:
    answer = found("a", "b")
    add(answer, 0, 1, metric="accuracy", verdict=WORSE, difference=-0.2)
    add(answer, 0, 1, verdict=BETTER)
    assert figures(answer).headline.verdict == "better"
