"""Sums of independent differences of any metrics: their tests, standard errors and intervals. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from services.results.paired.contributions import Contributions
from services.results.paired.difference import Difference, Terms
from services.results.paired.moments import Spread
from services.results.paired.sign_flip import sign_flip_p
from services.results.statistics import Floats


def tested(parts: Sequence[Contributions], weights: Sequence[float], test: str) -> list[Difference]:
    """The weighted sums, one per pair, tested by exchanging the two models within random rows of all parts.

    A part that is undefined counts as 0; alone it leaves the difference undefined.
    """
    values = np.sum([weight * part.values for part, weight in zip(parts, weights, strict=True)], axis=0)
    rows = np.concatenate([weight * part.exchanged for part, weight in zip(parts, weights, strict=True)])
    counts = np.concatenate([part.counts for part in parts])
    n = sum(part.n for part in parts)
    found = []
    for place, value in enumerate(values.tolist()):
        reason = "; ".join(sorted({part.reasons[place] for part in parts} - {""}))
        if reason and len(parts) == 1:
            found.append(Difference(None, n, undefined_reason=reason))
        else:
            p = sign_flip_p(rows[:, place], counts)
            found.append(Difference(value, n, p=p, test=test, undefined_reason=reason))
    return found


def with_spread(found: Sequence[Difference], known: Spread | None, terms: Terms, limit: float) -> list[Difference]:
    """Adds what the spread says; no interval goes beyond the `limit`, the largest difference there can be."""
    if known is None:
        return list(found)
    values = np.array([0.0 if each.value is None else each.value for each in found])
    half = known.half(terms.alpha)
    smallest = np.minimum(known.smallest(half), limit)
    columns: tuple[Floats, ...] = (known.stderr, half, smallest, known.equivalence_p(values, terms.margin))
    return [
        difference
        if difference.value is None
        else replace(
            difference,
            stderr=error,
            low=max(difference.value - side, -limit),
            high=min(difference.value + side, limit),
            smallest=least,
            equivalence_p=equivalent,
        )
        for difference, error, side, least, equivalent in zip(
            found, *(column.tolist() for column in columns), strict=True
        )
    ]
