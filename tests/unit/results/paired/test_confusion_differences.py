"""Intervals of differences of metrics of the confusion matrix."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk

from services.results.paired import exchange
from services.results.paired.differences import suite_differences, task_differences
from services.results.paired.pairs.difference import Difference, Terms
from services.results.paired.pairs.rows import Confusion, TaskRows
from services.results.statistics.metric_values import Floats, Ints
from tests.recompute import chi_square_range
from tests.unit.results.paired.drawn import PAIR, agrees, difference, exchanged, of_rows
from tests.unit.results.paired_rows import labelled

Cells = dict[tuple[int, int, int], int]
"""Counts by label, A's answer and B's; -1 is no answer."""
TWO: dict[str, Cells] = {
    "even": {(0, 0, 0): 80, (0, 0, 1): 9, (0, 1, 0): 4, (0, 1, 1): 7, (1, 1, 1): 90, (1, 0, 1): 12, (1, 1, 0): 3},
    "near-constant": {(0, 0, 0): 68, (0, 1, 0): 1, (1, 0, 0): 26, (1, 1, 0): 1, (1, 1, 1): 2, (1, 0, 1): 2},
    "unread": {(0, 0, 0): 30, (0, -1, 0): 4, (0, 1, 1): 3, (1, 1, -1): 2, (1, 1, 1): 40, (1, 0, 1): 1},
}
THREE: Cells = {(0, 0, 0): 20, (0, 1, 0): 3, (1, 1, 1): 22, (1, 1, 2): 2, (2, 2, 2): 3, (2, 0, 1): 1, (2, 2, 1): 1}


def found(metric: str, cells: Cells, labels: int) -> Difference:
    names = tuple(f"label {place}" for place in range(labels))
    references, a, b = np.array([*cells]).T
    table = Confusion(metric, names[0], names, references, np.stack([a, b], axis=1))
    task = TaskRows("t", np.array([*cells.values()], dtype=float), {metric: table})
    return task_differences([task], [(0, 1)], Terms(resamples=200))[0][metric][0]


def value(metric: str, references: Ints, answers: Ints, shares: Floats, labels: int) -> float:
    if metric == "f1":
        # An unread answer is the wrong one.
        answers = np.where(answers < 0, np.where(references == 0, 1, 0), answers)
    table = np.zeros((labels + 1, labels + 1))
    np.add.at(table, (references, answers), shares)
    hits, wanted, said = np.diag(table)[:labels], table.sum(axis=1), table.sum(axis=0)
    if metric == "matthews_correlation":
        total = shares.sum()
        spread = (total**2 - wanted @ wanted) * (total**2 - said @ said)
        return float((total * hits.sum() - wanted @ said) / np.sqrt(spread)) if spread > 1e-12 else 0.0
    scores = 2 * hits / np.maximum(wanted + said, 1e-300)[:labels]
    return float(scores[0] if metric == "f1" else scores.mean())


@pytest.mark.parametrize("metric", ["f1", "macro_f1", "matthews_correlation"])
@pytest.mark.parametrize(
    ("cells", "labels"), [*((cells, 2) for cells in TWO.values()), (THREE, 3)], ids=[*TWO, "three"]
)
def test_an_interval_is_what_an_optimiser_finds(metric: str, cells: Cells, labels: int) -> None:
    given = {y: {answer for key in cells if key[0] == y for answer in key[1:]} for y in range(labels)}
    possible = sorted((y, a, b) for y, answers in given.items() for a in answers for b in answers)
    references, a, b = np.array(possible).T
    counts = np.array([cells.get(cell, 0) for cell in possible], dtype=float)

    def difference(shares: Floats) -> float:
        one, other = (value(metric, references, answers, shares, labels) for answers in (a, b))
        return one - other

    difference_found = found(metric, cells, labels)
    assert difference_found.value == pytest.approx(difference(counts))
    assert (difference_found.low, difference_found.high) == pytest.approx(
        chi_square_range(counts, difference), abs=2e-3
    )


@pytest.mark.parametrize("labels", [1, 2, 3, 40])
@pytest.mark.parametrize("metric", ["macro_f1", "matthews_correlation"])
def test_models_that_answer_alike_may_differ_in_other_items(metric: str, labels: int) -> None:
    """By 3.84 items of 400 about; of one label alone nothing is known of another's."""
    difference = found(metric, {(place, place, place): 400 // labels for place in range(labels)}, labels)
    assert difference.value == 0
    assert difference.low is not None
    assert difference.high is not None
    assert difference.high == pytest.approx(-difference.low)
    assert 0.004 < difference.high <= (0.03 if labels > 1 else 1)


@pytest.mark.parametrize("metric", ["macro_f1", "matthews_correlation"])
def test_models_that_err_alike_may_differ_in_other_items(metric: str) -> None:
    """A label that is never met takes answers of both kinds, so not every label has one answer alone."""
    cells = {(0, 0, 0): 100, (1, 1, 1): 100, (2, 0, 0): 20, (2, 1, 1): 20}
    difference = found(metric, cells, 3)
    assert difference.value == 0
    assert difference.low is not None
    assert difference.high is not None
    assert difference.high == pytest.approx(-difference.low)
    assert 0.004 < difference.high < 0.1


@pytest.mark.parametrize("metric", ["macro_f1", "matthews_correlation"])
def test_exchanged_models_have_the_opposite_range(metric: str) -> None:
    there = found(metric, THREE, 3)
    back = found(metric, {(y, b, a): count for (y, a, b), count in THREE.items()}, 3)
    assert there.low is not None
    assert there.high is not None
    assert (back.low, back.high) == (-there.high, -there.low)


@pytest.mark.parametrize("metric", ["f1", "macro_f1", "matthews_correlation"])
@pytest.mark.parametrize(
    ("n", "a", "b"),
    [
        (90, (0.86, 0.14), (0.74, 0.26)),
        (400, (0.5, 0.64), (0.995, 0.995)),
        (1043, (0.5, 0.64), (0.995, 0.995)),
        (400, (0.7, 0.82), (0.99, 0.99)),
        (400, (0.995, 0.98), (0.995, 0.995)),
    ],
    ids=str,
)
def test_differences_of_tables_are_scikit_learns_and_their_p_is_that_of_exchanged_answers(
    metric: str, n: int, a: tuple[float, float], b: tuple[float, float]
) -> None:
    """`a` and `b` are how often each model says yes where that is right, and where it is wrong."""
    rng, draws = np.random.default_rng(30), 6_000
    references = (rng.random(n) < 0.69).astype(int)
    said = [(rng.random(n) < np.where(references, *each)).astype(int) for each in (a, b)]
    found = difference(labelled(references, np.stack(said, axis=1), (metric,)), metric)
    in_sklearn = {"f1": sk.f1_score, "matthews_correlation": sk.matthews_corrcoef, "macro_f1": _macro_f1}[metric]
    assert found.value == pytest.approx(in_sklearn(references, said[0]) - in_sklearn(references, said[1]))
    moved = exchanged(rng, draws, lambda answers: of_rows(metric, references, answers), *said)
    agrees(found, moved)


@pytest.mark.parametrize("seed", range(6))
def test_drawn_p_are_the_enumerated_ones_however_small(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Far smaller than one in as many draws, too."""
    rng = np.random.default_rng(seed)
    references = (rng.random(400) < 0.69).astype(int)
    right = np.where(references[:, None], [0.9, 0.995], [0.8 - 0.12 * seed, 0.98])
    predictions = (rng.random((400, 2)) < right).astype(int)
    task = labelled(references, predictions, ("matthews_correlation", "f1"))
    exact = suite_differences([[task]], PAIR, Terms())[0].p
    monkeypatch.setattr(exchange, "ATOMS", 1)
    drawn = suite_differences([[task]], PAIR, Terms())[0].p
    assert drawn == pytest.approx(exact, rel=0.1, abs=1e-6)
    assert drawn != exact


def _macro_f1(references: Ints, predictions: Ints) -> float:
    return float(sk.f1_score(references, predictions, average="macro"))


@pytest.mark.parametrize("metric", ["f1", "macro_f1", "matthews_correlation"])
def test_errors_of_differences_of_tables_are_those_of_a_paired_bootstrap(metric: str) -> None:
    rng, n = np.random.default_rng(31), 400
    references = rng.integers(0, 2, n)
    a, b = (np.where(rng.random(n) < share, references, 1 - references) for share in (0.86, 0.74))
    found = difference(labelled(references, np.stack([a, b], axis=1), (metric,)), metric)
    picks = rng.integers(0, n, (4_000, n))
    drawn = of_rows(metric, references[picks], a[picks]) - of_rows(metric, references[picks], b[picks])
    assert found.stderr == pytest.approx(drawn.std(), rel=0.06)
