"""What a paired comparison finds, and the terms it is made on. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

Pair = tuple[int, int]
"""Two models by their places: a − b is asked for."""
Pairs = Sequence[Pair]
_DRAWS = 100_000
"""Resamples of all pairs together; each pair gets at least `_FEWEST`."""
_FEWEST = 1_000


@dataclass(frozen=True, slots=True)
class Terms:
    """On which terms models are compared.

    `alpha` is the error rate of tests, and one minus the level of intervals. `margin` is the largest difference that
    does not matter, in the metric's own range. `resamples` are drawn, from `seed`, where no formula serves; fewer for
    each of more than ten pairs.
    """

    alpha: float = 0.05
    margin: float = 0.01
    seed: int = 0
    resamples: int = 10_000

    def draws(self, pairs: int) -> int:
        """Resamples of each of so many pairs."""
        return min(self.resamples, max(_FEWEST, _DRAWS // max(pairs, 1)))


@dataclass(frozen=True, slots=True)
class Reach:
    """How far off chance may take an estimate: by `width`, in Student's distribution of so many `degrees` of freedom.
    No difference is beyond the `limit`."""

    width: float
    degrees: float
    limit: float


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric of A minus that of B, on the same items, in the metric's own range.

    `value` is None where it is undefined, with a reason; `stderr`, `low` and `high` (the interval at 1 − alpha), `p`
    (two-sided) and the rest are None where they cannot be told. `n` counts items, or groups for rules over groups.
    `only_a` and `only_b` count items right in one run only; 0 where there is no right and wrong. `smallest` is the
    smallest true difference that as many items show with 80 % power: tested alone, until `power.within` takes it to the
    level of a family. `reach` is what it follows from where that is not counts of right and wrong.
    `equivalence_p` is that of the two one-sided tests for a difference within the margin.
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
