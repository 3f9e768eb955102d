"""The findings of a paired comparison, and its terms. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

Pair = tuple[int, int]
"""Two models by index, for the difference a − b."""
Pairs = Sequence[Pair]
_DRAWS = 100_000
"""Resamples of all pairs together; each pair gets at least `_FEWEST`."""
_FEWEST = 1_000


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a comparison.

    `alpha` is the error rate of tests, and one minus the level of intervals. `margin` is the largest difference that
    does not matter, in the metric's own range. `resamples` are drawn, from `seed`, where there is no formula; fewer for
    each of more than ten pairs.
    """

    alpha: float = 0.05
    margin: float = 0.01
    seed: int = 0
    resamples: int = 10_000

    def draws(self, pairs: int) -> int:
        """Resamples for each of this many pairs."""
        return min(self.resamples, max(_FEWEST, _DRAWS // max(pairs, 1)))


@dataclass(frozen=True, slots=True)
class Reach:
    """How far off an estimate may be by chance: `width`, in Student's distribution with `degrees` of freedom. No
    difference exceeds the `limit`."""

    width: float
    degrees: float
    limit: float


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric of A minus that of B, on the same items, in the metric's own range.

    `value` is None where it is undefined, with a reason; `stderr`, `low` and `high` (the interval at 1 − alpha), `p`
    (two-sided) and the rest are None where they are unknown. `n` counts items, or groups for rules over groups.
    `only_a` and `only_b` count items right in one run only; 0 for metrics without right and wrong. `smallest` is the
    smallest true difference that this many items show with 80 % power: for a single test, until `power.within` applies
    the level of a family. `reach` is its basis for metrics without right and wrong. `equivalence_p` belongs to the two
    one-sided tests for a difference within the margin.
    """

    value: float | None
    n: int
    stderr: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    test: str = ""
    only_a: int = 0
    only_b: int = 0
    smallest: float | None = None
    equivalence_p: float | None = None
    undefined_reason: str = ""
    reach: Reach | None = None

    def __neg__(self) -> Difference:
        """B against A."""
        return replace(
            self,
            value=_negative(self.value),
            low=_negative(self.high),
            high=_negative(self.low),
            only_a=self.only_b,
            only_b=self.only_a,
        )


def _negative(number: float | None) -> float | None:
    return None if number is None else 0.0 - number


@dataclass(frozen=True, slots=True)
class Omnibus:
    """Whether k models differ at all; `p` is that of chi-square. `n` counts as in Difference."""

    statistic: float
    degrees_of_freedom: int
    p: float
    n: int
    test: str
