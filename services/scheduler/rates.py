"""How fast a job has gone: samples of its counts, dense of late and sparse before. Pure: callers bring the clock."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

WINDOW_S = 30.0
SAMPLE_S = 1.0
_HISTORY = 60
_DENSE_S = _HISTORY * SAMPLE_S * 1.2
_SPARSE = 24
"""A sample older than that stands at least its age divided by this from the next one."""


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
        # Until the first answer, time says how long loading takes, and nothing of the pace.
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
        # The beginning tells how long it has taken in all.
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
