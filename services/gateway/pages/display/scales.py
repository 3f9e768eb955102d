"""Scores under a rubric as pages write them: on the criterion's own scale, or × 100 where it has none."""

from __future__ import annotations

from services.gateway.pages.display import formatting
from services.words import rubrics
from touchstone.v1.rubric_pb2 import Rubric, RubricCriterion

_FINE = 4
"""A scale with fewer steps has means with two decimals."""


def scale_of(rubric: Rubric, metric: str) -> RubricCriterion | None:
    """The criterion behind a metric, if it has a scale: neither choices nor the composite have one."""
    return next((one for one in rubric.criteria if one.name == metric and not one.choices), None)


def unit(criterion: RubricCriterion | None) -> str:
    """of 1–5, of 100."""
    return f"of {criterion.lowest}–{criterion.highest}" if criterion else "of 100"


def weights(rubric: Rubric) -> list[str]:
    """Those of its criteria as shares: 40 %."""
    given = [criterion.weight for criterion in rubric.criteria]
    if not any(given):
        given = [1.0] * len(given)
    return [f"{100 * weight / sum(given):.0f} %" for weight in given]


def mean(criterion: RubricCriterion | None, share: float, *, fine: bool = False) -> str:
    """A mean of shares: 3.9, with `fine` 3.92; × 100 without a scale."""
    if criterion is None:
        return formatting.hundredths(share)
    return _decimals(criterion, rubrics.on_scale(criterion, share), fine)


def span(criterion: RubricCriterion | None, low: float, high: float, *, fine: bool = False) -> str:
    """An interval of such means: 3.5–4.3; "to" where a bound can be negative."""
    if criterion is None:
        return formatting.span(low, high)
    joint = " to " if criterion.lowest < 0 else "–"
    return joint.join(mean(criterion, one, fine=fine) for one in (low, high))


def change(criterion: RubricCriterion | None, difference: float) -> str:
    """A difference of two means: +0.42, −4.2, 0.0."""
    if criterion is None:
        return formatting.change(difference)
    text = _decimals(criterion, difference * (criterion.highest - criterion.lowest), fine=True)
    return f"+{text}" if difference > 0 and text.strip("0.") else text


def _decimals(criterion: RubricCriterion, value: float, fine: bool) -> str:
    decimals = 2 if fine or criterion.highest - criterion.lowest < _FINE else 1
    text = f"{value:.{decimals}f}"
    return text.removeprefix("-") if not float(text) else text.replace("-", "−")
