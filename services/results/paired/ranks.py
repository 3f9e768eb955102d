"""Places that the data leave open. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from services.results.paired.difference import Difference, Pairs


def rank_ranges(
    models: int, pairs: Pairs, differences: Sequence[Difference], adjusted: Sequence[float | None], alpha: float
) -> list[tuple[int, int]]:
    """The best and the worst place of each model, from simultaneous tests of all pairs.

    A model's best place is behind all that are shown to be better, its worst before all that are shown to be worse.
    With an adjustment that bounds the chance of any false rejection by alpha, all true places lie in their ranges with
    a chance of 1 − alpha or more.
    """
    better, worse = [0] * models, [0] * models
    for (a, b), difference, p in zip(pairs, differences, adjusted, strict=True):
        if p is None or p > alpha or not difference.value:
            continue
        ahead, behind = (a, b) if difference.value > 0 else (b, a)
        better[behind] += 1
        worse[ahead] += 1
    return [(1 + better[model], models - worse[model]) for model in range(models)]
