"""From what rows add to a difference: its standard error, interval and tests by Student's t. For arrays. Pure.

The same for sums of independent differences of any metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import default_rng

from services.results.paired.exchange import Part, exchange_p
from services.results.paired.pairs.difference import Difference, Reach, Terms
from services.results.statistics.distributions import student_quantile, student_tail
from services.results.statistics.metric_values import Floats

POWER = 0.8
_NO_SPREAD = 1e-9
"""What counts as rounding, as a part of the largest row or of a whole unit."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Spreads of the estimated differences, one per pair.

    `stderr` is the plain standard error. `width` and `degrees` are for intervals: if only few rows differ, their number
    is itself uncertain.
    """

    stderr: Floats
    width: Floats
    degrees: Floats

    def replaced(self, stderr: Floats) -> Spread:
        """With better standard errors, and the normal distribution; 0 without one."""
        better = stderr > 0
        return Spread(
            np.where(better, stderr, self.stderr),
            np.where(better, stderr, self.width),
            np.where(better, np.inf, self.degrees),
        )

    def half(self, alpha: float) -> Floats:
        """Half the width of the interval at 1 − alpha."""
        half: Floats = student_quantile(1 - alpha / 2, self.degrees) * self.width
        return half

    def equivalence_p(self, values: Floats, margin: float) -> Floats:
        """p of the two one-sided t tests that the difference reaches the margin.

        Source: Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15 (1987) 657.
        """
        p: Floats = student_tail((margin - np.abs(values)) / self.width, self.degrees)
        return p


def smallest_shown(width: Floats, degrees: Floats, alpha: float) -> Floats:
    """Smallest true difference that is shown with 80 % power at a two-sided alpha."""
    found: Floats = (student_quantile(1 - alpha / 2, degrees) + student_quantile(POWER, degrees)) * width
    return found


def spread(parts: Sequence[Part]) -> Spread | None:
    """Of the weighted sum of independent differences. None when no part has two units."""
    pairs = len(parts[0].exchanges)
    variance, squares = np.zeros(pairs), np.zeros(pairs)
    differing, units, range_ = np.zeros(pairs), 0.0, 0.0
    for part in parts:
        n = part.added.units
        if n < 2:
            continue
        rows = part.weight * part.added.rows
        mean = part.added.counts @ rows / n
        own = part.added.counts @ (rows - mean) ** 2 * (n / (n - 1))
        variance += own
        squares += own**2 / (n - 1)
        differing += [each.differing for each in part.exchanges]
        units += n
        range_ += part.weight**2 / n
    if not units:
        return None
    plain = np.sqrt(variance)
    # Assumes one more row that differs, as much as those that do; if all rows differ, nothing is added. Without any
    # spread the interval is about as wide as Tango's for right and wrong.
    spreads = variance > _NO_SPREAD**2 * range_
    more = variance * (1 - differing / units) / np.maximum(differing, 1)
    width = np.sqrt(np.where(spreads, variance + more, 4 * range_ / units))
    degrees = np.divide(variance**2, squares, out=np.full(pairs, np.inf), where=spreads)
    return Spread(plain, width, degrees)


def tested(parts: Sequence[Part], test: str, terms: Terms, seed: Sequence[int]) -> list[Difference]:
    """The weighted sums, one per pair, tested by exchanging the two models within random rows of all parts.

    An undefined part counts as 0; if it is the only part, the difference is undefined.
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
            # The same stream for every pair: none depends on which others are compared.
            p = exchange_p([part.exchanges[place] for part in parts], value, draws, default_rng(seed))
            found.append(Difference(value, n, p=p, test=test, undefined_reason=reason))
    return found


def with_spread(found: Sequence[Difference], known: Spread | None, terms: Terms, limit: float) -> list[Difference]:
    """Adds the figures that follow from the spread; no interval exceeds the `limit`, the largest possible
    difference."""
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
