"""How long a job will still run, with a 95 % interval. Pure.

The middle is the remaining work divided by the rate of the last half minute. The ends combine three uncertainties, each
as the standard deviation of the logarithm of the time left:

- noise: how much the rate has differed between parts of a window as long as what is left, or as long as the run; it
  tells both how well the rate is known and how much luck the rest will have;
- retries: calls that had to be made again, as after a 429, announce that others will;
- drift: that the endpoint will not stay as it is. No measurement can tell, so it is a law: it grows with the logarithm
  of the run's size over what is done, and is wider towards later than towards sooner, as endpoints become three times
  slower more often than faster. Its size is set by simulation: at a quarter of a run that becomes three times slower
  midway, the interval holds the true end (tests/unit/scheduler/jobs/test_eta.py).

If the rate of the last half minute differs from that of the whole window, the interval includes both.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

WINDOW_S = 30.0
SAMPLE_S = 1.0
_HISTORY = 60
_DENSE_S = _HISTORY * SAMPLE_S * 1.2
_SPARSE = 24
"""An older sample is at least its age divided by this before the next one."""

_Z = 1.96
_LATER, _SOONER = 0.44, 0.12
"""Standard deviations of drift for each e-fold of the run's size over what is done."""
_MOST_DRIFT = math.log(16)
"""Above this value drift no longer grows."""
_RETRIED = 1.0
"""Variance towards later when nearly every call is repeated; a quarter of it towards sooner."""
_MOST_NOISE = 1.5
"""If the rest takes much less time than a part lasts, the parts say nothing: then the end is 19 times the middle."""
_BLOCKS = 12
_BLOCK_S = 2.0
_DRAIN = 2.0
"""Mean call times that the last calls may take beyond the pace, for each e-fold of concurrent calls: when no others
fill their slots any more, the job waits for the longest one."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Counts at a moment, in seconds since 1970, all since the attempt began."""

    at: float
    items: int
    tokens: int = 0
    retries: int = 0


class Rates:
    """A job's samples. A thousand seconds take about 130 of them, a day about 250."""

    def __init__(self, samples: Iterable[Sample] = ()) -> None:
        self.samples: list[Sample] = list(samples)

    def add(self, sample: Sample) -> None:
        """Notes the present counts; call it about once a second."""
        if self.samples and sample.at - self.samples[-1].at < SAMPLE_S * 0.9:
            return
        # Until the first answer, time shows how long loading takes, not the pace.
        if len(self.samples) == 1 and sample.items == self.samples[0].items:
            self.samples.clear()
        self.samples.append(sample)
        self._thin(sample.at)

    def _thin(self, now: float) -> None:
        kept: list[Sample] = []
        for sample in reversed(self.samples):
            age = now - sample.at
            if age <= _DENSE_S or not kept or kept[-1].at - sample.at >= age / _SPARSE:
                kept.append(sample)
        # The beginning shows how long it has taken in all.
        if kept[-1] is not self.samples[0]:
            kept.append(self.samples[0])
        self.samples = kept[::-1]

    def at(self, moment: float) -> Sample:
        """Counts at a moment, between two samples in proportion, as whole numbers. Needs a sample."""
        samples = self.samples
        i = bisect.bisect_right(samples, moment, key=lambda sample: sample.at)
        if i == 0 or i == len(samples):
            return samples[0 if i == 0 else -1]
        a, b = samples[i - 1], samples[i]
        share = (moment - a.at) / (b.at - a.at)
        items, tokens, retries = (
            round(low + share * (high - low))
            for low, high in ((a.items, b.items), (a.tokens, b.tokens), (a.retries, b.retries))
        )
        return Sample(moment, items, tokens, retries)

    def recent(self, now: float) -> Sample | None:
        """The first sample of the last half minute; None until there is one from at least a second ago."""
        first = next((sample for sample in self.samples if sample.at >= now - WINDOW_S), None)
        return first if first is not None and now - first.at >= SAMPLE_S else None

    def pace(self, now: float, items: int) -> float:
        """Items per second in the last moment; 0 in the first ones."""
        for sample in reversed(self.samples):
            if now - sample.at >= SAMPLE_S / 2:
                return max(0.0, (items - sample.items) / (now - sample.at))
        return 0.0

    def history(self) -> list[float]:
        """Items per second between the last samples, oldest first, at most 60."""
        last = self.samples[-_HISTORY - 1 :]
        return [max(0.0, (b.items - a.items) / (b.at - a.at)) for a, b in pairwise(last)]


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """Seconds, with the ends of the 95 % interval."""

    value: float
    low: float
    high: float


