"""Counters, gauges and histograms of prometheus-client with bounded labels.

An instrument records only in a process that shows it: elsewhere, and while metrics are off, a call returns at once.
Everything runs on one event loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

import prometheus_client

# Otherwise each series has a second one with the time of its beginning.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]

MOST_CHILDREN = 500
"""Label values, or combinations of them, of one metric."""
OTHER = "other"
"""The label value of everything that is not known, or above MOST_CHILDREN."""

M = TypeVar("M", prometheus_client.Counter, prometheus_client.Gauge, prometheus_client.Histogram)
K = TypeVar("K", bound=tuple[str, ...])


@dataclass(frozen=True, slots=True)
class Label:
    """A label: its name, what it means, and all of its values if they are few."""

    name: str
    about: str
    values: tuple[str, ...] = ()


class Instrument(Generic[M]):
    """One metric of the services that are named. Labels without a list of values come first."""

    kind = ""

    def __init__(self, metric: M, labels: Sequence[Label], services: Sequence[str]) -> None:
        self.metric: M = metric
        self.labels = tuple(labels)
        self.services = tuple(services)
        self.on = False
        self._children: dict[tuple[str, ...], M] = {}

    @property
    def name(self) -> str:
        """As Prometheus shows it."""
        return str(next(iter(self.metric.describe())).name)

    @property
    def about(self) -> str:
        return str(next(iter(self.metric.describe())).documentation)

    def switch(self, on: bool) -> None:
        """Begins to record, from nothing, or ends it."""
        self.on = on
        self._children.clear()
        if self.labels:
            self.metric.clear()
        else:
            self._children[()] = self.metric
        if all(label.values for label in self.labels):
            self.begin()

    def begin(self, *values: str) -> None:
        """Shows zeros for these values with every one of the listed labels: what has not happened yet is known so."""
        if not self.on:
            return
        if len(values) == len(self.labels):
            self._child(values)
        else:
            for value in self.labels[len(values)].values:
                self.begin(*values, value)

    def _child(self, values: tuple[str, ...]) -> M:
        # Looking it up here takes a third of the time of the library's `labels`.
        child = self._children.get(values)
        return child if child is not None else self._first(values)

    def _first(self, values: tuple[str, ...]) -> M:
        known = tuple(
            value if value in label.values or not label.values else OTHER
            for label, value in zip(self.labels, values, strict=True)
        )
        if known not in self._children and len(self._children) >= MOST_CHILDREN:
            known = (OTHER,) * len(self.labels)
        child = self._children.get(known)
        if child is None:
            child = self._children[known] = self.metric.labels(*known)
        return child


class Counter(Instrument[prometheus_client.Counter]):
    """Counts what happened since the process started."""

    kind = "counter"

    def __init__(self, name: str, about: str, services: Sequence[str], labels: Sequence[Label] = ()) -> None:
        made = prometheus_client.Counter(name, about, [label.name for label in labels], registry=None)
        super().__init__(made, labels, services)

    @property
    def name(self) -> str:
        return f"{super().name}_total"

    def add(self, *values: str, by: float = 1) -> None:
        if self.on:
            self._child(values).inc(by)


class Gauge(Instrument[prometheus_client.Gauge]):
    """Shows how things are now."""

    kind = "gauge"

    def __init__(self, name: str, about: str, services: Sequence[str], labels: Sequence[Label] = ()) -> None:
        made = prometheus_client.Gauge(name, about, [label.name for label in labels], registry=None)
        super().__init__(made, labels, services)

    def set(self, value: float, *values: str) -> None:
        if self.on:
            self._child(values).set(value)

    def replace(self, found: Mapping[K, float]) -> None:
        """Shows these alone, and zeros for listed labels. Those above MOST_CHILDREN are left out."""
        if not self.on:
            return
        self.switch(True)
        for values, value in islice(found.items(), MOST_CHILDREN):
            self._child(values).set(value)


class Histogram(Instrument[prometheus_client.Histogram]):
    """Counts durations, in seconds, by their length."""

    kind = "histogram"

    def __init__(
        self,
        name: str,
        about: str,
        services: Sequence[str],
        labels: Sequence[Label] = (),
        *,
        buckets: Sequence[float],
    ) -> None:
        names = [label.name for label in labels]
        made = prometheus_client.Histogram(name, about, names, registry=None, buckets=buckets)
        super().__init__(made, labels, services)

    def observe(self, seconds: float, *values: str) -> None:
        if self.on:
            self._child(values).observe(seconds)
