"""What an installation without any option takes on one machine: its start, and its rest."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from benchmarks import processes, report
from benchmarks.report import Finding
from tests.stack import Stack

STARTS, START_S = 5, 5.0
REST_MB, REST_PERCENT = 600, 3.0
_SETTLE_S, _SPAN_S, _SPANS = 20.0, 15.0, 6
"""Spans of rest: in some of them, other machines of the same host make everything take up to five times as long."""


def idle(folder: Path) -> list[Finding]:
    """Five starts in folders of their own, and a minute and a half in which nobody asks for anything."""
    took: list[float] = []
    resting: list[tuple[int, float]] = []
    for number in range(STARTS):
        on = Stack(folder / str(number), [])
        began = time.monotonic()
        try:
            on.start()
            took.append(time.monotonic() - began)
            if number == STARTS - 1:
                resting.append(_rest(on))
        finally:
            on.stop()
    ((size, share),) = resting
    print(f"  start: {report.spread(took, 's')}")
    return [
        report.at_most("start until pages answer, median", statistics.median(took), "s", START_S),
        report.at_most("memory of all processes at rest", size / 1e6, "MB", REST_MB),
        report.at_most("processor of all processes at rest, of one core", 100 * share, "%", REST_PERCENT),
    ]


def _rest(on: Stack) -> tuple[int, float]:
    """Bytes that the launcher and what it has started hold in memory, shared pages once, and their share of a core in
    the median span, after they have settled."""
    time.sleep(_SETTLE_S)
    pids = {"launcher": on.pid, **processes.pids(on.state_dir)}
    spans = [_span(pids) for _ in range(_SPANS)]
    held = {name: processes.proportional_bytes(pid) for name, pid in pids.items()}
    shares = [sum(span.values()) for span in spans]
    print("  MB at rest: " + ", ".join(f"{name} {size / 1e6:.0f}" for name, size in held.items()))
    medians = {name: statistics.median(span[name] for span in spans) for name in pids}
    print("  % of a core at rest, medians: " + ", ".join(f"{name} {100 * one:.2f}" for name, one in medians.items()))
    print("  % of a core at rest, by span: " + ", ".join(f"{100 * share:.2f}" for share in shares))
    return sum(held.values()), statistics.median(shares)


def _span(pids: dict[str, int]) -> dict[str, float]:
    before, began = {pid: processes.cpu_s(pid) for pid in pids.values()}, time.monotonic()
    time.sleep(_SPAN_S)
    lasted = time.monotonic() - began
    return {name: (processes.cpu_s(pid) - before[pid]) / lasted for name, pid in pids.items()}
