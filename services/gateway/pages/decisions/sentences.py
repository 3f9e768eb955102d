"""What a decision found, in words that need no statistics."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from services.gateway.pages.display import formatting
from services.gateway.reads import decisions
from services.words.enums import DECISION_VERDICTS, RACER_STATES
from services.words.jobs import status_of
from services.words.refusals import counted
from touchstone.v1 import decision_pb2, job_pb2

_Racer = decision_pb2.Racer
_FATES = {"best": "the best", "left": "left at the end", "withdrawn": "left the race"}
"""By the word of a racer's state."""


def headline(found: decision_pb2.Decision) -> str:
    """qwen2.5:7b is better than llama3.2:3b. qwen2.5:7b is the best of 4 models."""
    if found.verdict == job_pb2.DECISION_VERDICT_EQUIVALENT and not found.racers:
        baseline, candidate = decisions.names(found)
        return f"{candidate} and {baseline} differ by less than {points(found.baseline.spec.deciding.margin)}."
    return decisions.words(found)


def question(specs: Sequence[job_pb2.JobSpec]) -> str:
    """Is qwen2.5:7b better than llama3.2:3b? Which of 4 models is the best? The baseline comes first."""
    if len(specs) > 2:
        return f"Which of {len(specs)} models is the best?"
    baseline, candidate = decisions.short_names(specs)
    return f"Is {candidate} better than {baseline}?"


def explained(found: decision_pb2.Decision) -> str:
    """How that was found, and how sure it is."""
    return " ".join(_explained(found))


def _explained(found: decision_pb2.Decision) -> Iterator[str]:
    stopped = decisions.ended(found)
    if found.note:
        yield found.note
    elif not decisions.asked_pairs(found):
        who = "All" if found.racers else "Both"
        yield (
            f"{who} models have yet to answer the same items." if decisions.is_live(found) else "No item was answered."
        )
    elif found.racers:
        yield from _raced(found)
    else:
        yield f"{_on(found)} {_scored(found)}{_by_chance(found)}."
        yield from _follows(found)
    if stopped is not None:
        kind = "baseline" if stopped.job_id == found.baseline.job_id else "candidate"
        yield f"It ended without a verdict, as the {kind}'s job {_state(stopped)}."
    if found.failed:
        left_out = "is" if found.failed == 1 else "are"
        yield f"{counted(found.failed, 'item')} without an answer of both {left_out} left out."


def _raced(found: decision_pb2.Decision) -> Iterator[str]:
    beaten = sum(racer.state == _Racer.STATE_BEATEN for racer in found.racers)
    withdrawn = sum(racer.state == _Racer.STATE_WITHDRAWN for racer in found.racers)
    on = _on(found).removesuffix(",")
    yield f"{on}, {beaten} of {counted(len(found.racers), 'model')} {'was' if beaten == 1 else 'were'} beaten."
    if withdrawn:
        yield f"{counted(withdrawn, 'model')} left the race, as {'its job' if withdrawn == 1 else 'their jobs'} ended."


def fate(racer: decision_pb2.Racer, against: str) -> str:
    """What became of a model of a race; `against` is the one that it is compared with."""
    if racer.state == _Racer.STATE_BEATEN:
        return f"beaten by {against or 'a deleted one'} after {counted(racer.beaten_at, 'item')}"
    return _FATES.get(RACER_STATES.of(racer.state), "in the race")


def _on(found: decision_pb2.Decision) -> str:
    count, total = decisions.asked_pairs(found), found.items_total
    if count + found.failed >= total:
        return f"On all {counted(total, 'item')},"
    so_far = "So far, on" if not found.verdict and decisions.is_live(found) else "On"
    return f"{so_far} {count:,} of {counted(total, 'item')},"


def _scored(found: decision_pb2.Decision) -> str:
    _, candidate = decisions.names(found)
    size = formatting.hundredths(abs(found.difference))
    if size == "0.0":
        return "both scored the same"
    unit = "point" if size == "1.0" else "points"
    return f"{candidate} scored {size} {unit} {'higher' if found.difference > 0 else 'lower'}"


def _by_chance(found: decision_pb2.Decision) -> str:
    equal = formatting.hundredths(abs(found.difference)) == "0.0"
    if found.verdict == job_pb2.DECISION_VERDICT_NO_DIFFERENCE and not equal:
        return ", which may be chance"
    return ", which may still be chance" if not found.verdict and not equal else ""


def _follows(found: decision_pb2.Decision) -> Iterator[str]:
    margin = found.baseline.spec.deciding.margin
    if found.verdict == job_pb2.DECISION_VERDICT_NO_DIFFERENCE:
        if decisions.asked_pairs(found) + found.failed < found.items_total:
            chance = f"{100 * found.unlikely:g} %"
            asked = found.HasField("saved") and not found.saved.items
            then = "" if asked else ", so it was not asked"
            yield f"The chance that the rest would show a difference was below {chance}{then}."
        yield (
            "This is no proof that they are equally good."
            if margin
            else ("This is no proof that they are equally good: that needs a margin.")
        )
    elif _by_all(found):
        yield "No line reached its limit on the way, so the test of all items decided."
    if found.verdict and found.HasField("low"):
        yield f"The true difference is between {_between(found)} points."


def _by_all(found: decision_pb2.Decision) -> bool:
    """Whether the verdict is that of the test at the end."""
    words = {"better", "worse", "equivalent"} & {DECISION_VERDICTS.of(found.verdict)}
    reached = any(getattr(point, word) >= found.threshold for word in words for point in found.path)
    return bool(words) and bool(found.path) and not reached


def _between(found: decision_pb2.Decision) -> str:
    return f"{formatting.change(found.low)} and {formatting.change(found.high)}"


def worth(found: decision_pb2.Decision) -> str:
    """What the interval says of 100 items: qwen2.5:7b answers 3 to 9 of 100 items better than llama3.2:3b."""
    baseline, candidate = decisions.names(found)
    low, high = found.low, found.high
    if low <= 0 <= high:
        sides = [(candidate, high), (baseline, -low)]
        (most, more), (least, less) = sorted(sides, key=lambda one: -one[1])
        return (
            f"Of 100 items, {most} may answer up to {_hundredths(more)} better, or {least} up to {_hundredths(less)}."
        )
    if high < 0:
        baseline, candidate, low, high = candidate, baseline, -high, -low
    return f"{candidate} answers {_hundredths(low)} to {_hundredths(high)} of 100 items better than {baseline}."


def _hundredths(share: float) -> str:
    return formatting.hundredths(share).removesuffix(".0")


def sureness(found: decision_pb2.Decision) -> str:
    """What the error of the decision means."""
    share = f"{100 * found.baseline.spec.deciding.error:.4g} %"
    return f"At most {share} of such verdicts are wrong, however often one looks while answers come in."


def points(share: float) -> str:
    """A difference of scores in points: 2 points."""
    value = 100 * share
    return f"{value:.4g} {'point' if value == 1 else 'points'}"


def _state(job: job_pb2.Job) -> str:
    reason = job.reason.rstrip(".")
    word = {"failed": "failed", "cancelled": "was cancelled"}.get(status_of(job.state), "ended")
    return f"{word}: {reason}" if reason and word == "failed" else word


def times(logarithm: float) -> str:
    """What the logarithm of evidence says: 96.1 times, less than a hundredth."""
    if logarithm < -4.6:
        return "less than a hundredth"
    if logarithm > 13.8:
        return "more than a million times"
    return f"{formatting.rate(math.exp(logarithm))} times"
