"""Sums of independent differences of any metrics: their tests, standard errors and intervals. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.random import default_rng

from services.results.paired.exchange import Part
from services.results.paired.exchange_p import exchange_p
from services.results.paired.moments import Spread, smallest_shown
from services.results.paired.pairs.difference import Difference, Reach, Terms
from services.results.statistics.metric_values import Floats


def tested(parts: Sequence[Part], test: str, terms: Terms, seed: Sequence[int]) -> list[Difference]:
    """The weighted sums, one per pair, tested by exchanging the two models within random rows of all parts.

    A part that is undefined counts as 0; alone it leaves the difference undefined.
    """
    values = np.sum([part.weight * part.added.values for part in parts], axis=0)
    draws = terms.draws(len(values))
    n = sum(part.added.n for part in parts)
    found = []
    for place, value in enumerate(values.tolist()):
        reason = "; ".join(sorted({part.added.reasons[place] for part in parts} - {""}))
        if reason and len(parts) == 1:
            found.append(Difference(None, n, undefined_reason=reason))
        else:
            # The same stream for every pair: none hangs on which others are compared.
            p = exchange_p([part.exchanges[place] for part in parts], value, draws, default_rng(seed))
            found.append(Difference(value, n, p=p, test=test, undefined_reason=reason))
    return found


def with_spread(found: Sequence[Difference], known: Spread | None, terms: Terms, limit: float) -> list[Difference]:
    """Adds what the spread says; no interval goes beyond the `limit`, the largest difference there can be."""
    if known is None:
        return list(found)
    values = np.array([0.0 if each.value is None else each.value for each in found])
    half = known.half(terms.alpha)
    smallest = np.minimum(smallest_shown(known.width, known.degrees, terms.alpha), limit)
    columns: tuple[Floats, ...] = (
        *(known.stderr, half, smallest, known.equivalence_p(values, terms.margin)),
        *(known.width, known.degrees),
    )
    return [
        difference
        if difference.value is None
        else replace(
            difference,
            stderr=error,
            low=max(difference.value - side, -limit),
            high=min(difference.value + side, limit),
            smallest=least,
            reach=Reach(width, degrees, limit),
            equivalence_p=equivalent,
        )
        for difference, error, side, least, equivalent, width, degrees in zip(
            found, *(column.tolist() for column in columns), strict=True
        )
    ]
