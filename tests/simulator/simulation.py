"""One simulation: a seed draws the installation, its users and its faults, and in the end everything is checked."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from grpc import StatusCode

from tests.simulator import dataset_checks, decisions, experiments, memory_store, worlds
from tests.simulator.calls import Wires
from tests.simulator.checks import Database, World, violations
from tests.simulator.dataset_checks import Store, untidy
from tests.simulator.dataset_history import Datasets
from tests.simulator.dataset_users import DatasetUsers
from tests.simulator.decisions import Decisions, DecisionUsers
from tests.simulator.experiments import Experiments, ExperimentUsers
from tests.simulator.faults import Faults, Weather
from tests.simulator.history import ENDED, History, name
from tests.simulator.jetstream import FakeServer
from tests.simulator.judges import Judges, JudgeUsers
from tests.simulator.kinds import APART, has_datasets, has_decisions, has_experiments, has_judges, has_races
from tests.simulator.loop import SimLoop, SimulationError
from tests.simulator.model import Models
from tests.simulator.processes import CALLS, STANDBY, Installation, evaluator, replaced, results, scheduler
from tests.simulator.promises import Promises
from tests.simulator.receivers import Receivers
from tests.simulator.users import Users

_OPERATIONS_S = 60.0
_END_S = 240.0
"""Virtual seconds within which every job ends once there are no more faults."""
_EXPORTS = 10
"""Of the last job, some of which end early."""
_WITH_PLANS, _REFUSED, _FEW_SLOW = 0.3, 0.03, 0.05
"""Of worlds with decisions, the share with schedules in any case, the share of calls that some refuse for good, and of
calls that are slow."""
_WITH_GAPS, _GAPS = 0.7, 0.04
"""The share of these in which items stay without an answer at first, and of such calls: their jobs run again after they
were judged."""
_MOST_STEPS = 400_000
_TRACED = 60


@dataclass
class Outcome:
    """How a simulation went. `broken` are invariants in words; `trace` its last steps."""

    seed: int
    broken: list[str]
    trace: list[str]
    steps: int
    seconds: float
    states: dict[str, int] = field(default_factory=dict)

    @property
    def digest(self) -> int:
        """Equal for equal runs."""
        return hash(tuple(self.trace)) ^ self.steps


class Simulation:
    """The world of one seed."""

    def __init__(self, seed: int, loop: SimLoop, chance: Random, verbose: bool) -> None:
        self.seed, self.loop, self.chance = seed, loop, chance
        self._verbose = verbose
        self.trace: deque[str] = deque(maxlen=None if verbose else _TRACED)
        self.history = History()
        self.weather = Weather.draw(chance)
        self.nats = FakeServer(loop, self._delay, chance.randrange)
        self.nats.on_stored, self.nats.on_delivered = self._stored, self._delivered
        self.wires = Wires(loop, self._delay, self._breaks)
        self.wires.fails = self._fails
        self.models = Models(chance, chance.choice([0.0, 0.0, 0.05]), chance.choice([0.0, 0.0, 0.1, 0.6]))
        self.installation = Installation(loop, self.nats, self.wires, self.models, chance)
        self.installation.trace = self.note
        self.on_disk = memory_store.Stored()
        self.receivers = Receivers(chance)
        self.promises = Promises(self.history, self.nats, self.receivers)
        self.history.failures_are_injected = self.weather.fails > 0
        self.plans = chance.random() < 0.2 or (has_decisions(seed) and Random(seed + 7 * APART).random() < _WITH_PLANS)
        self.datasets = Datasets(self.history) if has_datasets(seed) else None
        self.experimenters: ExperimentUsers | None = None
        self.experiments = Experiments(self.history) if has_experiments(seed) else None
        self.judges = Judges(self.history) if has_judges(seed) else None
        self.decisions = Decisions(self.history) if has_decisions(seed) else None
        self.history.made_rows = lambda dataset_id: self.on_disk.tables.datasets[dataset_id][0].rows
        self._set_clock()

    def _wall(self) -> float:
        return self.loop.wall + self.loop.ahead

    def _set_clock(self) -> None:
        """Notes what the clock shows before and after it is set."""
        self.history.earliest = min(self.history.earliest, self._wall())
        self.history.latest = max(self.history.latest, self._wall())

    def note(self, line: str) -> None:
        line = f"{self.loop.time() - 1000:9.4f}  {line}"
        self.trace.append(line)
        if self._verbose:
            print(line)

    def _delay(self) -> float:
        return self.chance.uniform(0.0001, self.weather.slowest)

    def _breaks(self) -> bool:
        return self.weather.breaks > 0 and self.chance.random() < self.weather.breaks

    def _fails(self) -> StatusCode | None:
        if self.weather.fails and self.chance.random() < self.weather.fails:
            return self.chance.choice([StatusCode.INTERNAL, StatusCode.UNAVAILABLE])
        return None

    def _stored(self, stream: Any, message: Any) -> None:
        before = len(self.history.places)
        self.history.stored(stream, message)
        if self.decisions is not None:
            self.decisions.stored(stream, message)
        if stream.name == "KV_JOBS" and message.subject.startswith("$KV.JOBS.job."):
            job_id = message.subject.removeprefix("$KV.JOBS.job.")
            state, attempt = self.history.places[job_id][-1]
            if self.datasets is not None:
                self.datasets.moved(job_id, (state, attempt), self._store().is_unmarked)
            if self.experiments is not None:
                self.experiments.moved(job_id)
            if self.judges is not None:
                self.judges.moved(job_id)
            self.note(f"stored: job {job_id[-4:]} is {name(state)} ({attempt}.){' new' if before == 0 else ''}")

    def _called(self, faults: Faults, seed: int) -> None:
        if self.decisions is not None and faults.is_calm():
            self.decisions.called(seed)

    def _delivered(self, subject: str, reply: str, data: bytes) -> None:
        unit = self.history.delivered(subject, reply, data)
        if unit is not None and self.decisions is not None:
            self.decisions.delivered(unit)

    async def run(self) -> Outcome:
        names = self._start()
        faults = Faults(
            self.loop,
            self.chance,
            self.nats,
            self.installation,
            self.weather,
            names,
            self._set_clock if self.plans else None,
        )
        users = Users(self.wires, self.chance, self.history, self.note, plans=self.plans, wall=self._wall)
        uploaders: DatasetUsers | None = None
        deciding: DecisionUsers | None = None
        if self.datasets is not None:
            uploaders = DatasetUsers(self.wires, self.chance, users, self.datasets)
            users.more, users.begin = uploaders.operations, uploaders.begin
            names += ["results"] * 2
        if self.experiments is not None and uploaders is not None:
            self.experimenters = ExperimentUsers(self.wires, self.chance, users, self.experiments)
            with_datasets, with_experiments = uploaders.operations, self.experimenters.operations
            users.more, users.begin = lambda: with_datasets() + with_experiments(), self.experimenters.run
        if self.judges is not None:
            judging, others = JudgeUsers(self.chance, users, self.judges), users.more
            users.more, users.begin = lambda: others() + judging.operations(), judging.begin
        if self.judges is not None and Random(self.seed + 4 * APART).random() < _WITH_GAPS:
            self.models.refusing = _GAPS
        if self.decisions is not None:
            self.models.slow = min(self.models.slow, _FEW_SLOW)
            self.models.heard = partial(self._called, faults)
            self.decisions.evaluators = sum(each.startswith("e") for each in names)
            self.decisions.calls = CALLS * self.decisions.evaluators
            deciding = DecisionUsers(self.chance, users, self.decisions, races=has_races(self.seed))
            more = users.more
            users.more, users.begin = lambda: more() + deciding.operations(), deciding.begin
            self.models.refusing = _REFUSED if Random(self.seed + 6 * APART).random() < 0.3 else 0.0
        await self._busy(faults, users)
        faults.calm()
        self.models.refusing = 0.0
        broken = await self._decided(faults, deciding) or await self._quiet(users, uploaders)
        self.installation.restarting = False
        broken += violations(self._world(faults))
        if self.datasets is not None and not broken:
            broken += dataset_checks.violations(self.datasets, self._store())
        if self.decisions is not None and not broken:
            broken += self.decisions.violations(self.on_disk, undisturbed=not faults.made)
        return self.outcome(broken)

    def outcome(self, broken: list[str]) -> Outcome:
        states: dict[str, int] = {}
        for places in self.history.places.values():
            states[name(places[-1][0])] = states.get(name(places[-1][0]), 0) + 1
        return Outcome(self.seed, broken, list(self.trace), self.loop.steps, self.loop.time() - 1000, states)

    def _start(self) -> list[str]:
        evaluators = ["e1", "e2"][: self.chance.choice([1, 1, 2])]
        self.installation.add("results", results())
        self.installation.add("scheduler", scheduler("s1"))
        for each in evaluators:
            self.installation.add(each, evaluator(each, self.models))
        names = ["scheduler", "scheduler", "results", *evaluators]
        if self.chance.random() < 0.2:
            self.installation.add("standby", scheduler("s2", STANDBY))
            names.append("standby")
        return names

    async def _busy(self, faults: Faults, users: Users) -> None:
        """Operations and faults side by side."""
        await asyncio.sleep(self.chance.uniform(0.0, 2.0))

        async def operate() -> None:
            for _ in range(self.chance.randint(1, 5)):
                await users.one()
                await asyncio.sleep(self.chance.choice([0.0, 0.1, 0.5, 1.0]))

        async def disturb() -> None:
            for _ in range(self.chance.randint(0, 5)):
                await asyncio.sleep(self.chance.uniform(0.0, 2.0))
                await faults.one()

        await users.begin()
        tasks = [asyncio.create_task(work()) for work in [operate] * self.chance.randint(1, 2) + [disturb]]
        done = asyncio.gather(*tasks)
        broken = asyncio.create_task(self.installation.broken.wait())
        either: set[asyncio.Future[Any]] = {done, broken}
        await asyncio.wait(either, timeout=_OPERATIONS_S, return_when=asyncio.FIRST_COMPLETED)
        done.cancel()
        broken.cancel()
        for task in tasks:
            if task.done() and not task.cancelled():
                task.result()
            task.cancel()

    async def _decided(self, faults: Faults, deciding: DecisionUsers | None) -> list[str]:
        """Starts one more decision, where there are decisions, when nothing goes wrong any more; what goes wrong."""
        if deciding is None:
            return []
        while not faults.is_calm():
            if self.installation.ended:
                return []
            await asyncio.sleep(0.5)
        return [] if await deciding.last() else ["no decision can be started any more"]

    async def _quiet(self, users: Users, uploaders: DatasetUsers | None) -> list[str]:
        """Has one more job run, over a new dataset where there are datasets, and waits until everything has ended; what
        goes wrong."""
        if self.installation.ended:
            return []
        dataset_id, spec = "", None
        if uploaders is not None:
            dataset_id = await uploaders.last()
            if not dataset_id:
                return ["no dataset can be uploaded any more"]
            spec = uploaders.spec(dataset_id)
        last = self.history.last_job = await users.last(spec)
        if not last:
            return ["no job can be created any more"]
        for _ in range(_EXPORTS):
            # A schedule may have come due meanwhile.
            if not await self._rest(users):
                return self._restless()
            if self.history.live() or await users.export_of(last):
                break
        else:
            return [f"job {last} cannot be exported"]
        if uploaders is not None and not await uploaders.delete_last(dataset_id):
            return [f"dataset {dataset_id} cannot be deleted"]
        if not await self._rest(users):
            return self._restless()
        if self.experimenters is not None and (left := await self.experimenters.last(partial(self._rest, users))):
            return [left]
        if not self.plans and not await users.delete_last():
            return ["no job can be deleted any more"]
        return [] if await self._rest(users) else self._restless()

    async def _rest(self, users: Users) -> bool:
        """Waits until everything has ended; whether it has within the time. After half of it, schedules end: decisions
        may take longer than the minute after which others come due."""
        until, last_call = self.loop.time() + _END_S, self.loop.time() + _END_S / 2
        while self._unfinished():
            if self.installation.ended or self.history.broken or self.loop.time() > until:
                return False
            if self.loop.time() > last_call:
                last_call = until
                await users.end_schedules()
            await asyncio.sleep(0.5)
        return True

    def _restless(self) -> list[str]:
        if self.installation.ended or self.history.broken:
            return []
        return [f"after {_END_S:.0f} quiet seconds: {self._unfinished()}"]

    def _unfinished(self) -> str:
        """What is still to come, in words; empty at the end."""
        if self.history.live():
            return f"job {self.history.live()[0]} is live"
        audit = self.nats.streams.get("AUDIT")
        stored = self.on_disk.positions.get("AUDIT")
        if audit is not None and audit.last and (stored is None or stored.sequence < audit.last):
            return "the trail is not stored"
        result = self.nats.streams.get("RESULTS")
        stored = self.on_disk.positions.get("RESULTS")
        if result is not None and result.last and (stored is None or stored.sequence < result.last):
            return "results are not stored"
        if self.nats.streams["WORK"].messages:
            return "units are left"
        for job_id in self.history.records.keys() - self.history.deleted:
            job = self.history.job(job_id)
            rows = sum(key[0] == job_id for key in self.on_disk.items)
            if job.plan and job.state in ENDED and job.progress.items_done != rows:
                return f"the counts of job {job_id} are not settled"
        if sum(s.startswith("$KV.JOBS.outbox.") for s in self.nats.streams["KV_JOBS"].by_subject) and not all(
            "KV-Operation" in (self.nats.streams["KV_JOBS"].last_matching(s) or _Nothing).headers
            for s in self.nats.streams["KV_JOBS"].by_subject
            if s.startswith("$KV.JOBS.outbox.")
        ):
            return "events wait in the outbox"
        if self.datasets is not None and (left := untidy(self._store(), self.on_disk.tables)):
            return left
        if self.experiments is not None and (left := next(self.experiments.missing(), "")):
            return left
        if self.judges is not None and (left := next(self.judges.missing(), "")):
            return left
        return next(self.promises.deliveries(), "") or next(self.promises.schedules(self._wall()), "")

    def _store(self) -> Store:
        return Store(self.nats.streams["OBJ_DATASETS"])

    def _world(self, faults: Faults) -> World:
        disk = self.on_disk
        database = Database(
            items={key: item.outcome for key, (_, item) in disk.items.items()},
            jobs={job_id: job for job_id, (_, job) in disk.jobs.items()},
            events=disk.events,
            marks=[(row["job_id"], row["mark"], row["reason"]) for row in disk.marks],
            annotations=[
                ((row["job_id"], row["task"], row["item"], row["repeat"]), row["note"]) for row in disk.annotations
            ],
        )
        self._set_clock()
        owed = [*self.promises.deliveries(), *self.promises.schedules(self._wall())]
        return World(self.history, self.nats, database, self.models, faults.kills, self.installation.ended, owed)


class _Nothing:
    headers: dict[str, str] = {}  # noqa: RUF012


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Without collections in the middle, whose moment would depend on what ran before."""
    gc.disable()
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        gc.enable()
        logging.disable(logging.NOTSET)


