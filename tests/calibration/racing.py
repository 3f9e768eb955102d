"""Several models on a record of published answers, or on drawn ones, raced for the best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from services.results.paired.binary import mcnemar
from services.results.sequential.draws import ALONE, Plan, draws_from
from services.results.sequential.evidence import verdict
from services.results.sequential.race import BEST, Found, Runner, Standing, pair_error, race
from services.results.sequential.verdicts import UNDECIDED
from services.results.statistics.metric_values import Ints
from tests.calibration.deciding import ERROR


@dataclass(frozen=True)
class Race:
    """How it ended, and the part of all models' items that it took."""

    standing: Standing
    part: float


def run(right: Ints, margin: float = 0.0) -> Race:
    """The product's rule, given the answers (models, items) in their order: 1 for right, else 0."""
    models, items = right.shape
    known = {
        pair: _found(right[pair[1]] - right[pair[0]], pair_error(ERROR, models), margin)
        for pair in combinations(range(models), 2)
    }
    standing = race([Runner(items, False)] * models, items, lambda one, other: known[one, other])
    last = items if standing.decided_at is None else standing.decided_at
    asked = [standing.beaten[model].at if model in standing.beaten else last for model in range(models)]
    return Race(standing, sum(asked) / (models * items))


def _found(difference: Ints, error: float, margin: float) -> Found:
    total = len(difference)
    one_kind = np.zeros(total, dtype=np.int64)
    draws = draws_from(difference.astype(float), one_kind, np.full(total, ALONE), Plan(total, {}, {}, {}), ended=True)
    word, at = verdict(draws, total, error=error, margin=margin, total=total, ended=True)
    return Found(word, at) if at else Found(UNDECIDED)


def best(right: Ints) -> tuple[int, ...]:
    """Those that no other is better than by the exact tests of all items, with the error divided by the pairs."""
    models = len(right)
    out = set()
    for one, other in combinations(range(models), 2):
        b, a = (np.array([float(np.sum(right[other] - right[one] == sign))]) for sign in (1, -1))
        if mcnemar(a, b)[0] <= pair_error(ERROR, models):
            out.add(one if b[0] > a[0] else other)
    return tuple(model for model in range(models) if model not in out)


def chosen(rng: np.random.Generator, known: Mapping[str, Ints], models: int) -> Ints:
    """Some models of a record, with the items in a random order."""
    names = rng.choice(sorted(known), models, replace=False)
    answers = np.stack([known[name] for name in names])
    found: Ints = answers[:, rng.permutation(answers.shape[1])]
    return found


def tied(rng: np.random.Generator, right: Ints, models: int) -> tuple[Ints, set[int]]:
    """The same answers, but each item's of the best `models` models are dealt out among these, so that they are equal;
    and which these are."""
    top = np.argsort(-right.mean(axis=1), kind="stable")[:models]
    dealt = right.copy()
    dealt[top] = rng.permuted(right[top], axis=0)
    return dealt, {*top.tolist()}


def told_apart(top: set[int], standing: Standing) -> bool:
    """Whether a race says that one of several equal best models is not among the best, or that one alone is."""
    return bool(top & {*standing.beaten}) or standing.verdict == BEST
