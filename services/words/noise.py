"""How much scores change when items are asked again, in sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from touchstone.v1 import noise_pb2

_LARGE = 0.1
"""From this share on, one decimal of a percentage is enough."""


def sentences(figures: noise_pb2.NoiseFigures) -> Iterator[str]:
    """What a reader wants to know of one task, or of all."""
    if figures.HasField("reasking"):
        yield f"Asked again, {flips(figures.reasking)} of the items flip."
    if figures.HasField("servings"):
        yield f"Between servings, {flips(figures.servings)} of the items flip."
    if figures.HasField("floor"):
        yield (
            f"Scores of two runs by one serving differ by up to {100 * figures.floor:.2f} points with a chance of 95 %."
        )


def flips(found: noise_pb2.Flips) -> str:
    """2.1 % (1.4 to 3.1)."""
    digits = 1 if found.high >= _LARGE else 2
    share, low, high = (f"{100 * value:.{digits}f}" for value in (found.share, found.low, found.high))
    return f"{share} % ({low} to {high})"