def simulate(seed: int, *, verbose: bool = False) -> Outcome:
    """Runs the simulation of a seed. The same seed gives the same run, under one PYTHONHASHSEED."""

    with _undisturbed(), worlds.sim_loop(seed, most_steps=_MOST_STEPS) as (loop, chance):
        simulation = Simulation(seed, loop, chance, verbose)
        with_logs, brief = chance.random() < 0.05, chance.random() < 0.95
        with (
            memory_store.installed(simulation.on_disk, with_datasets=simulation.datasets is not None),
            experiments.installed() if simulation.experiments or simulation.judges else nullcontext(),
            decisions.installed() if simulation.decisions else nullcontext(),
            replaced(
                simulation.nats, simulation.wires, with_logs=with_logs, brief=brief, caller=simulation.receivers.caller
            ),
        ):
            try:
                return loop.run_until_complete(simulation.run())
            except SimulationError as error:
                return simulation.outcome([str(error)])


def report(outcome: Outcome) -> str:
    """What to print of a failed run."""
    lines: Sequence[str] = [
        f"seed {outcome.seed}: {outcome.broken[0]}",
        *(f"    also: {each}" for each in outcome.broken[1:6]),
        *(f"    {line}" for line in outcome.trace),
        f"Replay it with: make simulate SEED={outcome.seed}",
    ]
    return "\n".join(lines)
