"""What a judge prefers that compared two jobs' answers, in words and figures. The figures are those of REST."""

from __future__ import annotations

from dataclasses import dataclass

from services.gateway.pages.display import formatting
from services.gateway.pages.jobs.agreement import Shown, coefficient
from services.gateway.reads.jobs import short_id
from touchstone.v1.results_service_pb2 import JudgedPreference, JudgeRun, PreferenceAgreement

_HALF = 0.5


@dataclass(frozen=True, slots=True)
class Line:
    """By one metric; shares in per cent."""

    name: str
    preferred: Shown
    better: int
    equal: int
    worse: int
    same: Shown
    first: Shown


@dataclass(frozen=True, slots=True)
class Preferences:
    """Of one judge: the other job, what it says of the answers in sentences, and all metrics."""

    against: str
    sentences: list[str]
    lines: list[Line]


def of_run(run: JudgeRun) -> Preferences | None:
    """None for a judge of single answers."""
    judging = run.job.spec.judging
    if not judging.against_job_id:
        return None
    found, lines = run.pairs, [_line(one) for one in run.pairs.preferences]
    sentences = []
    if found.preferences:
        one = found.preferences[0]
        sentences.append(_verdict(one, found.pairs, short_id(judging.against_job_id)))
        positions = next(each for each in found.preferences if each.HasField("same_in_both_orders"))
        sentences.append(_positions(positions, f"by {positions.metric} " if len(lines) > 1 else ""))
    else:
        sentences.append("No pair has been judged in both orders.")
    if judging.equal_pairs:
        were = "was" if judging.equal_pairs == 1 else "were"
        sentences.append(f"{formatting.plural(judging.equal_pairs, 'pair')} of equal answers {were} left out.")
    if found.HasField("people"):
        sentences.append(_people(found.people))
    return Preferences(judging.against_job_id, sentences, lines)


def _verdict(found: JudgedPreference, pairs: int, other: str) -> str:
    share = found.preferred
    interval = formatting.span(share.low, share.high)
    if share.low <= _HALF <= share.high:
        said = f"It shows no preference between these answers and those of job {other}: it prefers these"
    elif share.value > _HALF:
        said = "It prefers these answers:"
    else:
        said = f"It prefers the answers of job {other}: it prefers these only"
    return f"{said} in {formatting.hundredths(share.value)} % ({interval}) of {formatting.plural(pairs, 'pair')}."


def _positions(found: JudgedPreference, by: str) -> str:
    same = found.same_in_both_orders
    said = (
        f"It was asked about each pair in both orders, and {by}said the same in {formatting.hundredths(same.value)} % "
    )
    said += f"({formatting.span(same.low, same.high)}) of them."
    if found.HasField("first_preferred"):
        first = found.first_preferred
        said += f" Of its preferences, {formatting.hundredths(first.value)} % "
        said += f"({formatting.span(first.low, first.high)}) are for the answer that stands first."
    return said


def _people(found: PreferenceAgreement) -> str:
    share = found.accuracy
    said = f"On {formatting.hundredths(share.value)} % ({formatting.span(share.low, share.high)}) of "
    said += f"{formatting.plural(found.pairs, 'pair')} that people compared side by side, it prefers what they prefer"
    return f"{said}; kappa {coefficient(found.kappa.value)}." if found.HasField("kappa") else f"{said}."


def _line(found: JudgedPreference) -> Line:
    preferred, same, first = (_percent(found, name) for name in ("preferred", "same_in_both_orders", "first_preferred"))
    return Line(found.metric, preferred, found.better, found.equal, found.worse, same, first)


def _percent(found: JudgedPreference, name: str) -> Shown:
    if not found.HasField(name):
        return Shown()
    share = getattr(found, name)
    return Shown(f"{formatting.hundredths(share.value)} %", formatting.span(share.low, share.high))
