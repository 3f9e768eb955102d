"""Decisions in some of the simulated worlds: what users do with them, and what must hold.

Their answers are read by a stand-in here: the right one reads DuckDB. What follows from the answers is computed by the
services.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np

from services import decision_order
from services.bus import KIND_ITEMS, ResultHeaders, parse_results_subject
from services.results.decisions import answers
from services.results.decisions.evidence import read_evidence
from services.results.sequential.draws import Pair
from services.results.sequential.evidence import Evidence, evidence
from services.words.decisions import job_ids
from services.words.enums import DECISION_VERDICTS
from tests import races
from tests.simulator.history import CANCELLED, COMPLETED, ENDED, FAILED, History
from tests.simulator.memory_store import MemoryConnection, Stored
from tests.simulator.model import BEST, SKILLS, SLOW, knows
from tests.simulator.processes import catalogue
from tests.simulator.streams import Stored as Message
from tests.simulator.streams import Stream
from tests.simulator.users import Users
from touchstone.v1 import item_result_pb2, job_pb2, suite_pb2, unit_pb2
from touchstone.v1 import scheduler_service_pb2 as pb

_LAST_TRIES = 60
_ITEMS, _OF_RACES = 40, 54
"""Of each task, in decisions between two and in races."""
_CANCELLED_S = 0.5
"""From a stored verdict to the end of the last call of a job that it stops, while nothing goes wrong. Promised are 2 s
from the last answer that was needed: the rest of it is a look."""
_ERROR = item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR

_Sizes = tuple[tuple[str, int], ...]


@dataclass
class Decisions:
    """Grows while the simulation runs; notes in `history.broken` what a moment tells."""

    history: History
    calls: int = 0
    """How many the endpoint takes at once."""
    evaluators: int = 0
    asked: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """By request id, the decisions that answers named."""
    last: set[str] = field(default_factory=set)
    """The jobs of a decision after all faults."""
    _done: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """By job, the units of its first attempt that RESULTS has whole."""
    _failed: dict[str, set[tuple[str, int]]] = field(default_factory=lambda: defaultdict(set))
    """By job, items without an answer in its first attempt."""
    _answered: dict[str, set[tuple[str, int]]] = field(default_factory=lambda: defaultdict(set))
    _begun: list[tuple[str, str, str]] = field(default_factory=list)
    """Batch, job that was created in it, and the job that must be created in it, too."""
    _due: list[tuple[str, str, str]] = field(default_factory=list)
    """Batch, job that a verdict stopped in it, and the job that must be stopped in it, too."""
    _alone: dict[str, str] = field(default_factory=dict)
    """By job that had much to ask when the last other one of its decision failed or was cancelled, that other one."""
    _stopped: dict[int, tuple[str, float]] = field(default_factory=dict)
    """By seed, a job that a verdict has stopped, and when."""
    _standings: dict[tuple[str, int], races.Expected] = field(default_factory=dict)
    """Of races, by id and the number of their items without an answer."""

    @property
    def most_apart(self) -> int:
        """Items that a job may be ahead of the other side's first open unit."""
        return max(4 * self.calls, 2 * self.evaluators * decision_order.UNIT) + decision_order.UNIT

    def under_way(self) -> list[list[str]]:
        """The jobs of each decision of which none has ended."""
        first = (self.history.job(job_id) for job_id in self.history.records)
        jobs = [self._jobs(job) for job in first if job.attempt == 1 and job_ids(job)[:1] == [job.job_id]]
        live = [each for each in jobs if each and all(one.attempt == 1 and one.state not in ENDED for one in each)]
        return [[one.job_id for one in each] for each in live]

    def stored(self, stream: Stream, message: Message) -> None:
        """Called for every message that the server stores, after the history."""
        if stream.name == "RESULTS":
            self._results(message)
        if stream.name != "KV_JOBS":
            return
        batch = message.headers.get("Nats-Batch-Id", "")
        for each in [each for each in self._due if each[0] != batch]:
            self._due.remove(each)
            if not self.history.has_ended(each[2]):
                self.history.broken.append(f"job {each[1]} ended and {each[2]}, of the same decision, did not")
        for each in [each for each in self._begun if each[0] != batch]:
            self._begun.remove(each)
            if each[2] not in self.history.records:
                self.history.broken.append(f"job {each[1]} was created without {each[2]}, of the same decision")
        job_id = message.subject.removeprefix("$KV.JOBS.job.")
        if job_id in self.history.records and job_id != message.subject and message.data:
            self._moved(self.history.job(job_id), batch)

    def _results(self, message: Message) -> None:
        headers = ResultHeaders.decode(message.headers)
        if headers.kind != KIND_ITEMS or headers.attempt != 1:
            return
        batch = item_result_pb2.ItemResultBatch.FromString(message.data)
        for item in batch.items:
            into = self._failed if item.outcome == _ERROR else self._answered
            into[batch.job_id].add((batch.task, item.position))
        if headers.done:
            job_id, unit = parse_results_subject(message.subject)
            self._done[job_id].add(unit)

    def _moved(self, job: job_pb2.Job, batch: str) -> None:
        jobs = self._jobs(job)
        if not jobs:
            return
        if len(self.history.places[job.job_id]) == 1:
            self._begun += [(batch, job.job_id, other) for other in job_ids(job) if other not in self.history.records]
        firsts = len(jobs) == len(job_ids(job)) and all(one.attempt == 1 for one in jobs)
        if firsts and job.state in (FAILED, CANCELLED):
            on = [one for one in jobs if one.state not in ENDED]
            for one in on:
                planned = sum(items for _, items in _sizes(one)) or one.spec.suite.limit * len(one.spec.suite.tasks)
                there = len(self._answered[one.job_id] | self._failed[one.job_id])
                if job.HasField("decided") and not races.is_beaten(job) and there < planned:
                    self._due.append((batch, job.job_id, one.job_id))
                if len(on) == 1 and there + self.most_apart < planned:
                    self._alone[one.job_id] = job.job_id
        if job.attempt == 1 and job.state == COMPLETED and job.job_id in self._alone:
            self.history.broken.append(
                f"job {job.job_id} ran on when {self._alone[job.job_id]}, the last other one of its decision, had ended"
            )
        if job.spec.schedule_id and len(self.history.places[job.job_id]) == 1:
            self._is_alone(job)
        if job.attempt == 1 and job.HasField("decided"):
            if not job.spec.schedule_id:
                self._stopped.setdefault(job.spec.sampling.seed, (job.job_id, asyncio.get_running_loop().time()))
            self._check(job, jobs)

    def _is_alone(self, job: job_pb2.Job) -> None:
        """Notes a job that a schedule has started while an earlier decision of it was under way."""
        for job_id in self.history.records.keys() - {*job_ids(job)}:
            known = self.history.job(job_id)
            if known.spec.schedule_id == job.spec.schedule_id and known.attempt == 1 and known.state not in ENDED:
                self.history.broken.append(f"job {job.job_id} was started by a schedule while job {job_id} was live")

    def _jobs(self, job: job_pb2.Job) -> list[job_pb2.Job]:
        """Those of its decision that are there, in its order; none for other jobs."""
        known = job_ids(job) if job.spec.HasField("deciding") else []
        return [self.history.job(each) for each in known if each in self.history.records]

    def _check(self, job: job_pb2.Job, jobs: Sequence[job_pb2.Job]) -> None:
        if len(jobs) < 2:
            return
        if job.spec.deciding.race_job_ids:
            standing = self.standing(jobs)
            wrong = standing.wrong(job, jobs) if standing is not None else ""
            if wrong:
                self.history.broken.append(wrong)
            return
        found = self.expected(*jobs)
        if found is None:
            return
        said = job.decided.verdict, job.decided.pairs
        expected = DECISION_VERDICTS.get(found.verdict, 0), found.decided_at
        if said != expected:
            self.history.broken.append(
                f"job {job.job_id} was decided as {said[0]} after {said[1]} pairs; its order and answers say "
                f"{expected[0]} after {expected[1]}"
            )

    def standing(self, jobs: Sequence[job_pb2.Job]) -> races.Expected | None:
        """How a race of these jobs ends by the order and the models; None as in `expected`."""
        if any(self._failed[one.job_id] & self._answered[one.job_id] for one in jobs):
            return None
        key = jobs[0].job_id, sum(len(self._failed[one.job_id]) for one in jobs)
        if key not in self._standings:
            planned = next(one for one in jobs if one.plan)
            items = list[races.Item]()
            for task, position in decision_order.order(planned.plan, planned.spec.deciding.seed):
                place = planned.plan[task].task, position
                index = self._index(planned, *place)
                scores = [
                    None if place in self._failed[one.job_id] else float(knows(one.spec.model, place[0], index))
                    for one in jobs
                ]
                items.append((place[0], scores))
            self._standings[key] = races.Expected.of(planned.spec.deciding, items, dict(_sizes(planned)))
        return self._standings[key]

    def _index(self, job: job_pb2.Job, task: str, position: int) -> int:
        return _indexes(job.spec.suite.suite, task, job.spec.suite.limit)[position]

    def expected(self, baseline: job_pb2.Job, candidate: job_pb2.Job) -> Evidence | None:
        """What the order and the models say, whoever answers when; None where an item failed and was answered later."""
        if any(self._failed[one.job_id] & self._answered[one.job_id] for one in (baseline, candidate)):
            return None
        failed = self._failed[baseline.job_id] | self._failed[candidate.job_id]
        job = baseline if baseline.plan else candidate
        sizes = _sizes(job)
        pairs = []
        for task, position in decision_order.order(job.plan, job.spec.deciding.seed):
            named = sizes[task][0]
            if (named, position) in failed:
                continue
            index = self._index(job, named, position)
            a, b = (float(knows(one.spec.model, named, index)) for one in (baseline, candidate))
            pairs.append(Pair(a, b, named if len(sizes) > 1 else ""))
        side = job.spec.deciding
        strata = dict(sizes) if len(sizes) > 1 else {}
        total = sum(items for _, items in sizes)
        return evidence(pairs, error=side.error, margin=side.margin, total=total, strata=strata, ended=True)

    def delivered(self, unit: unit_pb2.Unit) -> None:
        """Called for every delivery of a unit of some job."""
        job_id = unit.job_id
        if not unit.spec.HasField("deciding") or not unit.task or unit.attempt != 1:
            return
        job = self.history.job(job_id)
        jobs = self._jobs(job)
        if len(jobs) < 2 or any(one.attempt != 1 for one in jobs):
            return
        ends = _ends(_sizes(job), job.spec.deciding.seed)
        on = [one.job_id for one in jobs if one.state not in (FAILED, CANCELLED)]
        if len(jobs) > 2 and (len(on) < 2 or job_id not in on):
            # It was on its way when the race ended, or this job in it.
            return
        first = min(self._first(one) for one in (on if len(on) > 1 else [one.job_id for one in jobs]))
        if first < len(ends) and ends[unit.unit] - ends[first] > self.most_apart:
            self.history.broken.append(
                f"unit {unit.unit} of job {job_id} is out while unit {first} of its decision is open"
            )

    def called(self, seed: int) -> None:
        """Called while nothing goes wrong, when a call of a job with this seed begins and is answered."""
        job_id, at = self._stopped.get(seed, ("", math.inf))
        after = asyncio.get_running_loop().time() - at
        live = (self.history.job(each) for each in self.history.live())
        if after > _CANCELLED_S and not any(job.spec.sampling.seed == seed for job in live):
            self.history.broken.append(f"job {job_id} still calls the model {after:.1f} s after its verdict")

    def _first(self, job_id: str) -> int:
        done, first = self._done[job_id], 0
        while first in done:
            first += 1
        return first

    def violations(self, stored: Stored, *, undisturbed: bool) -> Iterator[str]:
        """What is wrong in the end, of a world without faults if `undisturbed`."""
        for request, made in self.asked.items():
            if len(made) > 1:
                yield f"{request} made {len(made)} decisions"
        started = Counter[int]()
        for job_id in sorted(self.history.records.keys()):
            job = self.history.job(job_id)
            jobs = self._jobs(job)
            # Each time of a schedule starts the same.
            started[job.spec.sampling.seed] += bool(jobs) and not job.spec.schedule_id
            if len(jobs) < len(job_ids(job)) and jobs:
                yield f"job {job_id} is without others of its decision"
            if not jobs or job_id != jobs[0].job_id or any(one.job_id in self.history.deleted for one in jobs):
                continue
            yield from self._of_race(jobs, stored) if len(jobs) > 2 else self._of_pair(jobs[0], jobs[1], stored)
            for one in jobs:
                decided = one.attempt == 1 and one.HasField("decided")
                calm = undisturbed or one.job_id in self.last
                if calm and decided and self._in_vain(one) > self.most_apart:
                    yield f"job {one.job_id} was asked {self._in_vain(one)} items after its verdict"
        for seed, count in started.items():
            if count > 1:
                yield f"{count} jobs of decisions were made of one, with the seed {seed}"

    def _of_race(self, jobs: Sequence[job_pb2.Job], stored: Stored) -> Iterator[str]:
        standing = self.standing(jobs) if all(one.plan for one in jobs) else None
        if standing is not None:
            yield from standing.misread(jobs, read_evidence(MemoryConnection(stored), jobs))  # type: ignore[arg-type]

    def _of_pair(self, baseline: job_pb2.Job, candidate: job_pb2.Job, stored: Stored) -> Iterator[str]:
        verdicts = [
            (one.decided.verdict, one.decided.pairs) for one in (baseline, candidate) if one.HasField("decided")
        ]
        if len(set(verdicts)) > 1:
            yield f"decision {baseline.job_id} has the verdicts {verdicts}"
        found = self.expected(baseline, candidate) if baseline.plan and candidate.plan else None
        if found is None:
            return
        read = read_evidence(MemoryConnection(stored), (baseline, candidate))  # type: ignore[arg-type]
        if verdicts and (read.verdict, read.decided_at) != verdicts[0]:
            yield f"decision {baseline.job_id} was {verdicts[0]}, and reads as {(read.verdict, read.decided_at)}"
        both = {baseline.state, candidate.state}
        if (baseline.attempt, candidate.attempt) == (1, 1) and both == {COMPLETED}:
            expected = DECISION_VERDICTS.get(found.verdict, 0), found.decided_at or 0
            if (read.verdict, read.decided_at) != expected:
                yield f"decision {baseline.job_id} reads as {(read.verdict, read.decided_at)} and should be {expected}"

    def _in_vain(self, job: job_pb2.Job) -> int:
        """Items that a decided job was asked beyond the units of the pairs that decided it."""
        ends = _ends(_sizes(job), job.spec.deciding.seed)
        order = decision_order.order(job.plan, job.spec.deciding.seed)
        needed = {(task, position) for task, position in order[: job.decided.pairs]}
        units = decision_order.units(job.plan, job.spec.deciding.seed)
        last = max(
            number
            for number, unit in enumerate(units)
            if any((unit.task, position) in needed for position in unit.positions)
        )
        return len(self._answered[job.job_id] | self._failed[job.job_id]) - ends[last]


