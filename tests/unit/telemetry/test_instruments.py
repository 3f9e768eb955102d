"""Labels are bounded, whatever is told, and nothing is recorded where nobody looks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry

from services.telemetry.instruments import MOST_CHILDREN, OTHER, Counter, Gauge, Histogram, Instrument, Label

OPEN, LISTED = Label("endpoint", "any name"), Label("kind", "what", ("a", "b"))
HOSTILE = ('x"} 1\nfake_metric 2', "\\", "é" * 5000, "", "{endpoint}", "\x00", "a\udcff")


@pytest.fixture
def calls() -> Iterator[Counter]:
    counter = Counter("calls", "Calls", ("s",), [OPEN, LISTED])
    counter.switch(True)
    yield counter
    counter.switch(False)


def samples(instrument: Instrument) -> dict[tuple[str, ...], float]:  # type: ignore[type-arg]
    """Values by those of the labels, without the buckets of histograms."""
    registry = CollectorRegistry()
    registry.register(instrument.metric)
    return {
        tuple(sample.labels.get(label.name, "") for label in instrument.labels): sample.value
        for family in registry.collect()
        for sample in family.samples
        if not sample.name.endswith(("_bucket", "_sum"))
    }


def test_what_is_not_listed_is_other(calls: Counter) -> None:
    calls.add("e", "a")
    calls.add("e", "a", by=2)
    for value in HOSTILE:
        calls.add("e", value)
    assert samples(calls) == {("e", "a"): 3, ("e", OTHER): len(HOSTILE)}


def test_above_the_limit_everything_is_counted_together(calls: Counter) -> None:
    for number in range(MOST_CHILDREN + 50):
        calls.add(f"e{number}", "a")
    found = samples(calls)
    assert len(found) == MOST_CHILDREN + 1
    assert found[OTHER, OTHER] == 50
    calls.add("e1", "a")
    assert samples(calls)["e1", "a"] == 2


def test_zeros_are_shown_of_what_is_listed(calls: Counter) -> None:
    assert samples(calls) == {}
    calls.begin("e")
    assert samples(calls) == {("e", "a"): 0, ("e", "b"): 0}
    listed = Counter("listed", "Listed", ("s",), [LISTED])
    listed.switch(True)
    assert samples(listed) == {("a",): 0, ("b",): 0}


def test_nothing_is_recorded_while_it_is_off(calls: Counter) -> None:
    calls.add("e", "a")
    calls.switch(False)
    calls.add("e", "a")
    calls.begin("f")
    gauge, histogram = Gauge("g", "G", ("s",)), Histogram("h", "H", ("s",), [OPEN], buckets=(1,))
    gauge.set(3)
    gauge.replace({(): 3})
    histogram.observe(1.0, "e")
    assert samples(calls) == samples(histogram) == {}
    assert samples(gauge) == {(): 0}


def test_a_gauge_shows_only_what_is_there_now() -> None:
    units, queue = Gauge("units", "Units", ("s",), [OPEN]), Gauge("queue", "Queue", ("s",), [LISTED])
    for gauge in (units, queue):
        gauge.switch(True)
    units.replace({("e",): 2, ("f",): 1})
    queue.replace({("a",): 4})
    assert samples(units) == {("e",): 2, ("f",): 1}
    assert samples(queue) == {("a",): 4, ("b",): 0}
    units.replace({("f",): 3})
    queue.replace({})
    assert samples(units) == {("f",): 3}
    assert samples(queue) == {("a",): 0, ("b",): 0}
    units.replace({(f"e{number}",): 1 for number in range(2 * MOST_CHILDREN)})
    assert len(samples(units)) == MOST_CHILDREN


def test_a_histogram_counts_by_its_buckets() -> None:
    took = Histogram("took_seconds", "Took", ("s",), [OPEN], buckets=(0.1, 1))
    took.switch(True)
    for seconds in (0.05, 0.5, 5):
        took.observe(seconds, "e")
    assert samples(took) == {("e",): 3}
