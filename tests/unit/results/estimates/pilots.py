"""Pilots to learn from."""

from __future__ import annotations

import numpy as np

from services.results.statistics.metric_values import Floats

CHANCE = np.random.default_rng(11)


def lognormal(count: int, sigma: float = 1.0) -> Floats:
    return np.asarray(np.round(np.exp(CHANCE.normal(5, sigma, count))) + 1, dtype=float)
