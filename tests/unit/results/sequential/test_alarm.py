"""Whether an endpoint still answers as it did."""

from __future__ import annotations

import math

import numpy as np
import pytest

from services.results.sequential.alarm import ANSWERS, SCORE, TEXT, Asking, alarm


def _scores(then: np.ndarray, now: np.ndarray) -> list[Asking]:
    return [Asking(0, float(b) - float(a)) for a, b in zip(then, now, strict=True)]


def test_a_worse_model_raises_the_alarm_by_its_scores() -> None:
    rng = np.random.default_rng(1)
    found = alarm(_scores(rng.random(400) < 0.84, rng.random(400) < 0.5), error=0.01, second=False)

    assert found.by == SCORE
    assert found.raised_at is not None
    assert found.raised_at < 150
    evidence = found.evidence[SCORE]
    assert evidence[found.raised_at - 1] >= found.threshold > evidence[: found.raised_at - 1].max()


def test_a_better_model_raises_it_too() -> None:
    rng = np.random.default_rng(2)
    found = alarm(_scores(rng.random(400) < 0.5, rng.random(400) < 0.84), error=0.01, second=False)

    assert found.raised_at is not None


def test_a_change_is_dated_to_about_when_it_happened() -> None:
    rng = np.random.default_rng(3)
    now = np.where(np.arange(400) < 200, rng.random(400) < 0.9, rng.random(400) < 0.4)
    found = alarm(_scores(rng.random(400) < 0.9, now), error=0.01, second=False)

    assert found.since == pytest.approx(200, abs=20)
    assert found.raised_at is not None
    assert found.raised_at > 200


@pytest.mark.parametrize("signal", [ANSWERS, TEXT])
def test_answers_that_differ_more_than_by_chance_raise_the_alarm(signal: str) -> None:
    rng = np.random.default_rng(4)

    def asked(share_now: float) -> list[Asking]:
        values = (rng.random(300) < share_now).astype(int) - (rng.random(300) < 0.15).astype(int)
        return [Asking(0, 0.0, **{signal: int(value)}) for value in values]

    found = alarm(asked(0.5), error=0.01, second=True)

    assert found.by == signal
    assert alarm(asked(0.15), error=0.01, second=True).raised_at is None


def test_without_a_second_asking_the_first_turn_bets_on_scores_alone() -> None:
    changed = [Asking(0, 0.0, 1, 1)] * 200

    assert alarm(changed, error=0.01, second=False).raised_at is None
    assert alarm(changed, error=0.01, second=True).by == ANSWERS
    assert alarm([Asking(1, 0.0, 1, 1)] * 200, error=0.01, second=False).by == ANSWERS


def test_all_turns_together_have_no_more_than_the_error() -> None:
    found = [alarm([Asking(turn, 0.0, 0, 0)], error=0.01, second=False) for turn in range(2_000)]
    shares = [math.exp(float(one.evidence[signal][0])) for one in found for signal in one.evidence if signal != SCORE]
    of_scores = [math.exp(float(one.evidence[SCORE][0])) * 3 / 2 for one in found]

    assert sum(shares) + sum(of_scores) <= 1


def test_what_is_not_known_does_not_count() -> None:
    rng = np.random.default_rng(5)
    known = _scores(rng.random(200) < 0.9, rng.random(200) < 0.3)
    with_gaps = [one for asking in known for one in (Asking(0), asking)]
    found, of_known = (alarm(some, error=0.01, second=False) for some in (with_gaps, known))

    assert of_known.raised_at is not None
    assert found.raised_at == 2 * of_known.raised_at


def test_an_unchanged_endpoint_seldom_raises_the_alarm_in_any_turn() -> None:
    """One reference and one second asking serve all turns, so that their turns are not independent."""
    rng, trials, error, items = np.random.default_rng(6), 200, 0.05, 100
    raised = 0
    for _ in range(trials):
        chance = rng.choice([0.05, 0.5, 0.95], items)
        then, again = rng.random(items) < chance, rng.random(items) < chance
        askings = []
        for turn in range(4):
            now = rng.random(items) < chance
            for a, b, y in zip(then, again, now, strict=True):
                differs = int(y != a) - int(b != a)
                askings.append(Asking(turn, float(y) - float(a), differs, differs))
        raised += alarm(askings, error=error, second=True).raised_at is not None

    assert raised <= error * trials


def test_nothing_asked_raises_nothing() -> None:
    assert alarm([], error=0.01, second=True).raised_at is None