@contextmanager
def installed() -> Iterator[None]:
    """Inside, answers of decisions are read from the store in memory."""
    with patch.object(answers, "_stored", stored_answers), patch.object(answers, "_failed_first", failed_first):
        yield


def stored_answers(
    connection: MemoryConnection, job: job_pb2.Job, statistics: Sequence[str | None]
) -> Mapping[str, Any]:
    """As `answers._stored`, for tasks where right answers count."""
    places = {task.task: number for number, task in enumerate(job.plan)}
    rows = [
        (places[task], item.position, attempt == 1 and item.outcome != _ERROR, attempt > 1, _score(item))
        for (job_id, task, _, _), (attempt, item) in connection.stored.items.items()
        if job_id == job.job_id and task in places
    ]
    columns = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    kinds = (("place", int), ("position", int), ("answered", bool), ("again", bool), ("score", float))
    return {name: np.array(column, dtype=kind) for (name, kind), column in zip(kinds, columns, strict=True)}


def failed_first(connection: MemoryConnection, job: job_pb2.Job) -> int:
    """As `answers._failed_first`."""
    known = connection.stored.events
    ids = sorted(known, key=lambda event_id: (len(event_id), event_id))
    retries = [known[one].job for one in ids if known[one].action == "retried" and known[one].job.job_id == job.job_id]
    return retries[0].progress.items_failed if retries else 0


