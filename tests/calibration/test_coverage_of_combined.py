"""How often the intervals of people's scores and a judge's together hold what people would say of all items."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from services.results.statistics.metric_values import Floats
from services.results.statistics.prediction_powered import combined
from tests.calibration import judged

pytestmark = pytest.mark.calibration

ITEMS = 2_000


@dataclass(frozen=True, slots=True)
class Drawn:
    """Shares of draws whose interval holds the truth, the mean widths of the intervals, the means of both estimates,
    and the standard error of the mean of the combined ones."""

    held: float
    alone_held: float
    width: float
    alone_width: float
    mean: float
    stderr: float


def draws(people: Floats, judge: Floats, labels: int, times: int, seed: int) -> Drawn:
    rng = np.random.default_rng((seed, labels))
    truth = people.mean()
    held = alone_held = 0
    widths, alone_widths, means = [], [], []
    for _ in range(times):
        labelled = np.full(len(people), np.nan)
        drawn = rng.choice(len(people), labels, replace=False)
        labelled[drawn] = people[drawn]
        found = combined(labelled, judge)
        held += found.low - 1e-12 <= truth <= found.high + 1e-12
        alone_held += found.alone_low - 1e-12 <= truth <= found.alone_high + 1e-12
        widths.append(found.high - found.low)
        alone_widths.append(found.alone_high - found.alone_low)
        means.append(found.mean)
    drawn_means = np.array(means)
    result = Drawn(
        held / times,
        alone_held / times,
        float(np.mean(widths)),
        float(np.mean(alone_widths)),
        float(drawn_means.mean()),
        float(drawn_means.std() / times**0.5),
    )
    print(
        f"{labels} labels, {times} draws: held {result.held:.4f} (alone {result.alone_held:.4f}), "
        f"width {result.width:.4f} (alone {result.alone_width:.4f}), off by {result.mean - truth:+.4f}"
    )
    return result


def people_of(rng: np.random.Generator, share: float) -> Floats:
    return (rng.random(ITEMS) < share).astype(float)


def lenient(rng: np.random.Generator, people: Floats) -> Floats:
    """A judge whose mean is 10 points above people's, and that is wrong both ways."""
    judge = people.copy()
    wrong, right = (rng.permutation(np.flatnonzero(people == value)) for value in (0, 1))
    judge[wrong[: round(0.15 * ITEMS)]] = 1
    judge[right[: round(0.05 * ITEMS)]] = 0
    return judge


def graded(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Scores of five steps, as under a rubric. The judge's are 10 points higher and noisier."""
    quality = rng.normal(0, 1, ITEMS)
    people = np.clip(np.round(2.4 + quality + rng.normal(0, 0.5, ITEMS)), 0, 4) / 4
    judge = np.clip(np.round(2.8 + quality + rng.normal(0, 0.7, ITEMS)), 0, 4) / 4
    return people, judge


def failing(rng: np.random.Generator, judge: Floats, people: Floats) -> Floats:
    """The judge fails on 10 % of the items, more often where people say that the answer is wrong."""
    odds = np.where(people < people.mean(), 4.0, 1.0)
    lost = rng.choice(len(judge), len(judge) // 10, replace=False, p=odds / odds.sum())
    judge = judge.copy()
    judge[lost] = np.nan
    return judge


@pytest.mark.skipif(not judged.FILE.is_file(), reason=judged.ABSENT)
@pytest.mark.parametrize("system", judged.SYSTEMS)
def test_on_peoples_verdicts_200_labels_hold_and_are_narrower(system: str) -> None:
    """By chance alone, 400 draws leave 93–97 % with 6 of 100 seeds, although the intervals hold 95.0–96.1 % (8,000
    draws). With this seed they do not; the 4,000 draws show how often the intervals hold."""
    assert len(judged.rows()) == judged.ANSWERS
    people, judge = judged.verdicts(system)
    assert 0.07 < people.mean() - judge.mean() < 0.17  # The judge by words is far too strict.

    found = draws(people, judge, 200, 400, 2)
    assert 0.93 <= found.held <= 0.97
    assert found.width < found.alone_width
    assert 0.94 <= draws(people, judge, 200, 4_000, 1).held <= 0.97


@pytest.mark.skipif(not judged.FILE.is_file(), reason=judged.ABSENT)
@pytest.mark.parametrize("system", judged.SYSTEMS)
def test_a_judge_that_fails_on_a_tenth_of_real_answers_moves_no_score(system: str) -> None:
    people, judge = judged.verdicts(system)
    rng = np.random.default_rng(3)
    found = draws(people, failing(rng, judge, people), 200, 1_000, 4)

    assert 0.93 <= found.held <= 0.97
    assert abs(found.mean - people.mean()) <= 3 * found.stderr
    assert found.width < found.alone_width


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("labels", [100, 200])
@pytest.mark.parametrize("fails", [False, True])
def test_a_judge_ten_points_too_high_moves_no_score(share: float, labels: int, fails: bool) -> None:
    rng = np.random.default_rng((5, int(100 * share), labels))
    people = people_of(rng, share)
    judge = lenient(rng, people)
    assert judge.mean() - people.mean() == pytest.approx(0.1)
    if fails:
        judge = failing(rng, judge, people)
    found = draws(people, judge, labels, 1_000, 6)

    assert 0.93 <= found.held <= 0.97
    assert abs(found.mean - people.mean()) <= 3 * found.stderr
    assert found.width < found.alone_width


@pytest.mark.parametrize("labels", [50, 200, 1_000])
@pytest.mark.parametrize("fails", [False, True])
def test_scores_of_a_rubric_hold_too(labels: int, fails: bool) -> None:
    rng = np.random.default_rng((7, labels))
    people, judge = graded(rng)
    assert judge.mean() - people.mean() > 0.06
    if fails:
        judge = failing(rng, judge, people)
    found = draws(people, judge, labels, 1_000, 8)

    assert 0.93 <= found.held <= 0.97
    assert abs(found.mean - people.mean()) <= 3 * found.stderr
    assert found.width < found.alone_width


@pytest.mark.parametrize("share", [0.5, 0.7, 0.85, 0.95])
@pytest.mark.parametrize("flips", [0.0, 0.02, 0.1, 0.3])
def test_twenty_labels_hold_ninety_percent_or_more(share: float, flips: float) -> None:
    """Also where all that is labelled is right, and where the judge made no mistake on it. That the judge is not used
    then moves the mean by up to a third of the labels' standard error."""
    rng = np.random.default_rng((9, int(100 * share), int(100 * flips)))
    people = people_of(rng, share)
    judge = np.where(rng.random(ITEMS) < flips, 1 - people, people)

    found = draws(people, judge, 20, 1_000, 10)
    assert found.held >= 0.90
    assert abs(found.mean - people.mean()) <= 0.04


def test_a_judge_without_any_worth_costs_little() -> None:
    rng = np.random.default_rng(11)
    people = people_of(rng, 0.7)
    found = draws(people, people_of(rng, 0.5), 200, 1_000, 12)

    assert 0.93 <= found.held <= 0.97
    assert found.width <= 1.03 * found.alone_width
