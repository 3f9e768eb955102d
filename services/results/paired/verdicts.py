"""What a difference says, in one word and in one sentence. Pure."""

from __future__ import annotations

from enum import IntEnum

from services.results.paired.pairs.difference import Difference, Terms


class Verdict(IntEnum):
    """The verdict on A against B, with the numbers of comparison.proto. "No difference shown" does not mean that there
    is none."""

    BETTER = 1
    WORSE = 2
    EQUIVALENT = 3
    NO_DIFFERENCE_SHOWN = 4
    NOT_COMPARABLE = 5


def verdict(difference: Difference, adjusted: float | None, terms: Terms, reason: str = "") -> Verdict:
    """`adjusted` is p after the family's correction, None for a single comparison; `reason` is why runs are not
    comparable.

    A difference that is shown counts as one, even if it is also shown to be within the margin.
    """
    value, p = difference.value, difference.p if adjusted is None else adjusted
    if reason or value is None:
        return Verdict.NOT_COMPARABLE
    if value and p is not None and p <= terms.alpha:
        return Verdict.BETTER if value > 0 else Verdict.WORSE
    if difference.equivalence_p is not None and difference.equivalence_p <= terms.alpha:
        return Verdict.EQUIVALENT
    return Verdict.NO_DIFFERENCE_SHOWN


def sentence(
    verdict: Verdict,
    difference: Difference,
    a: str,
    b: str,
    adjusted: float | None,
    terms: Terms,
    *,
    points: bool = True,
    unit: str = "items",
    reason: str = "",
    comparisons: int = 1,
    corrected_by: str = "",
) -> str:
    """The verdict on A against B with its figures.

    `points`: the metric is a share and given in percentage points, else in its own range. `unit` is what n counts.
    `comparisons` are those that p is corrected for together, and `corrected_by` says how.
    """
    value = difference.value
    if verdict is Verdict.NOT_COMPARABLE or value is None:
        return f"{a} and {b} cannot be compared: {reason or difference.undefined_reason or 'they share no items'}."
    figures = _Figures(difference, points)
    level = f"{100 * (1 - terms.alpha):g} %"
    if verdict in (Verdict.BETTER, Verdict.WORSE):
        behind = verdict is Verdict.WORSE
        known = [f"{level} interval {figures.interval(turned=behind)}"] if difference.low is not None else []
        known.append(_p_words(difference, adjusted))
        word = "worse" if behind else "better"
        shown = f"{a} is {word} than {b} by {figures.amount(abs(value))}"
        within = difference.equivalence_p is not None and difference.equivalence_p <= terms.alpha
        also = f", within the margin of {figures.amount(terms.margin)}" if within else ""
        return f"{shown} ({', '.join(known)}){also}."
    found = figures.amount(value) + (f" ({figures.interval()})" if difference.low is not None else "")
    if verdict is Verdict.EQUIVALENT:
        return (
            f"{a} and {b} are equivalent within {figures.amount(terms.margin)}: the difference is {found}, "
            f"equivalence p {_p(difference.equivalence_p or 0.0)}."
        )
    if why := _why_open(difference, adjusted, terms, corrected_by):
        found += f", {_p_words(difference, adjusted)}: {why}"
    these, units = ("this", unit.removesuffix("s")) if difference.n == 1 else ("these", unit)
    if difference.smallest is None:
        return f"No difference shown: {found}; it is unknown what difference {difference.n:,} {units} would show."
    return (
        f"No difference shown: {found}; {these} {difference.n:,} {units} would show "
        f"{figures.amount(difference.smallest)} or more with 80 % power{one_of(comparisons)}."
    )


def one_of(comparisons: int) -> str:
    """What the power refers to: a difference tested with others must be larger than one tested alone."""
    return f" as one of {comparisons:,} comparisons" if comparisons > 1 else ""


class _Figures:
    """Numbers of one difference, all with as many digits as its interval warrants."""

    def __init__(self, difference: Difference, points: bool) -> None:
        self._difference = difference
        self._scale, self._unit = (100, " points") if points else (1, "")
        self._digits = 1 if points else 3
        if difference.low is not None and difference.high is not None:
            # At least two digits of the interval's width.
            while self._digits < 6 and (difference.high - difference.low) * self._scale < 5 * 10.0**-self._digits:
                self._digits += 1

    def amount(self, value: float) -> str:
        return f"{self._number(value)}{self._unit}"

    def interval(self, *, turned: bool = False) -> str:
        low, high = self._difference.low or 0.0, self._difference.high or 0.0
        ends = (-high, -low) if turned else (low, high)
        return " to ".join(map(self._number, ends))

    def _number(self, value: float) -> str:
        text = f"{abs(value) * self._scale:,.{self._digits}f}"
        return f"−{text}" if value < 0 and float(text.replace(",", "")) else text


def _why_open(difference: Difference, adjusted: float | None, terms: Terms, corrected_by: str) -> str:
    """Why nothing is shown although other figures suggest it; "" if they do not."""
    beside = (difference.low or 0.0) > 0 or (difference.high or 0.0) < 0
    large = difference.smallest is not None and abs(difference.value or 0.0) >= difference.smallest
    if beside and adjusted is not None and difference.p is not None and difference.p <= terms.alpha:
        return f"the interval is for this comparison alone, {corrected_by}"
    if beside:
        return f"the {difference.test} test is stricter than the interval"
    return "80 % power misses one real difference in five" if large else ""


def _p_words(difference: Difference, adjusted: float | None) -> str:
    return f"adjusted p {_p(adjusted)}" if adjusted is not None else f"p {_p(difference.p or 0.0)}"


def _p(p: float) -> str:
    """ "= .004", "< .001"; without a zero before the point, as p cannot pass 1."""
    if p < 0.001:
        return "< .001"
    if p > 0.99:
        return "> .99"
    digits = 2 if p >= 0.095 else 3
    return "= " + f"{p:.{digits}f}".removeprefix("0")
