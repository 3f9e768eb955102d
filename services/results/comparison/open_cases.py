"""Runs, and how they would be if all their unanswered items had been right, or wrong. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from services.results.comparison.selection.comparability import Comparability
from services.results.comparison.selection.runs import Run, Unanswered
from services.results.paired.pairs.difference import Pair
from services.results.statistics import metric_values
from touchstone.v1.suite_pb2 import MetricSpec


@dataclass(frozen=True, slots=True)
class OpenCases:
    """`compared` has the runs, followed by their cases: `best` and `worst` are the indices of the cases by run. A run
    without a separate case is its own case."""

    compared: Comparability
    best: Mapping[int, int]
    worst: Mapping[int, int]

    def pairs(self, pairs: Sequence[Pair]) -> list[Pair]:
        """The first run at its worst, the second at its best."""
        return [(self.worst.get(a, a), self.best.get(b, b)) for a, b in pairs]


def open_cases(compared: Comparability, places: Sequence[int]) -> OpenCases:
    """The cases of the runs in `places`. There is a worst case only if a metric may fall below its scored value."""
    left = [place for place in places if left_unanswered(compared.runs[place], compared.tasks)]
    may_fall = any(map(_may_fall, (spec for task in compared.tasks for spec in compared.plans[task][0].metrics)))
    falling = left if may_fall else []
    first = len(compared.runs)
    runs = [
        *compared.runs,
        *(replace(compared.runs[place], unanswered=Unanswered.RIGHT) for place in left),
        *(replace(compared.runs[place], unanswered=Unanswered.WRONG) for place in falling),
    ]
    more = replace(
        compared,
        runs=runs,
        cohorts={task: [*of, *(of[place] for place in (*left, *falling))] for task, of in compared.cohorts.items()},
        plans={task: [*of, *(of[place] for place in (*left, *falling))] for task, of in compared.plans.items()},
    )
    return OpenCases(
        more,
        best={place: first + number for number, place in enumerate(left)},
        worst={place: first + len(left) + number for number, place in enumerate(falling)},
    )


def left_unanswered(run: Run, tasks: Sequence[str]) -> bool:
    """Whether some item of these tasks has no readable answer."""
    outcomes = [run.measured[task].outcomes for task in tasks]
    return any(o.unparsed or o.output_truncated or o.refused or o.input_truncated for o in outcomes)


def _may_fall(spec: MetricSpec) -> bool:
    """In the Matthews correlation, "no answer" is a separate class, and a vote leaves unread answers out."""
    return spec.rule == MetricSpec.RULE_MAJORITY or (not spec.rule and spec.metric == metric_values.MATTHEWS)
