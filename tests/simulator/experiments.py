"""Experiments in some of the simulated worlds: what users do with them, and what must hold.

What asks to judge answers is written by a stand-in here: the right one reads DuckDB. Everything else runs as it is.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import IO, Any
from unittest.mock import patch

from services import rpc
from services.errors import ConflictError
from services.results.judging import preparing, request_rows
from services.results.runs import job_reads
from services.rpc import Identity
from tests.simulator.calls import Wires
from tests.simulator.history import COMPLETED, ENDED, PLANNING, RUNNING, History, name
from tests.simulator.model import JUDGE, MODELS
from tests.simulator.processes import ENDPOINT, SCHEDULER, STANDBY, TOKEN
from tests.simulator.users import Users
from touchstone.v1 import item_result_pb2, job_pb2, scheduler_service_pb2_grpc, token_pb2
from touchstone.v1 import scheduler_service_pb2 as pb
from touchstone.v1.rubric_pb2 import Rubric

_NAMES = ("judged", "unjudged")
_TIMEOUT_S = 5.0
_LAST_TRIES = 40
_HOLDS_SLOT = frozenset({PLANNING, RUNNING})


@dataclass
class Experiments:
    """Grows while the simulation runs; notes in `history.broken` what a moment tells."""

    history: History
    asked: dict[str, set[str]] = field(default_factory=dict)
    """By experiment, the models that somebody asked for."""

    def _jobs(self, experiment: str, *, judging: bool) -> list[job_pb2.Job]:
        jobs = [self.history.job(job_id) for job_id in self.history.records.keys() - self.history.deleted]
        return [job for job in jobs if _is_of(job, experiment) and job.spec.HasField("judging") == judging]

    def moved(self, job_id: str) -> None:
        """Called for every stored state of a job."""
        job = self.history.job(job_id)
        experiment = job.spec.experiment_name
        if not experiment or job_id in self.history.deleted:
            return
        answers, judges = (self._jobs(experiment, judging=judging) for judging in (False, True))
        for model, times in Counter(one.spec.model for one in answers).items():
            if times > 1:
                self.history.broken.append(f"{model} has {times} jobs in experiment {experiment}")
        judging = [one for one in judges if one.state in _HOLDS_SLOT]
        live = [one for one in answers if one.state not in ENDED]
        at_work = [one for one in live if one.state in _HOLDS_SLOT]
        # One that has begun may see others come, which wait for it.
        begins = job.spec.HasField("judging") and job.state == PLANNING
        judged = self.history.job(job.spec.judging.job_id) if begins else job
        if begins and judged.attempt > job.spec.judging.attempt:
            self.history.broken.append(
                f"judge {job_id} of attempt {job.spec.judging.attempt} of job {judged.job_id} begins in attempt "
                f"{judged.attempt}"
            )
        if judging and (at_work or (begins and live)):
            other = (at_work or live)[0]
            self.history.broken.append(
                f"judge {judging[0].job_id} is {name(judging[0].state)} while job {other.job_id} of experiment "
                f"{experiment} is {name(other.state)}"
            )

    def missing(self) -> Iterator[str]:
        """What is still to come without another call: the judges of completed jobs."""
        if "judged" not in self.asked:
            return
        judged = {(one.spec.judging.job_id, one.spec.judging.attempt) for one in self._all_judges()}
        for job in self._jobs("judged", judging=False):
            if job.spec.judges and job.state == COMPLETED and (job.job_id, job.attempt) not in judged:
                yield f"job {job.job_id} ({job.attempt}.) has no judge"

    def _all_judges(self) -> Iterator[job_pb2.Job]:
        jobs = map(self.history.job, self.history.records)
        return (job for job in jobs if job.spec.HasField("judging"))

    def unanswered(self, experiment: str) -> list[str]:
        """Models whose job has not answered every row."""
        whole = {
            job.spec.model
            for job in self._jobs(experiment, judging=False)
            if job.state == COMPLETED and not job.incomplete and job.progress.items_done == _rows(experiment)
        }
        return sorted(self.asked[experiment] - whole)


def _is_of(job: job_pb2.Job, experiment: str) -> bool:
    return str(job.spec.experiment_name) == experiment


def _definition(experiment: str, models: list[str]) -> dict[str, Any]:
    """Two prompts, and as many scenarios or repeats as the name says."""
    made = {
        "name": experiment,
        "models": [f"{ENDPOINT}/{model}" for model in models],
        "prompts": [{"id": "a", "template": "Greet {{who}}."}, {"id": "b", "template": "{{who}}?"}],
        "scenarios": [{"who": "Ada"}, {"who": "Bo"}] if experiment == "judged" else [{"who": "Cy"}],
        "repeats": 1 if experiment == "judged" else 3,
    }
    # Each repeat has its own seed where there is one, and the model tells by it whose call it is.
    return made | ({"seed": 10_000} if made["repeats"] == 1 else {})


def _rows(experiment: str) -> int:
    return 4 if experiment == "judged" else 6


class ExperimentUsers:
    """Operations drawn by `chance`; jobs are those of `users`."""

    def __init__(self, wires: Wires, chance: Random, users: Users, experiments: Experiments) -> None:
        self._chance, self._users, self._experiments = chance, users, experiments
        channel: Any = wires.channel(f"{SCHEDULER},{STANDBY}")
        self._stub = scheduler_service_pb2_grpc.SchedulerServiceStub(channel)

    def operations(self) -> list[tuple[int, Callable[[], Awaitable[None]]]]:
        """What may be done now, each with its weight."""
        return [(12, self.run), (4, self.at_once)]

    async def run(self) -> None:
        await self._run(self._chance.choice(_NAMES), self._some_models())

    async def at_once(self) -> None:
        """The same call several times."""
        experiment, models = self._chance.choice(_NAMES), self._some_models()
        await asyncio.gather(*(self._run(experiment, models) for _ in range(3)))

    def _some_models(self) -> list[str]:
        return self._chance.sample(MODELS, self._chance.randint(1, len(MODELS)))

    async def _run(self, experiment: str, models: list[str]) -> bool:
        """Whether it was answered."""
        self._experiments.asked.setdefault(experiment, set()).update(models)
        request = pb.RunExperimentRequest(definition=json.dumps(_definition(experiment, models)))
        if experiment == "judged" and self._chance.random() < 0.7:
            request.judges.add(endpoint=ENDPOINT, model=JUDGE).sampling.seed = 1
        admin = rpc.metadata(TOKEN, Identity("alice", token_pb2.ROLE_ADMIN))

        def call(asked: Any, *, timeout: float, metadata: Any) -> Any:
            return self._stub.RunExperiment(asked, timeout=timeout, metadata=admin)

        answer = await self._users.ask(f"run {experiment} with {len(models)} models", call, request, _TIMEOUT_S)
        if answer is None:
            return False
        for job in answer.jobs:
            if job.job_id not in self._users.jobs:
                self._users.jobs.append(job.job_id)
        return True

    async def last(self, rest: Callable[[], Awaitable[bool]]) -> str:
        """After all faults: the same calls again, until every cell is answered; what is left, in words. `rest` waits
        until everything has ended."""
        for experiment, models in self._experiments.asked.items():
            for _ in range(_LAST_TRIES):
                answered = await self._run(experiment, sorted(models))
                if not await rest():
                    return ""
                if answered and not self._experiments.unanswered(experiment):
                    break
                await asyncio.sleep(1.0)
            else:
                return f"experiment {experiment} lacks answers of {self._experiments.unanswered(experiment)}"
        return ""


# -- the stand-in -----------------------------------------------------------------------------------------------------


def _judgeable(connection: Any, job_id: str, attempt: int) -> job_pb2.Job:
    job = job_reads.get_job(connection, job_id)
    if job_reads.sealed_result(connection, job_id, attempt or job.attempt) is None:
        raise ConflictError(f"Job {job_id} has not completed.")
    return job


def _write(connection: Any, file: IO[bytes], rubric: Rubric, judging: job_pb2.Judging) -> None:
    for (job_id, task, item, repeat), (_, result) in sorted(connection.stored.items.items()):
        if job_id == judging.job_id and result.outcome != item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR:
            answer = request_rows.Answer(task, item, repeat, "A prompt.", "", result.response)
            file.writelines(request_rows.lines(rubric, answer, 1))
    if not file.tell():
        raise ConflictError(f"Job {judging.job_id} has no answers to judge.")
    file.seek(0)


@contextmanager
def installed() -> Iterator[None]:
    """Inside, the results service finds and reads the answers to judge in memory."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(preparing, "_judgeable", _judgeable))
        stack.enter_context(patch.object(preparing, "_write", _write))
        yield
