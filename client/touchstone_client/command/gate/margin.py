"""What a run of a number of items can prove, reported before it is paid for. Pure.

A drop of less than a margin is proved when the lower end of the one-sided interval is above −margin. If both models are
equally good, that happens with 80 % power when margin = (z₀.₉₅ + z₀.₈₀) · s, with s the standard error of the
difference on the same items.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from statistics import NormalDist

from services.words.refusals import counted
from touchstone.v1 import comparison_pb2, metric_pb2, suite_pb2
from touchstone_client.command.gate.verdict import ALPHA

POWER = 0.8
_FACTOR = NormalDist().inv_cdf(1 - ALPHA) + NormalDist().inv_cdf(POWER)


@dataclass(frozen=True, slots=True)
class Margin:
    """`margin` is None where it is unknown, with `reason`. `assumption` completes "assuming that …"."""

    items: int
    margin: float | None
    assumption: str
    reason: str = ""

    def words(self, max_drop: float) -> str:
        if self.margin is None:
            return f"The margin that this run can prove is not known in advance: {self.reason}."
        words = (
            f"On {counted(self.items, 'item')} the gate can prove that a drop is less than about {self.margin:.4f} "
            f"(one-sided {ALPHA:.0%}, {POWER:.0%} power), assuming that both models are equally good "
            f"and that {self.assumption}."
        ).replace("%", " %")
        if self.margin > max_drop:
            words += (
                f" You ask for {max_drop:g}: if both are equally good, exit code 2 (undecided) is likely. Use more "
                "items or a larger --max-drop."
            )
        return words


def independent(
    result: metric_pb2.JobResult,
    metric: str,
    tasks: Collection[str],
    limit: int,
    weighting: suite_pb2.Weighting = suite_pb2.WEIGHTING_TASKS,
) -> Margin:
    """From the baseline's run alone: two runs with independent errors disagree most.

    Each task's standard error is scaled to the items that will run; the difference of two such runs has √2 of it. A
    suite's score is the mean over items or over tasks, as `weighting` says; tasks of a score group count once.
    """
    groups: dict[str, list[float]] = defaultdict(list)
    items, by_items = 0, 0.0
    for task in result.tasks:
        measured = next((m for m in task.metrics if metric in ("score", m.metric)), None)
        if task.beside or measured is None or (tasks and task.task not in tasks):
            continue
        n = min(limit, measured.n) if limit else measured.n
        items += n
        if not n or not measured.HasField("stderr"):
            return Margin(items, None, "", f"the baseline's {measured.metric} of {task.task} has no standard error")
        variance = 2 * _error(measured) ** 2 * measured.n / n
        groups[task.score_group or task.task].append(variance)
        by_items += n**2 * variance
    if not groups:
        return Margin(0, None, "", f"the baseline has no {metric} on these tasks")
    if weighting == suite_pb2.WEIGHTING_ITEMS:
        whole = by_items / items**2
    else:
        whole = sum(sum(parts) / len(parts) ** 2 for parts in groups.values()) / len(groups) ** 2
    words = "their errors are independent, which is the worst case"
    return Margin(items, _FACTOR * math.sqrt(whole), words)


def like_last_time(last: comparison_pb2.Difference, items: int, job_id: str) -> Margin:
    """From an earlier run of the candidate, compared with the baseline on as many items at 2 · ALPHA.

    Runs that hardly disagree have a standard error near 0, but still an interval of some width.
    """
    words = f"the new run disagrees with the baseline as often as the candidate's last run ({job_id}) does"
    reach = max(last.high - last.difference, last.difference - last.low)
    return Margin(items, max(_FACTOR * last.stderr, reach), words)


def _error(measured: metric_pb2.Metric) -> float:
    """The standard error; where all items are right, or all wrong, it is 0 and only the interval reflects chance."""
    return measured.stderr or (measured.ci95_high - measured.ci95_low) / 2 / NormalDist().inv_cdf(0.975)
