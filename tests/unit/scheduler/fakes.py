"""The scheduler's ports in memory, and a registry wired with them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from services.bus import KIND_ITEMS, KIND_RETURNED, DamagedError, ResultHeaders
from services.errors import ConflictError, NotFoundError, UnavailableError
from services.rpc import Identity
from services.scheduler.jobs.fleet import Fleet
from services.scheduler.jobs.job import Job
from services.scheduler.lifecycle.job_registry import JobRegistry
from services.scheduler.lifecycle.scheduler import Scheduler
from services.scheduler.ports import Change, LeadershipLostError, Told
from services.scheduler.requests.experiments import Experiments
from services.scheduler.requests.job_requests import Desk
from services.scheduler.requests.visibility import Reads
from services.scheduler.schedules.schedules import Timetable
from services.scheduler.schedules.watches import Watches
from services.scheduler.settings import Limits
from services.words.jobs import LIVE
from touchstone.v1 import (
    dataset_pb2,
    decision_pb2,
    digest_pb2,
    endpoint_pb2,
    evaluator_pb2,
    job_pb2,
    job_record_pb2,
    metric_pb2,
    results_service_pb2,
    schedule_pb2,
    scoring_pb2,
    suite_pb2,
    token_pb2,
    unit_pb2,
    watch_pb2,
)

DATASET = f"ds_{'a' * 32}"

ALICE = Identity("alice", token_pb2.ROLE_USER)
BOB = Identity("bob", token_pb2.ROLE_USER)
ADMIN = Identity("root", token_pb2.ROLE_ADMIN)


class FakeStore:
    """Keeps serialised records, as the bucket does."""

    def __init__(self) -> None:
        self.records: dict[str, bytes] = {}
        self.events: list[job_pb2.JobEvent] = []
        self.requests: dict[tuple[str, str], list[str]] = {}
        self.pending: dict[str, int] = {}
        self.floor = 0
        self.fenced = False

    async def commit(self, changes: Sequence[Change], pending_by_owner: dict[str, int]) -> None:
        if self.fenced:
            raise LeadershipLostError("fenced")
        await asyncio.sleep(0)
        made: dict[tuple[str, str], list[str]] = {}
        for change in changes:
            self.records[change.job.id] = change.job.record().SerializeToString()
            if change.event is not None:
                event = job_pb2.JobEvent()
                event.CopyFrom(change.event)
                self.events.append(event)
                self.pending[change.job.message.owner] = pending_by_owner.get(change.job.message.owner, 0)
                if change.event.action == "created" and change.job.request_id:
                    made.setdefault((change.job.message.owner, change.job.request_id), []).append(change.job.id)
        self.requests |= made

    async def forget(self, job: Job) -> None:
        del self.records[job.id]

    async def set_floor(self, sequence: int) -> None:
        self.floor = sequence

    async def find_request(self, owner: str, request_id: str) -> Sequence[str]:
        return self.requests.get((owner, request_id), [])

    async def last_told(self, job_id: str) -> job_pb2.JobEvent | None:
        told = [event for event in self.events if event.job.job_id == job_id]
        return told[-1] if told else None

    async def tell(self, event: job_pb2.JobEvent) -> None:
        if self.fenced:
            raise LeadershipLostError("NATS is away")
        self.events.append(event)

    def jobs(self) -> list[Job]:
        return [Job.load(job_record_pb2.JobRecord.FromString(data)) for data in self.records.values()]


class FakeSchedules:
    """Keeps serialised schedules, as the bucket does; `crash` makes the next write one that never comes back."""

    def __init__(self) -> None:
        self.records: dict[str, bytes] = {}
        self.crash = False

    async def load(self) -> list[schedule_pb2.Schedule]:
        return [schedule_pb2.Schedule.FromString(data) for data in self.records.values()]

    async def put(self, schedule: schedule_pb2.Schedule) -> None:
        if self.crash:
            raise LeadershipLostError("crashed")
        self.records[schedule.schedule_id] = schedule.SerializeToString()

    async def remove(self, schedule_id: str) -> None:
        del self.records[schedule_id]


class FakeWork:
    """WORK and the end of RESULTS."""

    def __init__(self) -> None:
        self.offered: dict[tuple[str, int], unit_pb2.Unit] = {}
        self.log: list[tuple[str, int]] = []
        self.position = 0
        self.unread: list[Told] = []
        self.full = False

    async def release(self, endpoint: str, priority: int, unit: unit_pb2.Unit) -> bool:
        key = (unit.job_id, unit.unit)
        if key in self.offered:
            return False
        self.offered[key] = unit
        self.log.append(key)
        return True

    async def withdraw(self, job_id: str) -> None:
        for key in [key for key in self.offered if key[0] == job_id]:
            del self.offered[key]

    async def released(self) -> set[tuple[str, int]]:
        return set(self.offered)

    async def close(self, job_id: str, attempt: int, units: Sequence[int], after: int) -> Sequence[Told]:
        """`unread` is what RESULTS has and the scheduler has not followed yet."""
        await asyncio.sleep(0)
        if self.full:
            return []
        for unit in units:
            self.position += 1
            headers = ResultHeaders(kind=KIND_RETURNED, attempt=attempt, delivery=0, counted=True)
            self.unread.append(Told(unit, headers, self.position))
        told, self.unread = self.unread, []
        return [one for one in told if one.sequence > after]

    async def results_position(self) -> int:
        return self.position


class FakeDatasets:
    """Manifests by dataset id; `down` makes the store silent, `damaged` ones cannot be read."""

    def __init__(self) -> None:
        self.manifests: dict[str, dataset_pb2.DatasetManifest] = {}
        self.down = False
        self.damaged: set[str] = set()

    def put(self, dataset_id: str = DATASET, **fields: object) -> dataset_pb2.Dataset:
        known: dict[str, object] = {"name": "rows.jsonl", "rows": 100, "digest": f"digest of {dataset_id}"}
        made = dataset_pb2.Dataset(dataset_id=dataset_id, **(known | fields))  # type: ignore[arg-type]
        self.manifests[dataset_id] = dataset_pb2.DatasetManifest(dataset=made)
        return made

    async def get_manifest(self, dataset_id: str) -> dataset_pb2.DatasetManifest | None:
        if self.down:
            raise UnavailableError("NATS does not answer.")
        if dataset_id in self.damaged:
            raise DamagedError("It cannot be read whole.")
        return self.manifests.get(dataset_id)


class FakeResults:
    """The results service; `down` makes it silent."""

    def __init__(self) -> None:
        self.down = False
        self.missing = 0
        self.errors = 0
        self.have: dict[str, set[int]] = {}
        self.sealed: list[str] = []
        self.old: dict[str, job_pb2.Job] = {}
        """Jobs that the scheduler has forgotten."""
        self.results: dict[str, metric_pb2.JobResult] = {}
        self.imports: dict[str, results_service_pb2.GetImportResponse] = {}
        self.prepared: list[job_pb2.Judging] = []
        self.experiments: dict[str, dataset_pb2.Dataset] = {}
        """By name."""
        self.decision = decision_pb2.Decision()
        self.canaries = range(4)
        self.looks: list[tuple[object, ...]] = []
        """Jobs of decisions that were looked at, and up to which position."""

    async def seal(self, job: job_pb2.Job, sequence: int) -> results_service_pb2.SealJobResponse:
        if self.down:
            raise UnavailableError("results is down")
        self.sealed.append(job.job_id)
        return results_service_pb2.SealJobResponse(missing=self.missing, infrastructure_errors=self.errors)

    async def stored(self, job_id: str, sequence: int) -> dict[str, set[int]]:
        if self.down:
            raise UnavailableError("results is down")
        return self.have

    async def live(self) -> list[job_pb2.Job]:
        if self.down:
            raise UnavailableError("results is down")
        return [job for job in self.old.values() if job.state in LIVE]

    async def imported(self, import_id: str) -> results_service_pb2.GetImportResponse:
        if self.down:
            raise UnavailableError("results is down")
        if import_id not in self.imports:
            raise NotFoundError(f"Import {import_id} not found")
        return self.imports[import_id]

    async def prepare_judging(self, judging: job_pb2.Judging) -> dataset_pb2.Dataset:
        if self.down:
            raise UnavailableError("results is down")
        made = job_pb2.Judging(repeats=1)
        made.MergeFrom(judging)
        scoring = scoring_pb2.Scoring(scorer="judgement", rubric=judging.rubric)
        dataset = dataset_pb2.Dataset(dataset_id=DATASET, name="rows", rows=100, scoring=scoring, judging=made)
        self.prepared.append(made)
        return dataset

    async def prepare_experiment(self, owner: str, definition: str, check_only: bool = False) -> dataset_pb2.Dataset:
        """Kept under a name as long as nothing but models and limits differs."""
        await asyncio.sleep(0)
        if self.down:
            raise UnavailableError("results is down")
        value = json.loads(definition)
        name, models = value.pop("name"), value.pop("models")
        for one in ("max_model_b", "max_judge_b", "budget_usd", "priority"):
            value.pop(one, None)
        source = dataset_pb2.ExperimentSource(name=name, definition=json.dumps(value))
        made = self.experiments.get(name)
        if made is not None and made.experiment != source:
            raise ConflictError(f"Experiment {name} has other rows.")
        if made is None and check_only:
            return dataset_pb2.Dataset()
        assert models
        dataset_id = f"ds_{len(self.experiments) + 1:032}"
        rows = len(value["prompts"]) * 2 * value["repeats"]
        known = {"name": "rows.jsonl", "rows": rows, "digest": f"digest of {dataset_id}"}
        made = made or dataset_pb2.Dataset(dataset_id=dataset_id, owner=owner, experiment=source, **known)
        return self.experiments.setdefault(name, made)

    async def jobs_over(self, dataset_id: str) -> list[job_pb2.Job]:
        await asyncio.sleep(0)
        if self.down:
            raise UnavailableError("results is down")
        return [job for job in self.old.values() if job.spec.dataset.dataset_id == dataset_id]

    async def evidence(self, jobs: Sequence[job_pb2.Job], sequence: int) -> decision_pb2.Decision:
        if self.down:
            raise UnavailableError("results is down")
        self.looks.append((*(job.job_id for job in jobs), sequence))
        return self.decision

    async def choose_canaries(self, watching: job_pb2.Watching, owner: str) -> job_pb2.Watching:
        if self.down:
            raise UnavailableError("results is down")
        chosen = job_pb2.Watching()
        chosen.CopyFrom(watching)
        chosen.canaries.extend(job_pb2.Canary(task="one", item=item) for item in self.canaries)
        chosen.total = len(chosen.canaries)
        return chosen

    async def alarm(self, job_id: str) -> watch_pb2.Watch | None:
        return None

    async def ended_decision(self, job_id: str) -> decision_pb2.Decision | None:
        return None

    async def digest(self, request: results_service_pb2.GetDigestRequest, owner: str) -> digest_pb2.Digest:
        return digest_pb2.Digest()

    async def result(self, job_id: str) -> metric_pb2.JobResult:
        if self.down:
            raise UnavailableError("results is down")
        return self.results.get(job_id, metric_pb2.JobResult(job_id=job_id))

    async def job(self, job_id: str) -> job_pb2.Job:
        if self.down:
            raise UnavailableError("results is down")
        if job_id not in self.old:
            raise NotFoundError(f"Benchmark job {job_id} not found")
        return self.old[job_id]


def evaluator(
    name: str = "e1", endpoint: str = "stub", concurrency: int = 8, exclusive: bool = False
) -> evaluator_pb2.Evaluator:
    tasks = [
        suite_pb2.TaskInfo(task=task, title=task.upper(), modes=[suite_pb2.MODE_GENERATE], published_items=100)
        for task in ("one", "two")
    ]
    return evaluator_pb2.Evaluator(
        evaluator=name,
        endpoints=[
            endpoint_pb2.Endpoint(
                endpoint=endpoint,
                kind="openai",
                state=endpoint_pb2.Endpoint.STATE_REACHABLE,
                concurrency=concurrency,
                exclusive=exclusive,
                models=[endpoint_pb2.Model(model="m")],
            )
        ],
        suites=[suite_pb2.Suite(suite="demo", title="Demo", tasks=tasks)],
    )


def spec(endpoint: str = "stub", priority: job_pb2.Priority | None = None) -> job_pb2.JobSpec:
    made = job_pb2.JobSpec(endpoint=endpoint, model="m", suite=job_pb2.SuiteWork(suite="demo"))
    if priority is not None:
        made.priority = priority
    return made


def dataset_spec(dataset_id: str = DATASET, **work: object) -> job_pb2.JobSpec:
    asked = job_pb2.DatasetWork(dataset_id=dataset_id, **work)  # type: ignore[arg-type]
    return job_pb2.JobSpec(endpoint="stub", model="m", dataset=asked)


def plan(items: int = 100, unit_size: int = 10, tasks: Sequence[str] = ("one", "two")) -> unit_pb2.Plan:
    return unit_pb2.Plan(
        tasks=[
            job_pb2.TaskPlan(task=t, items=items, unit_size=unit_size, item_set=f"{t}-set", published_items=100)
            for t in tasks
        ],
        receipt=job_pb2.Receipt(configuration="c"),
    )


class World:
    """A scheduler over fakes, with a clock that the test moves."""

    def __init__(
        self, limits: Limits | None = None, store: FakeStore | None = None, reads: Reads | None = None
    ) -> None:
        self.time = 1_000.0
        self.wrong_by = 0.0
        """Seconds that the clock on the wall is ahead of the right time."""
        self.limits, self.reads = limits or Limits(), reads or Reads()
        self.store, self.work, self.results = store or FakeStore(), FakeWork(), FakeResults()
        self.schedules, self.datasets = FakeSchedules(), FakeDatasets()
        self.lead()

    def lead(self) -> None:
        """A new leadership over the same store and streams, as after a crash."""
        self.fleet = Fleet(self.limits.absent_after_s)
        self._events = 0
        self.registry = JobRegistry(
            self.store, self.work, self.datasets, self.fleet, self.limits, lambda: self.time, self._event_id
        )
        self.scheduler = Scheduler(self.registry, self.results)
        self.desk = Desk(self.registry, self.results, self.reads)
        self.experiments = Experiments(self.registry, self.results, self.desk)
        self.timetable = Timetable(
            self.registry, self.desk, self.schedules, self.reads, lambda: self.time + self.wrong_by
        )
        self.watches = Watches(self.desk, self.results, self.timetable)
        self.runner: asyncio.Task[None] | None = None

    def _event_id(self) -> str:
        self._events += 1
        return f"{self._events:08d}"

    async def start(self) -> None:
        self.runner = asyncio.create_task(self.scheduler.run())
        self.registry.wake.set()
        await self.settle()

    async def stop(self) -> None:
        if self.runner is not None:
            self.runner.cancel()
            await asyncio.gather(self.runner, return_exceptions=True)

    def running_timetable(self) -> asyncio.Task[None]:
        return asyncio.create_task(self.timetable.run())

    async def end(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        await asyncio.wait({task})

    async def look(self) -> None:
        """Lets the scheduler look at the clock, as it does twice a second."""
        await asyncio.sleep(0.6)
        await self.settle()

    async def settle(self) -> None:
        """Lets everything that is ready happen."""
        for _ in range(60):
            await asyncio.sleep(0)

    async def create(self, who: Identity = ALICE, request_id: str = "", **kwargs: object) -> str:
        job = await self.desk.create(who, request_id, spec(**kwargs))  # type: ignore[arg-type]
        await self.settle()
        return job.job_id

    async def planned(self, job_id: str, made: unit_pb2.Plan | None = None) -> None:
        self.work.offered.pop((job_id, -1), None)
        self.work.position += 1
        attempt = self.registry.jobs[job_id].message.attempt
        await self.scheduler.on_plan(job_id, attempt, made or plan(), self.work.position)
        await self.settle()

    def report(self, job_id: str, unit: int, *, items: int, done: bool, delivery: int = 1, failed: int = 0) -> None:
        self.work.position += 1
        headers = ResultHeaders(
            kind=KIND_ITEMS,
            attempt=self.registry.jobs[job_id].message.attempt,
            delivery=delivery,
            items=items,
            errors=failed,
            done=done,
        )
        self.scheduler.on_items(job_id, unit, headers, self.work.position)
        if done:
            self.work.offered.pop((job_id, unit), None)

    async def run_all(self, job_id: str) -> int:
        """Answers every released unit until none is left; returns how many there were."""
        count = 0
        while True:
            mine = [(u, unit) for (j, u), unit in self.work.offered.items() if j == job_id and u >= 0]
            if not mine:
                return count
            for number, unit in mine:
                self.report(job_id, number, items=len(unit.positions) or unit.stop - unit.start, done=True)
                count += 1
            await self.settle()

    def state(self, job_id: str) -> str:
        return job_pb2.Job.State.Name(self.desk.get(job_id).state).removeprefix("STATE_").lower()
