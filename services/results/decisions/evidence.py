"""What the stored answers to a decision's jobs say: of two jobs, and of the jobs of a race."""

from __future__ import annotations

from collections.abc import Sequence

from services.results.decisions import answers
from services.results.decisions.answers import Answers, Pairs
from services.results.sequential import evidence as sequential
from services.results.sequential.evidence import UNLIKELY, Evidence
from services.results.sequential.race import Found, Runner, Standing, pair_error, race
from services.results.sequential.verdicts import UNDECIDED
from services.results.storage.database import Connection
from services.words.decisions import decision_id, models_of
from services.words.enums import DECISION_VERDICTS
from services.words.jobs import ENDED_EARLY, items_of
from touchstone.v1 import decision_pb2, job_pb2

_NOTHING = -1000.0
"""The logarithm of no evidence at all: infinity has no form in JSON."""
_OTHER_PLAN = (
    "The jobs have other items, so their answers cannot be compared. Give all evaluators the same data, and name "
    "datasets whose rows have the same ids, references, groups and scoring in the same order."
)
_NO_SCORES = "The items of these tasks have no scores of their own, so no verdict is possible."
_ALONE = "The jobs of the other models have ended, so there is nothing to compare with."
_Racer = decision_pb2.Racer


def read_evidence(
    connection: Connection, jobs: Sequence[job_pb2.Job], *, whole: bool = True, deleted: int = 0
) -> decision_pb2.Decision:
    """What the answers say, without the jobs. `jobs` are those of a decision that are there, in its order. Of a race,
    others were beaten, but for a number of `deleted` ones, of which nothing is known. Not `whole`: without what only
    shows how it goes."""
    planned = [job for job in jobs if job.plan]
    decision = decision_pb2.Decision(
        decision_id=decision_id(jobs[0]), items_total=items_of(planned[0]) if planned else 0
    )
    racing = bool(jobs[0].spec.deciding.race_job_ids)
    if planned:
        decision.note = _problem(planned)
    if racing:
        if planned and not decision.note:
            _read_race(connection, decision, jobs, whole, deleted)
        else:
            decision.racers.extend(_Racer(job=_named(job), state=_Racer.STATE_RACING) for job in jobs)
    elif len(planned) == len(jobs) and not decision.note:
        side = jobs[0].spec.deciding
        there = Answers(connection, jobs).pairs(0, 1)
        if not whole and not _verdict(there, side.error, side.margin)[0]:
            decision.pairs = there.seen
            return decision
        found = _weighed(there, side.error, side.margin, whole)
        decision.verdict = DECISION_VERDICTS.get(found.verdict, job_pb2.DECISION_VERDICT_UNSPECIFIED)
        decision.decided_at = found.decided_at or 0
        decision.threshold, decision.unlikely = found.threshold, found.unlikely
        decision.pairs = there.seen
        _fill(decision, there, found)
    return decision


def _problem(planned: Sequence[job_pb2.Job]) -> str:
    """Why there can be no verdict, as a sentence; empty where there can be one."""
    if not all(_same_items(planned[0].plan, job.plan) for job in planned[1:]):
        return _OTHER_PLAN
    if all(answers.statistic_of(task) is None for task in planned[0].plan):
        return _NO_SCORES
    return ""


def _same_items(one: Sequence[job_pb2.TaskPlan], other: Sequence[job_pb2.TaskPlan]) -> bool:
    """Whether two plans ask for the same, perhaps with other prompts."""
    return len(one) == len(other) and all(
        (a.task, a.items, a.clusters) == (b.task, b.items, b.clusters)
        and (a.item_set == b.item_set or (a.question_set and a.question_set == b.question_set))
        for a, b in zip(one, other, strict=True)
    )


def _read_race(
    connection: Connection, decision: decision_pb2.Decision, jobs: Sequence[job_pb2.Job], whole: bool, deleted: int
) -> None:
    side, models = jobs[0].spec.deciding, models_of(jobs[0].spec.deciding)
    there, error = Answers(connection, jobs), pair_error(side.error, models)

    def found(one: int, other: int) -> Found:
        pairs = there.pairs(one, other)
        word, decided = _verdict(pairs, error, side.margin)
        return Found(word, pairs.item(decided)) if decided else Found(UNDECIDED)

    runners = [Runner(there.reach(place), _has_ended(job)) for place, job in enumerate(jobs)]
    standing = race(runners, there.items, found, earlier=models - len(jobs) - deleted)
    decision.verdict = DECISION_VERDICTS.get(standing.verdict, job_pb2.DECISION_VERDICT_UNSPECIFIED)
    decision.decided_at, decision.pairs = standing.decided_at or 0, standing.items
    decision.threshold, decision.unlikely = sequential.threshold(error), UNLIKELY
    if not decision.verdict and len(standing.left) < 2:
        decision.note = _ALONE
    leaders = _leaders(there, standing)
    for place, job in enumerate(jobs):
        racer = decision.racers.add(job=_named(job), state=_state(place, standing))
        if place in standing.beaten:
            against: int | None = standing.beaten[place].by
            racer.beaten_at = standing.beaten[place].at
        else:
            against = next((leader for leader in leaders if leader != place), None)
        if against is None:
            continue
        racer.against_job_id = jobs[against].job_id
        if whole or racer.state != _Racer.STATE_RACING:
            pairs = there.pairs(against, place)
            weighed = _weighed(pairs, error, side.margin, whole)
            racer.pairs = weighed.decided_at or pairs.seen
            _fill(racer, pairs, weighed)


def _has_ended(job: job_pb2.Job) -> bool:
    """Whether its first attempt has ended before it had asked everything."""
    return job.state in ENDED_EARLY or job.attempt > 1


def _named(job: job_pb2.Job) -> job_pb2.Job:
    return job_pb2.Job(job_id=job.job_id)


def _leaders(there: Answers, standing: Standing) -> list[int]:
    """The two in the race that have the highest mean scores."""
    means = {place: there.mean(place, standing.items) for place in standing.left}
    known = [(-mean, place) for place, mean in means.items() if mean is not None]
    return [place for _, place in sorted(known)[:2]]


def _state(place: int, standing: Standing) -> decision_pb2.Racer.State:
    if place in standing.beaten:
        return _Racer.STATE_BEATEN
    if place in standing.withdrawn:
        return _Racer.STATE_WITHDRAWN
    if not standing.verdict:
        return _Racer.STATE_RACING
    return _Racer.STATE_BEST if len(standing.left) == 1 else _Racer.STATE_LEFT


def _verdict(pairs: Pairs, error: float, margin: float) -> tuple[str, int | None]:
    return sequential.verdict(pairs.draws, pairs.seen, error=error, margin=margin, total=pairs.total, ended=pairs.ended)


def _weighed(pairs: Pairs, error: float, margin: float, drawn: bool) -> Evidence:
    return sequential.weigh(
        pairs.draws, pairs.seen, error=error, margin=margin, total=pairs.total, ended=pairs.ended, drawn=drawn
    )


def _fill(told: decision_pb2.Decision | decision_pb2.Racer, pairs: Pairs, found: Evidence) -> None:
    told.failed = pairs.failed(found.decided_at)
    if found.difference is not None:
        told.difference = found.difference
    told.low, told.high = found.interval
    for look in found.path:
        told.path.add(
            pairs=look.items,
            better=look.better,
            worse=look.worse,
            equivalent=max(look.equivalent, _NOTHING),
            chance=look.chance,
            difference=look.difference,
            low=look.interval[0],
            high=look.interval[1],
        )
