"""The users of a simulated installation: they ask over gRPC, as the gateway does for them, and note the answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import grpc

from services import rpc
from services.rpc import Identity
from tests.simulator.calls import Wires
from tests.simulator.history import COMPLETED, History, name
from tests.simulator.model import MODEL
from tests.simulator.processes import ENDPOINT, RESULTS, SCHEDULER, STANDBY, TOKEN
from tests.simulator.receivers import URLS
from touchstone.v1 import job_pb2, results_service_pb2, results_service_pb2_grpc, scheduler_service_pb2_grpc, token_pb2
from touchstone.v1 import scheduler_service_pb2 as pb

_TIMEOUT_S = 3.0
_LAST_TRIES = 60
_TASKS = ("sentiment", "entailment")


class Users:
    """Operations drawn by `chance`, each noted in `history` once it is acknowledged. Where one `plans`, there are
    schedules as well; `wall` tells the time of day."""

    def __init__(
        self,
        wires: Wires,
        chance: Random,
        history: History,
        trace: Callable[[str], None],
        *,
        plans: bool,
        wall: Callable[[], float],
    ) -> None:
        self._chance, self._history, self._trace = chance, history, trace
        schedulers: Any = wires.channel(f"{SCHEDULER},{STANDBY}")
        results: Any = wires.channel(RESULTS)
        self._scheduler = scheduler_service_pb2_grpc.SchedulerServiceStub(schedulers)
        self._results = results_service_pb2_grpc.ResultsServiceStub(results)
        self._metadata = rpc.metadata(TOKEN, Identity("alice", token_pb2.ROLE_USER))
        self._seeds = 0
        self._wall = wall
        self.plans = plans
        self.jobs: list[str] = []
        self.code = grpc.StatusCode.OK
        self.begin: Callable[[], Awaitable[None]] = self.create
        """What the first of them does."""
        self.more: Callable[[], list[tuple[int, Callable[[], Awaitable[None]]]]] = list
        """Further operations, each with its weight."""

    async def one(self) -> None:
        """Some operation."""
        kinds: list[tuple[int, Callable[[], Awaitable[None]]]] = [(4, self.create)]
        if self.jobs:
            kinds += [
                (4, self.cancel),
                (4, self.retry),
                (2, self.delete),
                (1, self.mark),
                (1, self.annotate),
                (1, self.again),
                (1, self.export),
            ]
        if self.plans:
            kinds += [(6, self.schedule), (1, self.unschedule)]
        kinds += self.more()
        (kind,) = self._chance.choices([kind for _, kind in kinds], [weight for weight, _ in kinds])
        await kind()

    async def ask(self, what: str, call: Any, request: Any, within: float = _TIMEOUT_S) -> Any:
        """The answer; None when it was refused or is not known: then `code` tells how it ended, until anybody asks
        again."""
        self._trace(f"user: {what}")
        try:
            answer = await call(request, timeout=within, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            self.code = error.code()
            self._trace(f"user: {what}: {error.code().name} {error.details()}")
            fault = error.code() in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN)
            if fault and not self._history.failures_are_injected:
                self._history.broken.append(f"{what} was answered {error.code().name}: {error.details()}")
            return None
        return answer

    def unknown(self) -> int:
        self._seeds += 1
        return self._seeds

    def bare_spec(self) -> job_pb2.JobSpec:
        """Of a job that asks the model; what about is still to be said."""
        spec = job_pb2.JobSpec(endpoint=ENDPOINT, model=MODEL)
        # By which the model tells whose call it is.
        spec.sampling.seed = self.unknown()
        return spec

    def spec(self) -> job_pb2.JobSpec:
        """Of a job over some tasks of the suite."""
        tasks = list(_TASKS[: self._chance.randint(1, 2)])
        spec = self.bare_spec()
        spec.suite.suite = "demo"
        spec.suite.tasks.extend(tasks)
        spec.suite.limit = self._chance.choice([1, 3, 6])
        if self._chance.random() < 0.25:
            spec.webhook_url = self._chance.choice(URLS)
        return spec

    async def create(self) -> None:
        await self.create_of(self.spec())

    async def last(self, spec: job_pb2.JobSpec | None = None) -> str:
        """A job after all faults, when everything should work again; empty when none can be created."""
        if spec is None:
            # Small, as all that counts is that it comes to its end.
            spec = self.spec()
            spec.suite.limit = 1
            del spec.suite.tasks[1:]
        request = pb.CreateJobRequest(request_id=f"request-{self.unknown()}", spec=spec)
        for _ in range(_LAST_TRIES):
            answer = await self.ask("create the last job", self._scheduler.CreateJob, request)
            if answer is not None:
                self._history.created[request.request_id].add(answer.job.job_id)
                return str(answer.job.job_id)
            await asyncio.sleep(1.0)
        return ""

    async def create_of(self, spec: job_pb2.JobSpec) -> None:
        request = pb.CreateJobRequest(request_id=f"request-{self.unknown()}", spec=spec)
        for _ in range(self._chance.randint(1, 4)):
            answer = await self.ask(f"create {request.request_id}", self._scheduler.CreateJob, request)
            if answer is not None:
                self._history.created[request.request_id].add(answer.job.job_id)
                if answer.job.job_id not in self.jobs:
                    self.jobs.append(answer.job.job_id)
                # Some ask again although they were answered.
                if self._chance.random() < 0.8:
                    return
            await asyncio.sleep(self._chance.uniform(0.05, 1.0))

    async def start_decision(self, request: pb.StartDecisionRequest) -> pb.StartDecisionResponse | None:
        """As `ask`."""
        answer: pb.StartDecisionResponse | None = await self.ask(
            f"decide {request.request_id}", self._scheduler.StartDecision, request
        )
        return answer

    def _some_job(self) -> str:
        return self._chance.choice(self.jobs)

    async def cancel(self, job_id: str = "") -> None:
        """This job, or some."""
        request = pb.CancelJobRequest(job_id=job_id or self._some_job())
        await self._move("cancel", self._scheduler.CancelJob, request)

    async def retry(self, job_id: str = "") -> None:
        """This job, or some."""
        await self._move("retry", self._scheduler.RetryJob, pb.RetryJobRequest(job_id=job_id or self._some_job()))

    async def delete(self) -> None:
        """A job that has ended, if there is one."""
        ended = [job_id for job_id in self.jobs if self._history.has_ended(job_id)]
        request = pb.DeleteJobRequest(job_id=self._chance.choice(ended or self.jobs))
        if await self.ask(f"delete {request.job_id[-4:]}", self._scheduler.DeleteJob, request) is not None:
            self._history.deletions.append(request.job_id)

    async def delete_last(self) -> bool:
        """Deletes a job when everything should work and no job is live; whether that is done or there is none."""
        ended = [job_id for job_id in self.jobs if job_id not in self._history.deleted]
        if not ended:
            return True
        request = pb.DeleteJobRequest(job_id=self._chance.choice(ended))
        for _ in range(_LAST_TRIES):
            if await self.ask("delete the last job", self._scheduler.DeleteJob, request) is not None:
                self._history.deletions.append(request.job_id)
                return True
            if request.job_id in self._history.deleted:
                return True
            await asyncio.sleep(1.0)
        return False

    async def _move(self, what: str, call: Any, request: Any) -> None:
        answer = await self.ask(f"{what} {request.job_id[-4:]}", call, request)
        if answer is not None:
            self._history.moved.append((what, request.job_id, (answer.job.state, answer.job.attempt)))
            self._trace(f"user: {what} {request.job_id[-4:]} is {name(answer.job.state)} {answer.job.attempt}")

    async def schedule(self) -> None:
        """A job each minute from now on."""
        await self.schedule_of(pb.CreateScheduleRequest(spec=self.spec()))

    async def schedule_of(self, request: pb.CreateScheduleRequest) -> None:
        """The same for what the request asks."""
        request.request_id, request.cron, request.label = f"request-{self.unknown()}", "* * * * *", "each minute"
        asked = self._wall()
        for _ in range(self._chance.randint(1, 3)):
            answer = await self.ask("create a schedule", self._scheduler.CreateSchedule, request)
            if answer is not None:
                self._history.schedules.setdefault(answer.schedule.schedule_id, (asked, None))
                return
            await asyncio.sleep(self._chance.uniform(0.05, 1.0))

    async def unschedule(self) -> None:
        if not self._history.schedules:
            return
        await self._end(self._chance.choice(list(self._history.schedules)))

    async def end_schedules(self) -> None:
        for chosen in list(self._history.schedules):
            await self._end(chosen)

    async def _end(self, chosen: str) -> None:
        created, deleted = self._history.schedules[chosen]
        self._history.schedules[chosen] = created, bool(deleted)
        request = pb.DeleteScheduleRequest(schedule_id=chosen)
        if await self.ask("delete a schedule", self._scheduler.DeleteSchedule, request) is not None:
            self._history.schedules[chosen] = created, True

    async def mark(self) -> None:
        request = results_service_pb2.MarkRunRequest(
            job_id=self._some_job(), mark=results_service_pb2.RUN_MARK_INVALIDATED, reason=f"mark {self.unknown()}"
        )
        if await self.ask(f"mark {request.job_id[-4:]}", self._results.MarkRun, request) is not None:
            self._history.marks.append((request.job_id, int(request.mark), request.reason))

    async def annotate(self) -> None:
        request = results_service_pb2.AnnotateItemRequest(
            job_id=self._some_job(),
            task=_TASKS[0],
            item=self._chance.randrange(400),
            verdict=results_service_pb2.Annotation.VERDICT_WRONG,
            note=f"note {self.unknown()}",
        )
        known = [key for key in self._history.allowed if key[1] == request.task]
        if known:
            request.item = self._chance.choice(known)[2]
        if await self.ask(f"annotate {request.job_id[-4:]}", self._results.AnnotateItem, request) is not None:
            key = (request.job_id, request.task, request.item, request.repeat)
            self._history.annotations.append((key, request.note))

    async def export(self) -> None:
        await self.export_of(self._some_job())

    async def export_of(self, job_id: str) -> bool:
        """Whether it came to its end."""
        request = results_service_pb2.ExportRequest(
            kind=results_service_pb2.ExportRequest.KIND_ITEMS, format=results_service_pb2.ExportRequest.FORMAT_JSONL
        )
        request.items.job_id = job_id
        before = self._history.places[job_id][-1:]
        self._trace(f"user: export {job_id[-4:]}")
        found: list[tuple[str, str, int, int]] = []
        leaves_after = self._chance.choice([1, 100, 100])
        try:
            async for piece in self._results.Export(request, timeout=_TIMEOUT_S, metadata=self._metadata):
                found.append(tuple(json.loads(piece.data)))
                if len(found) == leaves_after:
                    return False
        except grpc.aio.AioRpcError as error:
            self._trace(f"user: export {job_id[-4:]}: {error.code().name} {error.details()}")
            return False
        places = self._history.places[job_id][-1:]
        if before == places and places[0][0] == COMPLETED:
            self._history.exports.append((job_id, places[0], found))
        return True

    async def again(self) -> None:
        """A re-score, or a rerun of what failed, of some job."""
        source = self._some_job()
        if source not in self._history.records:
            return
        spec = job_pb2.JobSpec()
        spec.CopyFrom(self._history.job(source).spec)
        spec.ClearField("reuse")
        spec.ClearField("schedule_id")
        spec.ClearField("priority")
        spec.ClearField("deciding")
        spec.reuse.job_id = source
        if self._chance.random() < 0.5:
            spec.reuse.rerun.append(6)  # type: ignore[arg-type]  # Of items whose calls failed.
        await self.create_of(spec)
