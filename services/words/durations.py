"""Estimates of time, as the pages and the command line write them. Pure."""

from __future__ import annotations


def time_left(seconds: float) -> str:
    """An estimate in one unit: under 0.1 s, 1.2 s, 40 s, 22 min, 1.6 h."""
    if seconds < 0.05:
        return "under 0.1 s"
    scale = _scale(seconds)
    return f"{_in_unit(seconds, scale)} {scale[0]}"


def time_range(seconds: float, low: float, high: float) -> str:
    """The range around an estimate, in the unit of `time_left`; empty when it rounds to the estimate."""
    scale = _scale(seconds)
    middle, first, last = (_in_unit(value, scale) for value in (seconds, min(low, seconds), max(high, seconds)))
    return "" if first == middle == last else f"{first}–{last}"


def _scale(seconds: float) -> tuple[str, int, int]:
    """Unit, its seconds, and suitable decimals for an estimate of this size."""
    if round(seconds) < 60:
        return "s", 1, 1 if seconds < 9.95 else 0
    return ("min", 60, 0) if seconds < 5400 else ("h", 3600, 1)


def _in_unit(seconds: float, scale: tuple[str, int, int]) -> str:
    _, size, decimals = scale
    return f"{max(0.0, seconds) / size:.{decimals}f}"
