"""How many answers flip between servings of one model, and whether intervals with the noise of runs hold the truth."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from numpy.random import Generator, default_rng

from services.results.comparison.noise import get_noise
from services.results.paired import binary
from services.results.statistics.metric_values import Floats, Ints
from services.results.statistics.reasking import shift, widened
from services.results.storage.migrations import open_file
from tests.calibration.deciding import ABSENT, FOLDER, record
from tests.record import authors, published
from tests.unit.results.finished import finished, right_or_wrong, task
from touchstone.v1 import results_service_pb2

pytestmark = pytest.mark.calibration

PUBLISHED = {"gsm8k": (0.017, 0.027), "math_l5": (0.11, 0.19), "crux": (0.11, 0.19)}
"""Shares of items that flip between two servings of Llama-3.1-405B."""
ITEMS, TRIALS, ALPHA = 600, 1_500, 0.05


def servings(name: str) -> dict[str, Ints]:
    """1 for each item that a serving has right. The matrix of MATH-L5 lacks one, the texts have both."""
    found = {model: marks for model, marks in record(name).items() if "405B" in model}
    if len(found) > 2:
        return found
    judged = {one.model: _judged(one) for one in published.records() if _is_meant(name, one)}
    common = sorted(set.intersection(*map(set, judged.values())))
    return {model: np.array([right[item] for item in common], dtype=np.int64) for model, right in judged.items()}


def _is_meant(name: str, one: published.Record) -> bool:
    return one.task == name and "405B" in one.model


def _judged(one: published.Record) -> dict[str, bool]:
    """By item."""
    right = {}
    for row in one.rows():
        given = authors.answer(one.task, one.model, row["output"][0])
        right[str(row["id"])] = given is not None and authors.is_right(one.task, given, row["answer"])
    return right


@pytest.mark.skipif(not FOLDER.is_dir(), reason=ABSENT)
@pytest.mark.parametrize("name", PUBLISHED)
def test_servings_of_one_model_flip_as_published(tmp_path: Path, name: str) -> None:
    marks = servings(name)
    assert len(marks) == (2 if name == "math_l5" else 3)
    least, most = PUBLISHED[name]
    with open_file(tmp_path / "results.duckdb") as connection:
        for minute, (model, right) in enumerate(marks.items()):
            pattern = "".join(map(str, right))
            finished(connection, model, task(name, right_or_wrong(pattern)), model=model, minute=minute)
        for jobs in dict.fromkeys((*combinations(marks, 2), tuple(marks))):
            with connection.cursor() as cursor:
                noise = get_noise(cursor, results_service_pb2.GetNoiseRequest(job_ids=jobs)).noise
            flips, parts = noise.total.servings, noise.total.variance
            share = np.mean([np.mean(marks[a] != marks[b]) for a, b in combinations(jobs, 2)])
            print(f"\n{name}, {' and '.join(jobs)}: {flips.share:.1%} flip ({flips.low:.1%} to {flips.high:.1%})")
            print(f"variance: items {parts.items:.4f}, servings {parts.servings:.5f}, both {parts.interaction:.4f}")
            assert noise.total.items == len(marks[jobs[0]])
            assert flips.share == pytest.approx(share)
            # The published range is rounded.
            assert least - 5e-4 <= flips.share <= most + 5e-3
            assert flips.low < flips.share < flips.high
            assert flips.high - flips.low < 0.06
            assert parts.servings < 1e-4


def drawn(rng: Generator, chances: Floats, runs: int, moves: float) -> Floats:
    """Runs that are right on each item with its chance, moved for a whole run by a normal number."""
    moved = np.clip(chances + rng.normal(0, moves, (runs, 1)), 0, 1)
    return (rng.random((runs, len(chances))) < moved).astype(float)


@pytest.mark.parametrize("moves", [0.0, 0.01, 0.03])
@pytest.mark.parametrize("runs", [2, 3, 5])
def test_intervals_hold_the_difference_of_the_next_runs_too(runs: int, moves: float) -> None:
    """Of two models on items like these, each asked on days that may be better or worse: what single answers do by
    chance is in the usual interval, what moves whole runs is not."""
    rng, usual, total, wider = default_rng(24), 0, 0, []
    weights = np.full(ITEMS, 1 / ITEMS)
    for _ in range(TRIALS):
        kinds = rng.choice(4, ITEMS, p=[0.55, 0.2, 0.15, 0.1])
        # Easy, hard, undecided, and better in the first model; in the middle, so that no chance is cut at 0 or 1.
        first, second = np.array([0.9, 0.1, 0.5, 0.9])[kinds], np.array([0.9, 0.1, 0.5, 0.4])[kinds]
        a, b = (drawn(rng, chances, runs, moves) for chances in (first, second))
        n, only_a, only_b = (np.array([float(count)]) for count in (ITEMS, np.sum(a[0] > b[0]), np.sum(a[0] < b[0])))
        low, high = (float(end[0]) for end in binary.score_interval(n, only_a, only_b, ALPHA))
        variance = float(binary.standard_error(n, only_a, only_b)[0]) ** 2
        shifts = [found for rows in (a, b) if (found := shift([row[None] for row in rows], weights)) is not None]
        value, truth = float((a[0] - b[0]).mean()), 0.1 * 0.5
        down, up = (widened(abs(value - end), shifts, variance, ITEMS, ALPHA) for end in (low, high))
        usual += low <= truth <= high
        total += value - down <= truth <= value + up
        wider.append((up + down) / (high - low))
    print(
        f"\n{runs} runs of each, moved by {moves:.0%}: usual {usual / TRIALS:.1%}, total {total / TRIALS:.1%}, "
        f"{np.median(wider):.2f} times as wide"
    )
    assert total / TRIALS >= 0.93
    if not moves:
        assert usual / TRIALS >= 0.935
        assert np.median(wider) < 1.1
    if moves > 0.02:
        assert usual / TRIALS < 0.85
