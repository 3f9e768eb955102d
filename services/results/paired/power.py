"""What so many items can show of a true difference when it is one of several that are tested. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from services.results.paired import binary
from services.results.paired.difference import Difference
from services.results.paired.moments import smallest_shown
from services.results.statistics import Floats


def within(differences: Sequence[Difference], alpha: float) -> list[Difference]:
    """Members of one family that is corrected to `alpha`, each with the smallest true difference that it shows with
    80 % power or more.

    Computed at alpha by the number of members, the first step of Holm's and the last of Benjamini and Hochberg's
    corrections: what is found there is found whatever the others show. The step that a member comes to hangs on the
    others, and would be another one with other answers of the same models.
    """
    level = alpha / max(1, len(differences))
    found = list(differences)
    for places, smallest in (_of_counts(found, level), _of_reach(found, level)):
        for place, value in zip(places, smallest.tolist(), strict=True):
            found[place] = replace(found[place], smallest=value)
    return found


def _of_counts(differences: Sequence[Difference], level: float) -> tuple[list[int], Floats]:
    chosen = [(i, d) for i, d in enumerate(differences) if d.smallest is not None and d.reach is None]
    counts = np.array([(d.n, d.only_a, d.only_b) for _, d in chosen], dtype=float).reshape(-1, 3)
    n, only_a, only_b = counts.T
    return [i for i, _ in chosen], binary.smallest_difference(n, only_a, only_b, level)


def _of_reach(differences: Sequence[Difference], level: float) -> tuple[list[int], Floats]:
    chosen = [(i, d.reach) for i, d in enumerate(differences) if d.smallest is not None and d.reach is not None]
    reaches = np.array([(r.width, r.degrees, r.limit) for _, r in chosen], dtype=float).reshape(-1, 3)
    width, degrees, limit = reaches.T
    smallest: Floats = np.minimum(smallest_shown(width, degrees, level), limit)
    return [i for i, _ in chosen], smallest
