"""Samples whose mean stands for an item of the whole run. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from services.results.statistics import Floats

Tasks = npt.NDArray[np.object_]


def weighted(values: Floats, tasks: Tasks, sizes: Mapping[str, int]) -> Floats:
    """Of a run with `sizes` items of each task, which the pilot may have asked in other shares. Tasks without a value
    are taken to be like the others.

    Where every task has two values or more, the differences between tasks are known and no chance: values then stand
    apart from their task's mean alone.
    """
    names, place, counts = np.unique(tasks, return_inverse=True, return_counts=True)
    if len(names) == 1:
        return values
    size = np.array([sizes.get(name, 0) for name in names], dtype=float)
    if not size.sum():
        return values
    weight: Floats = (size / size.sum() / counts * len(values))[place]
    if counts.min() < 2:
        scaled: Floats = weight * values
        return scaled
    means = np.bincount(place, values) / counts
    apart: Floats = (values - means[place]) * weight * np.sqrt(counts / (counts - 1))[place]
    return apart + float(means @ size / size.sum())


def by_ratio(values: Floats, sizes: Floats, mean_size: float) -> Floats:
    """Of values that grow with a size whose mean over all items is known, such as tokens with characters.

    Where the ratio explains nothing, the values as they are.
    """
    if sizes.min() <= 0 or mean_size <= 0:
        return values
    ratio = values.mean() / sizes.mean()
    apart = (values - ratio * sizes) * mean_size / sizes.mean()
    return apart + ratio * mean_size if apart.var() < values.var() else values
