"""Compared runs, and a difference as that of the run in focus against the baseline. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from services.gateway.pages.compare import drawing
from services.gateway.pages.compare.drawing import Drawn
from services.gateway.pages.display import formatting
from services.gateway.pages.display.charts import Axis
from services.words.enums import COMPARISON_VERDICTS
from touchstone.v1 import comparison_pb2
from touchstone.v1.comparison_pb2 import ComparedRun

_TURNED = {"better": "worse", "worse": "better"}
_SHOWN = ("better", "worse")


@dataclass(frozen=True, slots=True)
class Side:
    """A compared run: its shortest unique name, its colour (None for bundled baselines) and its place on the page."""

    run: ComparedRun
    name: str
    slot: int | None
    tone: str

    @property
    def job_id(self) -> str:
        return self.run.job_id

    @property
    def model(self) -> str:
        """The model, where `name` is the one that a user gave; empty where `name` says it."""
        return formatting.shown(self.run.model) if self.run.name and self.name == self.run.name else ""


@dataclass(frozen=True, slots=True)
class Line:
    """One metric of a task, or of the suite without `task`: the run in focus against the baseline, × 100."""

    task: str
    title: str
    metric: str
    n: int
    mine: str
    theirs: str
    change: str
    interval: str
    p: str
    adjusted: str
    reach: str
    verdict: str
    reason: str
    shown: bool
    cell: Markup
    test: str


class Turned:
    """A difference as that of the run in focus against the baseline."""

    def __init__(self, one: comparison_pb2.Difference, focus: Side, reference: Side) -> None:
        self._one = one
        self._focus, self._reference = focus, reference
        self._sign = 1 if one.a == focus.job_id else -1
        verdict = COMPARISON_VERDICTS.of(one.verdict)
        self.verdict = verdict if self._sign > 0 else _TURNED.get(verdict, verdict)
        self.task, self.metric, self.test, self.correction = one.task, one.metric, one.test, one.correction
        self.shown = self.verdict in _SHOWN

    @property
    def p(self) -> float | None:
        """The one that decides."""
        for name in ("p_adjusted", "p_value"):
            if self._one.HasField(name):
                return float(getattr(self._one, name))
        return None

    @property
    def adjusted(self) -> float | None:
        return self._one.p_adjusted if self._one.HasField("p_adjusted") else None

    @property
    def value(self) -> float | None:
        return self._sign * self._one.difference if self._one.HasField("difference") else None

    @property
    def interval(self) -> tuple[float, float] | None:
        if not (self._one.HasField("low") and self._one.HasField("high")):
            return None
        low, high = self._one.low, self._one.high
        return (low, high) if self._sign > 0 else (-high, -low)

    @property
    def total(self) -> tuple[float, float] | None:
        """The interval with the noise of whole runs."""
        if not (self._one.HasField("total_low") and self._one.HasField("total_high")):
            return None
        low, high = self._one.total_low, self._one.total_high
        return (low, high) if self._sign > 0 else (-high, -low)

    @property
    def reach(self) -> float | None:
        return self._one.smallest_difference if self._one.HasField("smallest_difference") else None

    @property
    def needed(self) -> int:
        return self._one.items_needed

    @property
    def reason(self) -> str:
        return self._one.reason

    def within(self, alpha: float) -> bool:
        """Whether it is shown to be within the margin."""
        return self._one.HasField("equivalence_p") and self._one.equivalence_p <= alpha

    @property
    def ends(self) -> list[float]:
        """What the axis must hold."""
        known = [self.value, *(self.interval or ())]
        return [100 * end for end in known if end is not None]

    def evidence(self) -> tuple[bool, float, float, float]:
        """Shown differences first, then by p; the larger difference goes first where p is the same."""
        p, raw = self.p, self._one.p_value
        return not self.shown, 2.0 if p is None else p, raw, -abs(self.value or 0.0)

    def line(self, axis: Axis) -> Line:
        value, interval, reach = self.value, self.interval, self.reach
        better = self._focus if (value or 0) > 0 else self._reference
        drawn = value is not None and Drawn(
            value=100 * value,
            low=None if interval is None else 100 * interval[0],
            high=None if interval is None else 100 * interval[1],
            reach=None if reach is None else 100 * reach,
            slot=better.slot if self.shown else None,
        )
        return Line(
            task=self.task,
            title=self._one.title or self.task,
            metric=self.metric,
            n=self._one.n,
            mine=_score(self._focus.run, self.task, self.metric),
            theirs=_score(self._reference.run, self.task, self.metric),
            change=formatting.MISSING if value is None else formatting.change(value),
            interval=to(interval),
            p=formatting.p_value(self._one.p_value) if self._one.HasField("p_value") else formatting.MISSING,
            adjusted=formatting.MISSING if self.adjusted is None else formatting.p_value(self.adjusted),
            reach=formatting.MISSING if reach is None else formatting.hundredths(reach),
            verdict=self.verdict,
            reason=self.reason,
            shown=self.shown,
            cell=drawing.difference_cell(axis, drawn or None, whole=not self.task),
            test=self.test,
        )


def to(interval: tuple[float, float] | None) -> str:
    """An interval × 100 in a column of intervals: 1.5 to 4.8."""
    if interval is None:
        return formatting.MISSING
    return " to ".join(map(formatting.hundredths, interval))


def _score(run: ComparedRun, task: str, metric: str) -> str:
    """On the items in common."""
    metrics = run.scores if not task else next((one.metrics for one in run.tasks if one.task == task), ())
    return next((formatting.mean(one) for one in metrics if one.metric == metric), formatting.MISSING)
