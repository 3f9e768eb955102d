"""Judges of single jobs in some of the simulated worlds: those that a job names, those that users ask for, and what
must hold. What asks to judge answers is written by the stand-in of `experiments`."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from tests.simulator.history import COMPLETED, FINALIZING, PENDING, PLANNING, History, name
from tests.simulator.model import JUDGE
from tests.simulator.processes import ENDPOINT, SLOTS
from tests.simulator.users import Users
from touchstone.v1 import job_pb2

_RUBRIC = json.dumps({"version": "short-v1", "criteria": [{"name": "short"}]})
_ITEMS = 24
_LOOKS, _LOOK_S = 100, 0.05
"""How often, and with how many virtual seconds in between, a waiting judge is looked for."""
_Key = tuple[str, int, int]
"""The judged job, its attempt, and the judge's seed."""


@dataclass
class Judges:
    """Grows while the simulation runs; notes in `history.broken` what a moment tells."""

    history: History
    named: set[int] = field(default_factory=set)
    """Seeds of judges that jobs name."""
    jobs: dict[_Key, set[str]] = field(default_factory=lambda: defaultdict(set))

    def moved(self, job_id: str) -> None:
        """Called for every stored state of a job."""
        job = self.history.job(job_id)
        judging = job.spec.judging
        if not judging.job_id or job.spec.experiment_name or job_id in self.history.deleted:
            return
        key = (judging.job_id, judging.attempt, job.spec.sampling.seed)
        self.jobs[key].add(job_id)
        if len(self.jobs[key]) > 1:
            self.history.broken.append(
                f"job {judging.job_id} ({judging.attempt}.) is judged in {len(self.jobs[key])} jobs"
            )
        if job.state != PLANNING:
            return
        places = self.history.places[judging.job_id]
        # A user may be first: the answers are whole before the job says so. Such a judge also keeps its answers.
        is_named = job.spec.sampling.seed in self.named
        ends = {COMPLETED} if is_named else {COMPLETED, FINALIZING}
        if not any(state in ends and attempt == judging.attempt for state, attempt in places):
            self.history.broken.append(f"judge {job_id} begins before job {judging.job_id} is completed")
        state, attempt = places[-1]
        if is_named and attempt != judging.attempt:
            self.history.broken.append(
                f"judge {job_id} of attempt {judging.attempt} begins while job {judging.job_id} is {name(state)} "
                f"in attempt {attempt}"
            )

    def missing(self) -> Iterator[str]:
        """Judges that whole jobs name and that have not started."""
        for job_id in self.history.records.keys() - self.history.deleted:
            job = self.history.job(job_id)
            if job.state != COMPLETED or job.incomplete or job.spec.experiment_name:
                continue
            for judge in job.spec.judges:
                if (job_id, job.attempt, judge.sampling.seed) not in self.jobs:
                    yield f"job {job_id} ({job.attempt}.) lacks a judge"


class JudgeUsers:
    """Operations drawn by `chance`; jobs are those of `users`."""

    def __init__(self, chance: Random, users: Users, judges: Judges) -> None:
        self._chance, self._users, self._judges = chance, users, judges

    def operations(self) -> list[tuple[int, Callable[[], Awaitable[None]]]]:
        """What may be done now, each with its weight."""
        # Users cancel, retry and delete judges, too.
        known = {job_id for jobs in self._judges.jobs.values() for job_id in jobs}
        self._users.jobs.extend(sorted(known.difference(self._users.jobs)))
        kinds: list[tuple[int, Callable[[], Awaitable[None]]]] = [(6, self.run)]
        if self._users.jobs:
            kinds += [(6, self.judge), (30 if self._incomplete() else 2, self.at_once), (8, self.overtake)]
        return kinds

    async def begin(self) -> None:
        """What the first of the users does."""
        await self._chance.choice([self.run, self.overtake])()

    async def run(self, large: float = 0.7) -> None:
        """A job that names one or two judges; `large` is the chance that it may complete with gaps."""
        spec = self._users.spec()
        if self._chance.random() < large:
            # So large that it completes although an item has no answer, and then may run again.
            spec.suite.limit = _ITEMS
            del spec.suite.tasks[1:]
        for _ in range(self._chance.randint(1, 2)):
            judge = spec.judges.add(endpoint=ENDPOINT, model=JUDGE, rubric=_RUBRIC)
            judge.sampling.seed = self._users.unknown()
            self._judges.named.add(judge.sampling.seed)
        await self._users.create_of(spec)

    async def at_once(self) -> None:
        """A job that runs again while somebody asks for a judge."""
        job_id = self._chance.choice(self._incomplete() or self._users.jobs)
        await asyncio.gather(self._users.retry(job_id), self.judge(job_id))

    async def overtake(self) -> None:
        """A job that runs again while a judge that it names waits, as other jobs have all slots."""
        await self.run(large=1.0)
        is_full = False
        for _ in range(_LOOKS):
            if judged := self._judged_by_waiting():
                await self._users.retry(self._chance.choice(judged))
                return
            if not is_full and any(self._names_judges(job_id) for job_id in self._incomplete()):
                is_full = True
                await asyncio.gather(*(self._users.create() for _ in range(SLOTS + 1)))
            await asyncio.sleep(_LOOK_S)

    def _names_judges(self, job_id: str) -> bool:
        return bool(self._judges.history.job(job_id).spec.judges)

    def _judged_by_waiting(self) -> list[str]:
        """Completed jobs that may run again and of which a named judge waits."""
        history = self._judges.history
        judged = {
            job_id
            for (job_id, attempt, seed), judges in self._judges.jobs.items()
            if seed in self._judges.named
            and self._is_incomplete(job_id)
            and attempt == history.job(job_id).attempt
            and any(history.job(judge).state == PENDING for judge in judges - history.deleted)
        }
        return sorted(judged)

    def _incomplete(self) -> list[str]:
        """Jobs that have completed and may run again."""
        return [job_id for job_id in self._users.jobs if self._is_incomplete(job_id)]

    def _is_incomplete(self, job_id: str) -> bool:
        history = self._judges.history
        if job_id not in history.records or job_id in history.deleted:
            return False
        job = history.job(job_id)
        return job.state == COMPLETED and job.incomplete and not job.spec.judging.job_id

    async def judge(self, job_id: str = "") -> None:
        """A judge of some job, which may not have completed."""
        spec = job_pb2.JobSpec(endpoint=ENDPOINT, model=JUDGE)
        spec.sampling.seed = self._users.unknown()
        spec.judging.job_id, spec.judging.rubric = job_id or self._chance.choice(self._users.jobs), _RUBRIC
        await self._users.create_of(spec)
