"""Many hypotheses at once: which belong together, and what becomes of their p. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from services.results.statistics import Floats, Ints

EXPLORATORY_FROM = 21
"""So many tasks are explored, and no longer tested one by one."""


class Family(StrEnum):
    """What hypotheses are corrected together. Baselines are in none."""

    PRIMARY = "primary"
    """Differences of the suite's score, of all pairs of models."""
    TASKS = "tasks"
    """Their tasks."""
    EXPLORATORY = "exploratory"
    """Tasks too many, and metrics beside, for the chance of a single error to be controlled."""


class Correction(StrEnum):
    NONE = ""
    HOLM = "holm"
    BENJAMINI_HOCHBERG = "benjamini-hochberg"


def task_family(tasks: int) -> tuple[Family, Correction]:
    """Of a suite with so many tasks."""
    if tasks < 2:
        return Family.TASKS, Correction.NONE
    if tasks < EXPLORATORY_FROM:
        return Family.TASKS, Correction.HOLM
    return Family.EXPLORATORY, Correction.BENJAMINI_HOCHBERG


def adjust(p: Sequence[float | None], correction: Correction) -> list[float | None]:
    """Adjusted p of one family, in its order. What has no p stays outside."""
    known = [(place, each) for place, each in enumerate(p) if each is not None]
    values = [each for _, each in known]
    if correction is Correction.HOLM:
        values = holm(values)
    elif correction is Correction.BENJAMINI_HOCHBERG:
        values = benjamini_hochberg(values)
    adjusted: list[float | None] = [None] * len(p)
    for (place, _), each in zip(known, values, strict=True):
        adjusted[place] = each
    return adjusted


def adjust_pairs(p: Sequence[float | None], omnibus: float | None) -> list[float | None]:
    """Adjusted p of the suite's differences of several pairs: Holm's, and never below that of all models together.

    Otherwise two models could differ where it is not shown that any do.
    """
    floor = omnibus or 0.0
    return [None if each is None else max(each, floor) for each in adjust(p, Correction.HOLM)]


def holm(p: Sequence[float]) -> list[float]:
    """Bounds the chance of any false rejection. Source: Holm, Scandinavian Journal of Statistics 6 (1979) 65."""
    order = np.argsort(p, kind="stable")
    steps = np.arange(len(order), 0, -1)
    rising = np.minimum(1.0, np.maximum.accumulate(steps * np.asarray(p, dtype=float)[order]))
    return _in_order(rising, order)


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """Bounds the expected share of false rejections.

    Source: Benjamini and Hochberg, Journal of the Royal Statistical Society B 57 (1995) 289.
    """
    order = np.argsort(p, kind="stable")[::-1]
    count = len(order)
    steps = count / np.arange(count, 0, -1)
    falling = np.minimum(1.0, np.minimum.accumulate(steps * np.asarray(p, dtype=float)[order]))
    return _in_order(falling, order)


def _in_order(values: Floats, order: Ints) -> list[float]:
    found = np.empty(len(order))
    found[order] = values
    return [float(each) for each in found]
