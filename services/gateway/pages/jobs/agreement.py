"""How people agree with each other and judges with them, in words and figures. The figures are those of REST."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from services.gateway.pages.display import formatting, scales
from services.words import rubrics
from touchstone.v1.results_service_pb2 import (
    Interval,
    JudgeAgreement,
    JudgeRun,
    OutsideJudge,
    PeopleAgreement,
    VerdictAgreement,
)
from touchstone.v1.rubric_pb2 import Rubric, RubricCriterion


@dataclass(frozen=True, slots=True)
class Shown:
    """A figure with its 95 % interval; "–" where there is none."""

    value: str = formatting.MISSING
    interval: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One metric's agreement. `answers` have scores of people and judge; `rated` are behind people's mean; `more` are
    the ratings that would halve the interval of `combined`, 0 where that cannot be said."""

    name: str
    unit: str
    answers: int
    equal: Shown
    kappa: Shown
    bias: Shown
    alpha: Shown
    people: Shown
    combined: Shown
    rated: int
    more: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of one judge: what it says of the score in sentences, and all metrics."""

    sentences: list[str]
    lines: list[Line]


@dataclass(frozen=True, slots=True)
class People:
    """People among themselves by one rubric. `answers` are rated, `shared` by two or more; `alphas` are each
    criterion, its Krippendorff's alpha, and the answers behind it."""

    rubric: Rubric
    digest: str
    raters: int
    answers: int
    shared: int
    alphas: list[tuple[str, Shown, int]]


def of_run(run: JudgeRun | OutsideJudge) -> Agreement | None:
    """None where nobody rated under the judge's rubric, and no answer has a verdict."""
    lines = [_line(run.rubric, one) for one in run.agreement]
    sentences = [_differs(run.agreement[0], lines[0]), _both(lines[0])] if lines else []
    if run.HasField("verdicts"):
        sentences.append(_verdicts(run.verdicts))
    return Agreement(sentences, lines) if sentences else None


def of_people(found: PeopleAgreement) -> People:
    told = []
    for one in found.criteria:
        alpha = one.alpha if one.HasField("alpha") else None
        shown = Shown(coefficient(alpha.value), _coefficients(alpha.low, alpha.high)) if alpha else Shown()
        told.append((one.criterion, shown, one.alpha.n))
    digest = rubrics.digest(found.rubric)
    return People(found.rubric, digest, found.raters, found.answers, found.shared, told)


def _line(rubric: Rubric, found: JudgeAgreement) -> Line:
    scale = scales.scale_of(rubric, found.metric)
    return Line(
        name=found.metric,
        unit=scales.unit(scale),
        answers=found.answers,
        equal=_shown(found, "accuracy", lambda one: f"{formatting.hundredths(one)} %", formatting.span),
        kappa=_shown(found, "kappa", coefficient, _coefficients),
        bias=_shown(found, "bias", lambda one: scales.change(scale, one), lambda *ends: _changes(scale, *ends)),
        alpha=_shown(found, "alpha", coefficient, _coefficients),
        people=_mean(scale, found, "people"),
        combined=_mean(scale, found, "combined"),
        rated=found.people.n,
        more=found.ratings_to_halve,
    )


def _mean(scale: RubricCriterion | None, found: JudgeAgreement, name: str) -> Shown:
    return _shown(
        found,
        name,
        lambda one: scales.mean(scale, one, fine=True),
        lambda low, high: scales.span(scale, low, high, fine=True),
    )


def _shown(
    found: JudgeAgreement, name: str, value: Callable[[float], str], span: Callable[[float, float], str]
) -> Shown:
    if not found.HasField(name):
        return Shown()
    figure: Interval = getattr(found, name)
    return Shown(value(figure.value), span(figure.low, figure.high))


def coefficient(value: float) -> str:
    """0.71, −0.08."""
    text = f"{value:.2f}"
    return "0.00" if text == "-0.00" else text.replace("-", "−")


def _coefficients(low: float, high: float) -> str:
    return (" to " if low < 0 else "–").join(map(coefficient, (low, high)))


def _changes(scale: RubricCriterion | None, low: float, high: float) -> str:
    return f"{scales.change(scale, low)} to {scales.change(scale, high)}"


def _differs(found: JudgeAgreement, line: Line) -> str:
    """Whether the judge is stricter or milder than people."""
    rated = formatting.plural(found.answers, "answer")
    if not found.HasField("bias"):
        return f"People and this judge both scored {rated}; its bias needs two."
    if found.bias.low <= 0 <= found.bias.high:
        return f"On the {rated} that both scored, no difference from people in {line.name} can be shown."
    word = "above" if found.bias.value > 0 else "below"
    points = f"{line.bias.value.lstrip('+−')} points {word} people's ({line.bias.interval})"
    return f"On the {rated} that both scored, its {line.name} is {points}."


def _verdicts(found: VerdictAgreement) -> str:
    """Golden, fix and wrong."""
    share = found.accuracy
    said = f"On {formatting.hundredths(share.value)} % ({formatting.span(share.low, share.high)}) of "
    said += f"{formatting.plural(found.answers, 'answer')} with a verdict, it agrees with golden, fix or wrong"
    return f"{said}; kappa {coefficient(found.kappa.value)}." if found.HasField("kappa") else f"{said}."


def _both(line: Line) -> str:
    """People's mean over all answers, and what would make it more exact."""
    if not line.combined.interval:
        return "People's mean over all answers needs ten answers rated in the order of the queue."
    said = f"People's mean over all answers is {line.combined.value} {line.unit} ({line.combined.interval})"
    said += f", from {formatting.plural(line.rated, 'rated answer')} and all of the judge's scores."
    if line.more:
        said += f" About {formatting.plural(line.more, 'more rating')} would halve this interval."
    return said
