"""How races end by all answers of their models, whoever answers when. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from services.results.sequential.draws import Pair, Plan, draws_of
from services.results.sequential.evidence import verdict
from services.results.sequential.race import Found, Runner, Standing, pair_error, race
from services.results.sequential.verdicts import WORSE
from services.words.enums import DECISION_VERDICTS
from touchstone.v1 import decision_pb2, job_pb2

_BEATEN = decision_pb2.Racer.STATE_BEATEN
_STOPPED = (job_pb2.Job.STATE_FAILED, job_pb2.Job.STATE_CANCELLED)

Item = tuple[str, Sequence[float | None]]
"""The task, and each model's score, None without an answer."""


def is_beaten(job: job_pb2.Job) -> bool:
    return job.HasField("decided") and job.decided.verdict == job_pb2.DECISION_VERDICT_WORSE


def is_withdrawn(job: job_pb2.Job) -> bool:
    """Whether something else than its answers has ended it."""
    return job.attempt > 1 or (job.state in _STOPPED and not job.HasField("decided"))


@dataclass(frozen=True)
class Expected:
    """Of a race whose jobs all run: how it ends, and what is found of each two of them, by their places."""

    standing: Standing
    found: Mapping[tuple[int, int], Found]

    @classmethod
    def of(cls, side: job_pb2.Deciding, items: Sequence[Item], sizes: Mapping[str, int]) -> Expected:
        """`items` are in the order of the race, and `sizes` are those of its tasks."""
        models = len(side.race_job_ids)
        found = {(a, b): _between(side, items, sizes, a, b) for a, b in combinations(range(models), 2)}
        return cls(race([Runner(len(items), False)] * models, len(items), lambda a, b: found[a, b]), found)

    def wrong(self, job: job_pb2.Job, jobs: Sequence[job_pb2.Job]) -> str:
        """What is wrong with what has stopped a job; empty if nothing is."""
        said = f"job {job.job_id} was stopped as {job.decided.verdict} after {job.decided.pairs} items"
        places = {one.job_id: place for place, one in enumerate(jobs)}
        place = places[job.job_id]
        if is_beaten(job):
            by = places[job.decided.against_job_id]
            pair = self.found[min(by, place), max(by, place)]
            loses = pair.verdict == WORSE if by < place else pair.verdict not in ("", WORSE)
            if not loses or pair.at != job.decided.pairs:
                return f"{said} by {job.decided.against_job_id}; their answers say {pair}"
        if any(map(is_withdrawn, jobs)):
            # The others are compared from the item on that this one did not answer.
            return ""
        expected = self._end(place)
        told = job.decided.verdict, job.decided.pairs
        return "" if told == expected else f"{said}; the order and all answers say {expected}"

    def misread(self, jobs: Sequence[job_pb2.Job], read: decision_pb2.Decision) -> Iterator[str]:
        """What is wrong with a race as it is read in the end, and with what its jobs keep."""
        ends = {(one.decided.verdict, one.decided.pairs) for one in jobs if one.HasField("decided")}
        ends -= {(one.decided.verdict, one.decided.pairs) for one in jobs if is_beaten(one)}
        if len(ends) > 1:
            yield f"race {jobs[0].job_id} has the verdicts {sorted(ends)}"
        if any(map(is_withdrawn, jobs)):
            return
        standing = self.standing
        expected = DECISION_VERDICTS.get(standing.verdict, 0), standing.decided_at or 0
        if (read.verdict, read.decided_at) != expected:
            yield f"race {jobs[0].job_id} reads as {(read.verdict, read.decided_at)} and should be {expected}"
        for place, racer in enumerate(read.racers):
            beaten = standing.beaten.get(place)
            at = racer.beaten_at if racer.state == _BEATEN else None
            if at != (beaten.at if beaten else None):
                yield f"job {jobs[place].job_id} reads as beaten after {at} and should be {beaten}"

    def _end(self, place: int) -> tuple[int, int]:
        beaten = self.standing.beaten.get(place)
        if beaten is not None:
            return DECISION_VERDICTS[WORSE], beaten.at
        return DECISION_VERDICTS.get(self.standing.verdict, 0), self.standing.decided_at or 0


def _between(side: job_pb2.Deciding, items: Sequence[Item], sizes: Mapping[str, int], one: int, other: int) -> Found:
    strata = sizes if len(sizes) > 1 else {}
    there = list[tuple[int, Pair]]()
    for number, (task, scores) in enumerate(items, start=1):
        a, b = scores[one], scores[other]
        if a is not None and b is not None:
            there.append((number, Pair(a, b, task if strata else "")))
    draws = draws_of([pair for _, pair in there], Plan(len(items), strata, {}, {}), ended=True)
    error = pair_error(side.error, len(side.race_job_ids))
    word, at = verdict(draws, len(there), error=error, margin=side.margin, total=len(items), ended=bool(there))
    if not at:
        return Found("")
    return Found(word, len(items) if at == len(there) else there[at - 1][0])
