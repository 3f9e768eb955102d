"""What a benchmark found, beside what it should: lines for the terminal, and whether a target was missed."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One figure. `target` says in words what it should be; empty where it is shown for information."""

    what: str
    value: str
    target: str = ""
    met: bool = True

    @property
    def line(self) -> str:
        mark = "" if not self.target else "  ok" if self.met else "  MISSED"
        return f"  {self.what:<58} {self.value:>18}  {self.target}{mark}".rstrip()


def at_most(what: str, value: float, unit: str, most: float) -> Finding:
    return Finding(what, _shown(value, unit), f"at most {_shown(most, unit)}", value <= most)


def at_least(what: str, value: float, unit: str, least: float) -> Finding:
    return Finding(what, _shown(value, unit), f"at least {_shown(least, unit)}", value >= least)


def shown(what: str, value: float, unit: str) -> Finding:
    return Finding(what, _shown(value, unit))


def spread(values: Sequence[float], unit: str) -> str:
    """Every measurement and their median."""
    each = ", ".join(f"{value:.2f}" for value in values)
    return f"median {statistics.median(values):.2f} {unit} of {each}"


def cpu(per_item: Sequence[Mapping[str, float]]) -> str:
    """Median microseconds of CPU an item, by process."""
    names = per_item[0].keys()
    medians = {name: statistics.median(each[name] for each in per_item) for name in names}
    parts = ", ".join(f"{name} {value:.0f}" for name, value in medians.items())
    return f"CPU an item, µs: {parts}; together {sum(medians.values()):.0f}"


def _shown(value: float, unit: str) -> str:
    digits = 0 if abs(value) >= 100 else 2
    return f"{value:,.{digits}f}{unit if unit == '%' or not unit else ' ' + unit}"
