"""People's mean score over all items, from the scores that people gave to some items and a judge to all. Pure.

The labelled items are drawn at random without replacement, and the value looked for is the mean of people's scores over
exactly these items, not over others like them. For a weight b the estimate is

    mean of people's scores over the labelled items + b · (judge's mean over all items − judge's mean over the labelled)

Its expected value is people's mean whatever the judge says, so that a biased judge cannot move it. Its variance is
(1 − n/N) · S²/n, where S² is the variance of (people's − b · judge's score) over the items: the closer the judge
follows people, up to a line, the narrower is the interval.

Sources: Angelopoulos, Bates, Fannjiang, Jordan and Zrnic, Science 382 (2023) 669 (prediction-powered inference);
Angelopoulos, Duchi and Zrnic, arXiv:2311.01453 (the weight that makes the variance smallest); Cochran, Sampling
Techniques (1977), 7.2 (the same estimate for finitely many items). Their weight λ is b · (1 − n/N).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from services.results.statistics.bounded_means import Spread, spread
from services.results.statistics.metric_values import Floats, Ints

LEAST_LABELS = 2
_ASSUMED = 5.0
"""Items on which the judge says nothing, added to the variance. With fewer, intervals hold too seldom when the judge
and people differ on few of the labelled items (decision 271)."""
_AGREEING = 1.0
"""Items on which the judge agrees with people, added to the weight: without any, a weight from few labels may be large
by chance."""
_SPREAD_OVER = 4.0
"""Over how many items the spread of people's scores must be: with all but two of 20 right, nothing is known yet about
how the judge treats wrong answers. It is n divided by the kurtosis: n for as many right as wrong ones. With 20 labels,
leaving out the judge then moves the mean by up to .03; otherwise its expected value is people's mean."""


@dataclass(frozen=True, slots=True)
class Combined:
    """People's mean score over `items` items, of which `labels` have a person's score, with its 95 % interval.

    `mean` of people and judge together, and `alone` of the labels without the judge, each with `low` and `high`.
    `weight` is λ: 0 where the judge is not used, near 1 where it counts like a person. `failed` judgements have no
    score. `stderr` is the standard error. All scores are within [0, 1].
    """

    mean: float
    low: float
    high: float
    stderr: float
    alone: float
    alone_low: float
    alone_high: float
    weight: float
    labels: int
    items: int
    failed: int
    spread: Spread


def combined(people: Floats, judge: Floats) -> Combined:
    """Of people's and a judge's scores (items,), NaN where there is none: not labelled, or a failed judgement.

    The labelled items must be drawn at random (`drawn_labels`). A failed judgement counts as the mean of the others:
    a constant, for items in and out of the sample, which leaves the expected value as it is.
    Raises ValueError with fewer than `LEAST_LABELS` labels, another shape, or a score outside [0, 1].
    """
    if people.ndim != 1 or people.shape != judge.shape:
        raise ValueError(f"people's and the judge's scores have shapes {people.shape} and {judge.shape}")
    for scores in (people, judge):
        if not ((scores >= 0) & (scores <= 1) | np.isnan(scores)).all():
            raise ValueError("a score is outside [0, 1]")
    labelled = ~np.isnan(people)
    labels, items = int(labelled.sum()), len(people)
    if labels < LEAST_LABELS:
        raise ValueError(f"{labels} labels are fewer than {LEAST_LABELS}")
    failed = np.isnan(judge)
    said = np.where(failed, 0.0 if failed.all() else judge[~failed].mean(), judge) if failed.any() else judge
    wanted = people[labelled]
    weights = _weights(wanted, said[labelled], float(said.var())) if labels < items else np.zeros(labels)
    explained = weights * (said[labelled] - (said[~labelled].mean() if labels < items else 0.0))
    left = 1 - labels / items
    alone = float(wanted.mean())
    mean = min(1.0, max(0.0, alone - left * float(explained.mean())))
    without = spread(wanted, wanted, 0)
    found = spread(wanted - explained, wanted, _ASSUMED) if weights.any() else without
    low, high = _interval(mean, found, labels, items)
    alone_low, alone_high = _interval(alone, without, labels, items)
    stderr = math.sqrt(left * float((wanted - explained).var(ddof=1)) / labels)
    weight = left * float(weights.mean())
    return Combined(
        mean, low, high, stderr, alone, alone_low, alone_high, weight, labels, items, int(failed.sum()), found
    )


def _interval(mean: float, found: Spread, labels: int, items: int) -> tuple[float, float]:
    down, up = found.ends(labels, items)
    return max(0.0, mean + down), min(1.0, mean + up)


def _weights(wanted: Floats, said: Floats, spread_of_all: float) -> Floats:
    """b for each label (labels,), by least squares from the other labels alone.

    A weight that its own label does not influence leaves the expected value exactly people's mean, however few labels
    there are. It is at least 0: a judge that contradicts people is not used. All are 0 where people's scores do not
    spread over enough labels.
    """
    n = len(wanted)
    wanted, said = wanted - wanted.mean(), said - said.mean()
    second, fourth = float((wanted**2).sum()), float((wanted**4).sum())
    if spread_of_all <= 0 or second <= 0 or second * second < _SPREAD_OVER * fourth:
        return np.zeros(n)
    # Without one of n, a sum of centred products loses n/(n − 1) of that one's product.
    share = n / (n - 1)
    both = float(wanted @ said) - share * wanted * said
    judges = np.maximum(0.0, float(said @ said) - share * said**2)
    agreeing = _AGREEING * spread_of_all
    weights: Floats = np.maximum(0.0, (both + agreeing) / (judges + agreeing))
    return weights


def labels_to_halve(found: Combined) -> int | None:
    """How many more labels make the interval half as wide, if the scores' spread stays as it is. None where the
    interval has no width, as when all items are labelled."""

    def width(labels: int) -> float:
        low, high = _interval(found.mean, found.spread, labels, found.items)
        return high - low

    wide = width(found.labels)
    if wide <= 0:
        return None
    few, enough = found.labels, found.items
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if width(middle) <= wide / 2 else (middle, enough)
    return enough - found.labels


def labelling_order(ids: Sequence[str], seed: int) -> Ints:
    """The order (items,) in which people label, as indices of `ids`: random, the same for the same ids and seed.

    Only a random draw keeps the interval true without knowing how likely each item was drawn. Items on which the judge
    seems unsure would narrow it only if that doubt tells where the judge is wrong, and each score would need its own
    weight for ever after. The estimate uses what the judge says anyhow.
    """
    keys = [sha256(f"{seed}:{one}".encode()).digest() for one in ids]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def next_to_label(order: Ints, labelled: npt.NDArray[np.bool_], count: int) -> Ints:
    """Up to `count` items: the first ones in `order` that are not `labelled` (items,)."""
    return order[~labelled[order]][:count]


def drawn_labels(order: Ints, labelled: npt.NDArray[np.bool_]) -> Ints:
    """The labelled items that are a random draw: those before the first one in `order` that has no label.

    Labels of items that somebody chose, say the worst ones, would move the mean.
    """
    gaps = np.flatnonzero(~labelled[order])
    return order[: gaps[0]] if len(gaps) else order
