"""How much scores change when items are asked again, in sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from services.words.refusals import counted
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


def replay_sentences(found: noise_pb2.Replay) -> Iterator[str]:
    """What a replay found."""
    turned = f"{found.lower:,} of them to a lower score and {found.higher:,} to a higher one"
    yield f"Asked again, {flips(found.flips)} of {counted(found.items, 'item')} flip: {turned}."
    if not found.verdict:
        yield "How many flip by chance was not measured. To measure it: touchstone noise."
        return
    by_chance = f"Between {counted(found.measured_runs, 'run')}, {flips(found.measured)} of these items flip"
    if found.measured_runs == 1:
        by_chance = f"Between the answers to an item before, {flips(found.measured)} flip"
    if found.verdict == noise_pb2.REPLAY_VERDICT_MORE_THAN_NOISE:
        ends = f"{100 * found.beyond_low:.1f} to {100 * found.beyond_high:.1f}"
        yield f"{by_chance}. That is more than noise, by {100 * found.beyond:.1f} points ({ends})."
    else:
        yield f"{by_chance}. More than noise is not shown."


def flips(found: noise_pb2.Flips) -> str:
    """2.1 % (1.4 to 3.1)."""
    digits = 1 if found.high >= _LARGE else 2
    share, low, high = (f"{100 * value:.{digits}f}" for value in (found.share, found.low, found.high))
    return f"{share} % ({low} to {high})"
