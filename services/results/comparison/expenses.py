"""Which of two runs costs less on their common items, if the difference is more than chance."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from services.results.comparison.selection.comparability import Comparability
from services.results.paired.differences import cost_differences, log_statistics
from services.results.paired.pairs.difference import Terms
from services.results.paired.pairs.rows import Cost
from services.results.storage.database import Connection, query

_SMALLEST_SAVING = 0.1
"""A share below which runs count as equally expensive."""
_FEWEST_ITEMS = 20
"""Fewer are not enough for an interval by resampling."""
_RESAMPLES = 1_000
_SEED = 1


@dataclass(frozen=True, slots=True)
class Costs:
    """The cost of items for runs that are comparable on every task; the columns of `cost` are those runs, by index."""

    places: Sequence[int]
    cost: Cost


@dataclass(frozen=True, slots=True)
class Saving:
    """One of two runs costs less by a `share`, with the interval from `low` to `high`, on `n` items."""

    cheap: int
    dear: int
    share: float
    low: float
    high: float
    n: int


def read(connection: Connection, compared: Comparability) -> list[Costs]:
    """The costs on the connection's common items, of runs with known prices that made a call for every answer."""
    together: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for place, run in enumerate(compared.runs):
        if run.result.HasField("cost_usd") and not run.job.baseline and compared.tasks:
            together[tuple(compared.cohorts[task][place] for task in compared.tasks)].append(place)
    found = (_read(connection, compared, places) for places in together.values() if len(places) > 1)
    return [costs for costs in found if costs is not None]


def savings(costs: Sequence[Costs], focus: int, others: Sequence[int], terms: Terms) -> Iterator[Saving]:
    """Savings of the run in focus against each other one, if the interval of the ratio of costs excludes 1."""
    for one in costs:
        if focus not in one.places:
            continue
        column = {place: number for number, place in enumerate(one.places)}
        logs = log_statistics(one.cost)
        apart = {other: abs(logs[column[focus]] - logs[column[other]]) for other in others if other in column}
        asked = [other for other in apart if 1 - math.exp(-apart[other]) >= _SMALLEST_SAVING]
        if not asked:
            continue
        pairs = [(column[focus], column[other]) for other in asked]
        drawn = cost_differences(one.cost, pairs, replace(terms, resamples=_RESAMPLES), seed=(terms.seed, _SEED))
        for other, found in zip(asked, drawn, strict=True):
            if found.value is None or found.low is None or found.high is None:
                continue
            if found.high < 0:
                yield _saving(focus, other, -found.value, -found.high, -found.low, found.n)
            elif found.low > 0:
                yield _saving(other, focus, found.value, found.low, found.high, found.n)


def _saving(cheap: int, dear: int, log: float, low: float, high: float, n: int) -> Saving:
    """From the log of the ratio dear / cheap."""
    return Saving(cheap, dear, 1 - math.exp(-log), 1 - math.exp(-low), 1 - math.exp(-high), n)


def _read(connection: Connection, compared: Comparability, places: Sequence[int]) -> Costs | None:
    where = {"jobs": [compared.runs[place].job_id for place in places], "tasks": list(compared.tasks)}
    columns = connection.execute(query("comparison/item_costs"), where).fetchnumpy()
    jobs = np.asarray(columns["job_id"])
    known = [place for place in places if (jobs == compared.runs[place].job_id).any()]
    values = [np.asarray(columns["cost_usd"], dtype=float)[jobs == compared.runs[place].job_id] for place in known]
    # All runs of one cohort have the same items, in the same order.
    if len(known) < 2 or len(values[0]) < _FEWEST_ITEMS or len({len(column) for column in values}) > 1:
        return None
    return Costs(known, Cost(np.column_stack(values), "mean"))