def _score(item: item_result_pb2.ItemResult) -> float:
    if not item.statistics:
        return np.nan
    return float(item.outcome == item_result_pb2.OUTCOME_ANSWERED and item.statistics.get("correct", 0.0) >= 0.5)


def _sizes(job: job_pb2.Job) -> _Sizes:
    return tuple((task.task, task.items) for task in job.plan)


@lru_cache(maxsize=64)
def _ends(sizes: _Sizes, seed: int) -> Sequence[int]:
    """Of each unit, the items up to its end."""
    plan = [job_pb2.TaskPlan(task=task, items=items) for task, items in sizes]
    return list(accumulate(len(unit.positions) for unit in decision_order.units(plan, seed)))


@lru_cache(maxsize=16)
def _indexes(suite: str, task: str, limit: int) -> Sequence[int]:
    found = catalogue().task(suite, task, suite_pb2.MODE_GENERATE, 0)
    return catalogue().selection(found, limit, 0).indexes


class DecisionUsers:
    """Operations drawn by `chance`; jobs are those of `users`. They start `races`, or decisions between two."""

    def __init__(self, chance: Random, users: Users, decisions: Decisions, *, races: bool) -> None:
        self._chance, self._users, self._decisions, self._races = chance, users, decisions, races

    def operations(self) -> list[tuple[int, Callable[[], Awaitable[None]]]]:
        """What may be done now, each with its weight."""
        kinds: list[tuple[int, Callable[[], Awaitable[None]]]] = [(4, self.start)]
        if self._users.plans:
            kinds.append((8, self.schedule))
        if self._decisions.under_way():
            kinds.append((20, self.leave_one))
        return kinds

    async def begin(self) -> None:
        """What the first of the users does: up to three decisions at once, for two slots; of races up to two."""
        most = 2 if self._races else 3
        await asyncio.gather(*(self.start() for _ in range(self._chance.choice([1, 1, most]))))

    async def leave_one(self) -> None:
        """Cancels all jobs of a decision but one."""
        jobs = self._chance.choice(self._decisions.under_way())
        left = self._chance.randrange(len(jobs))
        for job_id in [*jobs[:left], *jobs[left + 1 :]]:
            await self._users.cancel(job_id)

    async def schedule(self) -> None:
        """A decision each minute from now on."""
        await self._users.schedule_of(pb.CreateScheduleRequest(decision=self._request()))

    def _request(self) -> pb.StartDecisionRequest:
        """Between models, which may be equal or one; without an id."""
        baseline = self._users.bare_spec()
        baseline.suite.suite = "demo"
        baseline.suite.tasks.extend(["sentiment", "entailment"][: self._chance.randint(1, 2)])
        baseline.suite.limit = _OF_RACES if self._races else _ITEMS
        others = [job_pb2.JobSpec() for _ in range(self._chance.choice([2, 2, 3, 4]) if self._races else 1)]
        for other in others:
            other.CopyFrom(baseline)
            other.sampling.seed = self._users.unknown()
        for spec in (baseline, *others):
            spec.model = self._chance.choice(list(SKILLS))
        return pb.StartDecisionRequest(
            baseline=baseline,
            candidate=others[0],
            further_candidates=others[1:],
            error=self._chance.choice([0.05, 0.5]),
            margin=self._chance.choice([0.0, 0.0, 0.4]),
            seed=self._chance.randrange(1 << 31),
        )

    async def last(self) -> bool:
        """A decision after all faults, in which one model is better and the other one slow: so there is a verdict, and
        something is under way then. Whether it is started."""
        request = self._request()
        request.request_id = f"request-{self._users.unknown()}"
        request.error, request.margin = 0.5, 0.0
        del request.further_candidates[:]
        models = [BEST, SLOW]
        self._chance.shuffle(models)
        request.baseline.model, request.candidate.model = models
        for _ in range(_LAST_TRIES):
            answer = await self._users.start_decision(request)
            if answer is not None:
                self._decisions.last |= {answer.baseline.job_id, answer.candidate.job_id}
                return True
            await asyncio.sleep(1.0)
        return False

    async def start(self) -> None:
        """A decision now."""
        request = self._request()
        request.request_id = f"request-{self._users.unknown()}"
        for _ in range(self._chance.randint(1, 4)):
            answer = await self._users.start_decision(request)
            if answer is not None:
                self._decisions.asked[request.request_id].add(answer.decision_id)
                made = [one.job_id for one in (answer.baseline, answer.candidate, *answer.further_candidates)]
                self._users.jobs.extend(job_id for job_id in made if job_id not in self._users.jobs)
                if self._chance.random() < 0.8:
                    return
            await asyncio.sleep(self._chance.uniform(0.05, 1.0))