def time_left(rates: Rates, now: float, items: int, total: int, rate: float, at_once: int = 0) -> TimeLeft | None:
    """`items` of `total` are counted by `now`, recently at `rate` items per second; `at_once` is how many calls may run
    at the same time, 0 if unknown. None while nothing is known.
    """
    left = total - items
    if rate <= 0 or left <= 0 or not rates.samples:
        return None
    value = left / rate
    begun = rates.samples[0]
    span = min(max(value, WINDOW_S), now - begun.at)
    if span <= 0:
        return None
    first = rates.at(now - span)
    counted = items - first.items
    over_span = left * span / counted if counted > 0 else value
    noise = _noise(rates, now, items, span, left, value)
    retried = max(0, rates.samples[-1].retries - first.retries)
    share = retried / (retried + max(1, counted))
    drift = min(math.log(total / max(1, items)), _MOST_DRIFT)
    later = _Z * math.sqrt(noise**2 + _RETRIED * share + (_LATER * drift) ** 2)
    sooner = _Z * math.sqrt(noise**2 + _RETRIED * share / 4 + (_SOONER * drift) ** 2)
    drain = _DRAIN * math.log1p(min(at_once, left)) * min(at_once, left) / rate
    return TimeLeft(value, min(value, over_span) * math.exp(-sooner), max(value, over_span) * math.exp(later) + drain)


@dataclass(frozen=True, slots=True)
class Run:
    """A job for `starts`. `length_s` is the time left of one that holds a slot, and the whole length of one that waits;
    infinite if nothing is known of it. `exclusive` is its endpoint if that takes one job at a time, else empty."""

    length_s: float
    exclusive: str = ""


def starts(holding: Sequence[Run], waiting: Sequence[Run], slots: int) -> list[float]:
    """About how many seconds from now each waiting job starts, if no other job is queued; infinite if unknown.

    `waiting` come in the order in which they start. Each takes the slot that is free first, and waits for its exclusive
    endpoint.
    """
    free = sorted([run.length_s for run in holding] + [0.0] * (slots - len(holding)))
    endpoints: dict[str, float] = {}
    for run in holding:
        if run.exclusive:
            endpoints[run.exclusive] = max(endpoints.get(run.exclusive, 0.0), run.length_s)
    found = []
    # Jobs beyond the slots hold none, as those of a provider's batch API.
    free = free[max(0, len(free) - slots) :]
    for run in waiting:
        start = max(free[0], endpoints.get(run.exclusive, 0.0)) if free else math.inf
        found.append(start)
        if free:
            bisect.insort(free, start + run.length_s)
            del free[0]
        if run.exclusive:
            endpoints[run.exclusive] = start + run.length_s
    return found


def _noise(rates: Rates, now: float, items: int, span: float, left: int, value: float) -> float:
    """Standard deviation of the logarithm of the time left, from the rates of the window's parts."""
    blocks = int(min(_BLOCKS, span / _BLOCK_S))
    counted = max(1, items - rates.at(now - span).items)
    # The variation of independent calls, however even the parts look.
    least = 1 / counted + 1 / left
    if blocks < 2:
        return math.sqrt(2 * least)
    length = span / blocks
    marks = [rates.at(now - span + i * length).items for i in range(blocks)] + [items]
    counts = [b - a for a, b in pairwise(marks)]
    mean = sum(counts) / blocks
    if mean <= 0:
        return 1.0
    spread = sum((count - mean) ** 2 for count in counts) / (blocks - 1) / mean**2
    return min(_MOST_NOISE, math.sqrt(max(least, spread * (1 / blocks + length / value))))
