"""How soon a watch sees that the model behind an endpoint was exchanged, and how often it says so in vain."""

from __future__ import annotations

import csv
import gzip
import os
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.random import Generator, default_rng

from services.results.sequential.alarm import SCORE, Asking, alarm
from services.results.statistics.metric_values import Floats
from tests.calibration.deciding import ABSENT, FOLDER, record

pytestmark = pytest.mark.calibration

DRIFT = Path(os.environ.get("TOUCHSTONE_RECORDS_DIR", "")).resolve() / "drift" / "primes.csv.gz"
ERROR, CANARIES = 0.01, 1_000


def _primes(model: str) -> Floats:
    """1 for each question that is right, by the last [yes] or [no]."""
    right: dict[str, float] = {}
    with gzip.open(DRIFT, "rt") as file:
        for row in csv.DictReader(file):
            if row["model"].endswith(model):
                said = re.findall(r"\[(yes|no)\]", row["answer"].lower())
                right[row["query"]] = float(said[-1:] == [row["ref_answer"].lower()])
    return np.array([right[question] for question in sorted(right)])


def _watched(then: Floats, again: Floats, now: Floats) -> list[Asking]:
    """Of right and wrong, which is also what is said. The first pass without a second asking bets on scores alone."""
    differs = (now != then).astype(int) - (again != then).astype(int)
    return [Asking(0, float(b - a), int(z), int(z)) for a, b, z in zip(then, now, differs, strict=True)]


@pytest.mark.skipif(not DRIFT.is_file(), reason=ABSENT)
def test_gpt_4_in_june_is_seen_within_120_items_in_95_percent() -> None:
    march, june = _primes("gpt-4-0314"), _primes("gpt-4-0613")
    assert (march.mean(), june.mean()) == pytest.approx((0.84, 0.502))
    rng, orders, after = default_rng(22), 1_000, []
    for _ in range(orders):
        order = rng.permutation(len(march))[:400]
        found = alarm(_watched(march[order], march[order], june[order]), error=ERROR, second=False)
        assert found.by in (SCORE, "")
        after.append(found.raised_at or len(march))
    print(f"\nGPT-4, March and June: alarm after {np.median(after):.0f} items, 95 %: {np.quantile(after, 0.95):.0f}")
    assert np.quantile(after, 0.95) <= 120


@pytest.mark.skipif(not FOLDER.is_dir(), reason=ABSENT)
@pytest.mark.parametrize("task", ["gsm8k", "crux"])
@pytest.mark.parametrize("second", [True, False])
def test_servings_of_one_model_raise_the_alarm_in_at_most_1_percent(task: str, second: bool) -> None:
    """As many items flip as between three published servings of one model; which serving was asked first, again and now
    is drawn for each item. CRUX has 800 items."""
    servings = np.stack([marks.astype(float) for name, marks in record(task).items() if "405B" in name])
    rng, trials, raised = default_rng(23), 1_000, 0
    for _ in range(trials):
        then, again, now = rng.permuted(servings, axis=0)
        order = rng.permutation(len(then))
        asked = _watched(then[order], again[order], now[order])[:CANARIES]
        raised += alarm(asked, error=ERROR, second=second).raised_at is not None
    print(f"\n{task}: {raised} false alarms of {trials:,}")
    assert raised <= ERROR * trials


def _unchanged(rng: Generator, items: int) -> list[Asking]:
    """A thousand canaries of a model that answers by chance, in turns over the same items: scores flip, answers too,
    and nearly every text differs."""
    sure = rng.choice([0.02, 0.5, 0.9, 0.99], items)
    then, first = (rng.random(items) < sure for _ in range(2))
    asked: list[Asking] = []
    for turn in range(-(-CANARIES // items)):
        now = first if turn == 0 else rng.random(items) < sure
        differs = (now != then).astype(int) - (first != then).astype(int)
        texts = rng.integers(-1, 2, items) * (rng.random(items) < 0.5)
        asked += [
            Asking(turn, float(b) - float(a), int(z) if turn else None, int(t) if turn else None)
            for a, b, z, t in zip(then, now, differs, texts, strict=True)
        ]
    return asked[:CANARIES]


@pytest.mark.parametrize("items", [100, 300, 1_000])
def test_a_model_that_answers_by_chance_raises_the_alarm_in_at_most_1_percent(items: int) -> None:
    rng, trials = default_rng(24), 1_000
    raised = sum(alarm(_unchanged(rng, items), error=ERROR, second=False).raised_at is not None for _ in range(trials))
    print(f"\n{items} items in turn: {raised} false alarms of {trials:,}")
    assert raised <= ERROR * trials
