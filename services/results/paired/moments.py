"""From what rows add to a difference: its standard error, interval and tests by Student's t. For arrays. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from services.results.paired.exchange import Part
from services.results.statistics.distributions import student_quantile, student_tail
from services.results.statistics.metric_values import Floats

POWER = 0.8
_NO_SPREAD = 1e-9
"""What is rounding, as a part of the largest row or of a whole unit."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Of the estimates of differences, one per pair.

    `stderr` is the plain one. `width` and `degrees` are what intervals are made with: where only few rows differ,
    their number is itself a guess.
    """

    stderr: Floats
    width: Floats
    degrees: Floats

    def replaced(self, stderr: Floats) -> Spread:
        """With better standard errors, and the normal distribution; 0 where there is none."""
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
    # One row more that differs, as far as those that do; where all rows differ nothing is added. Without any spread the
    # interval is about as wide as Tango's for right and wrong.
    spreads = variance > _NO_SPREAD**2 * range_
    more = variance * (1 - differing / units) / np.maximum(differing, 1)
    width = np.sqrt(np.where(spreads, variance + more, 4 * range_ / units))
    degrees = np.divide(variance**2, squares, out=np.full(pairs, np.inf), where=spreads)
    return Spread(plain, width, degrees)
