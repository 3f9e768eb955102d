"""The test that exchanges two models within every row: the sum of differences against the sum with random signs. Pure.

If the models are equal, each row's difference is equally likely to have the other sign, whatever its size: the test is
exact, also for fractional scores and few clusters, and needs no draws. For differences of one size it is McNemar's.
"""

from __future__ import annotations

import math

import numpy as np

from services.results.statistics.distributions import binomial_tail, normal_tail
from services.results.statistics.metric_values import Floats

SAME = 1e-9
"""Sizes that differ by at most this part of the largest count as equal."""
ATOMS = 100_000
"""The most outcomes that are enumerated."""
_LATTICE = 1 << 16
"""The most points of a lattice that is summed."""
_DIVISORS = 12
_FOURIER_FLOOR = 1e-11
"""Below this value a sum by Fourier transform is only rounding."""


def sign_flip_p(differences: Floats, counts: Floats) -> float:
    """Two-sided p of `differences` of rows, each occurring `counts` times (whole numbers)."""
    sizes, times = distinct(np.abs(differences), counts)
    observed = abs(float(differences @ counts))
    if len(sizes) == 0 or observed <= SAME * sizes[-1]:
        return 1.0
    if len(sizes) == 1:
        flips = float(times[0])
        least = math.floor((flips - observed / sizes[0]) / 2 + 0.25)
        return min(1.0, 2 * float(binomial_tail(least, flips)))
    # The observed sum itself counts, whatever its rounding.
    reached = observed - SAME * sizes[-1]
    if np.sum(np.log(times + 1)) <= math.log(ATOMS):
        return _enumerated(sizes, times, reached)
    unit = _unit(sizes, times)
    if unit:
        p = _on_lattice(np.rint(sizes / unit), times, reached / unit)
        if p > _FOURIER_FLOOR:
            return p
    return _saddlepoint(sizes, times, observed)


def distinct(sizes: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """Sizes above 0 in increasing order, and how often each occurs."""
    keep = (counts > 0) & (sizes > SAME * sizes.max(initial=0.0))
    order = np.argsort(sizes[keep], kind="stable")
    sizes, counts = sizes[keep][order], counts[keep][order]
    if len(sizes) == 0:
        return sizes, counts
    starts = np.flatnonzero(np.concatenate([[True], np.diff(sizes) > SAME * sizes[-1]]))
    return sizes[starts], np.add.reduceat(counts, starts)


def outcomes(flips: float) -> tuple[Floats, Floats]:
    """How many more heads than tails this many flips may have, and the chances of that."""
    whole = round(flips)
    # From the tail, where nothing cancels; the other half is the same.
    first = np.diff(binomial_tail(np.arange(-1, whole // 2 + 1), flips))
    return flips - 2 * np.arange(whole + 1, dtype=float), np.concatenate([first, first[: (whole + 1) // 2][::-1]])


def _enumerated(sizes: Floats, times: Floats, reached: float) -> float:
    sums, chances = np.zeros(1), np.ones(1)
    for size, flips in zip(sizes, times, strict=True):
        leads, share = outcomes(flips)
        sums = np.add.outer(sums, size * leads).ravel()
        chances = np.multiply.outer(chances, share).ravel()
    return min(1.0, float(chances[np.abs(sums) >= reached].sum()))


def _unit(sizes: Floats, times: Floats) -> float:
    """The common divisor of all sizes, if the lattice of their sums is small enough; else 0."""
    for divisor in range(1, _DIVISORS + 1):
        unit = float(sizes[0]) / divisor
        parts = sizes / unit
        if 2 * float(parts @ times) + 1 > _LATTICE:
            return 0.0
        if np.all(np.abs(parts - np.rint(parts)) < 1e-6):
            return unit
    return 0.0


def _on_lattice(parts: Floats, times: Floats, reached: float) -> float:
    """By the Fourier transform of the distribution: the product of cos(aθ) over all flips of size a."""
    most = round(float(parts @ times))
    points = 2 * most + 1
    angles = 2 * np.pi * np.arange(most + 1) / points
    transform = np.prod(np.cos(np.outer(parts, angles)) ** times[:, None], axis=0)
    chances = np.fft.irfft(transform, points)
    sums = np.concatenate([np.arange(most + 1), np.arange(-most, 0)])
    return min(1.0, float(chances[np.abs(sums) >= reached].sum()))


def _saddlepoint(sizes: Floats, times: Floats, observed: float) -> float:
    """Many flips of many sizes: the chance of a larger sum, with a relative error of about a hundredth.

    Source: Lugannani and Rice, Advances in Applied Probability 12 (1980) 475, for K(s) = Σ log cosh(a s).
    """
    most = float(sizes @ times)
    if observed >= most * (1 - SAME):
        return float(2 * 0.5 ** times.sum())
    scale = math.sqrt(float(sizes**2 @ times))
    sizes, target = sizes / scale, observed / scale
    s = target
    for _ in range(100):
        slope = np.tanh(sizes * s)
        curvature = float((sizes**2 * times) @ (1 - slope**2))
        # K' is concave: Newton's steps from the left never pass the root, and are long if the sum is far out.
        step = (target - float((sizes * times) @ slope)) / max(curvature, 1e-12)
        s += step
        if abs(step) <= 1e-10 * s:
            break
    slope = np.tanh(sizes * s)
    flat = sizes * s
    cumulant = float(times @ (flat + np.log1p(np.exp(-2 * flat)) - math.log(2)))
    u = s * math.sqrt(float((sizes**2 * times) @ (1 - slope**2)))
    r = math.sqrt(max(2 * (s * target - cumulant), 0.0))
    if min(r, u) < 1e-3:
        return min(1.0, 2 * float(normal_tail(target)))
    density = math.exp(-r * r / 2) / math.sqrt(2 * math.pi)
    return float(min(1.0, max(0.0, 2 * (float(normal_tail(r)) + density * (1 / u - 1 / r)))))
