"""Killing processes of a working job at seeded moments, and how long each takes to come back."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.chaos.launched import LAUNCHER, PROCESSES
from tests.chaos.world import Sample, World
from tests.stack import FINISHED
from touchstone.v1 import job_pb2

POLL_S = 0.05
END_TIMEOUT_S = 180.0
ON_ITS_WAY_S = 0.5
"""So long a call may take from the evaluator that made it to the stub's record, where the machine is busy."""
IN_HAND_S = 0.5


@dataclass(frozen=True, slots=True)
class Shot:
    """A kill to come: `target` once `share` of the job's items is done (negative: as soon as the job exists), and
    `delay_s` more, so that it hits any moment of a unit."""

    target: str
    share: float
    delay_s: float


@dataclass(slots=True)
class Kill:
    """A kill that was done. Times are the driver's monotonic seconds."""

    shot: Shot
    at: float
    back_s: float = 0.0
    """Until the process was there again and ready."""


@dataclass(slots=True)
class Run:
    """One job under fire."""

    number: int
    model: str
    job_id: str
    submitted: float
    kills: list[Kill] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    job: job_pb2.Job = field(default_factory=job_pb2.Job)
    seconds: float = 0.0

    async def reaches(self, share: float) -> None:
        """Returns when this share of the items is seen to be done, or the job has ended."""
        async with asyncio.timeout(END_TIMEOUT_S):
            while share > 0 and self.job.state not in FINISHED:
                total = self.job.progress.items_total
                if total and self.job.progress.items_done >= share * total:
                    return
                await asyncio.sleep(0.01)

    def resumed_s(self, kill: Kill) -> float:
        """Seconds from a kill until the job was seen to be further than before it; 0 if it had ended."""
        # What was on its way at that moment still arrives.
        before = max((s.items_done for s in self.samples if s.at <= kill.at + ON_ITS_WAY_S), default=0)
        after = (s.at for s in self.samples if s.at > kill.at and (s.items_done > before or s.state in FINISHED))
        return next(after, kill.at) - kill.at

    def units_released(self, kill: Kill) -> int:
        """The most units that were with evaluators around a kill; while the scheduler is away nobody tells."""
        before = [s for s in self.samples if s.at < kill.at - 2]
        around = [s for s in self.samples if kill.at - 2 <= s.at <= kill.at + 0.5]
        after = [s for s in self.samples if s.at > kill.at + 0.5]
        return max((s.units_released for s in (*before[-1:], *around, *after[:1])), default=0)


def plan(seed: int, jobs: int, kills_per_job: int, targets: Sequence[str] = PROCESSES) -> list[list[Shot]]:
    """The shots of each job, in order; every target about equally often."""
    rng = random.Random(seed)
    count = jobs * kills_per_job
    bag = [targets[i % len(targets)] for i in range(count - count % len(targets))]
    bag += rng.sample(list(targets), count - len(bag))
    rng.shuffle(bag)
    shots: list[list[Shot]] = []
    for job in range(jobs):
        shares = sorted(rng.uniform(-0.05, 0.95) for _ in range(kills_per_job))
        own = bag[job * kills_per_job :][:kills_per_job]
        shots.append([Shot(t, share, rng.uniform(0, 0.2)) for t, share in zip(own, shares, strict=True)])
    return shots


@asynccontextmanager
async def job_under_watch(world: World, number: int, model: str, job_id: str = "") -> AsyncIterator[Run]:
    """Submits a job over all items, unless one is given, and notes its figures; at the end waits until it has ended by
    itself."""
    submitted = time.monotonic()
    run = Run(number, model, job_id or await world.submit(model), submitted)
    watching = asyncio.create_task(_watch(world, run))
    try:
        yield run
        async with asyncio.timeout(END_TIMEOUT_S):
            await watching
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    run.seconds = time.monotonic() - submitted


async def run_under_fire(
    world: World, number: int, model: str, shots: Sequence[Shot], job_id: str = "", *, at_work: bool = False
) -> Run:
    """A job during which everything is killed that the shots name; one over all items, unless one is given. `at_work`:
    only once it serves and has had time to take something in hand, however slowly it starts."""
    returning: list[asyncio.Task[None]] = []
    try:
        async with job_under_watch(world, number, model, job_id) as run:
            for shot in shots:
                await run.reaches(shot.share)
                if at_work:
                    await world.launched.until_ready(shot.target)
                    await asyncio.sleep(IN_HAND_S)
                await asyncio.sleep(shot.delay_s)
                old = await world.launched.kill(shot.target)
                kill = Kill(shot, time.monotonic())
                run.kills.append(kill)
                returning.append(asyncio.create_task(come_back(world, kill, old)))
                if shot.target == LAUNCHER:
                    await world.launched.start()
        await asyncio.gather(*returning)
    finally:
        for task in returning:
            task.cancel()
        await asyncio.gather(*returning, return_exceptions=True)
    return run


async def _watch(world: World, run: Run) -> None:
    while run.job.state not in FINISHED:
        job = await world.job(run.job_id)
        if job is not None:
            run.job = job
            progress = job.progress
            run.samples.append(Sample(time.monotonic(), job.state, progress.items_done, progress.units_released))
        await asyncio.sleep(POLL_S)


async def come_back(world: World, kill: Kill, old: int) -> None:
    """Notes when the successor of a killed process is ready."""
    launched = world.launched
    if kill.shot.target == LAUNCHER:
        await launched.until_ready()
    else:
        await launched.replaced(kill.shot.target, old)
        await launched.until_ready(kill.shot.target)
    kill.back_s = time.monotonic() - kill.at


def report(seed: int, runs: Sequence[Run]) -> str:
    """A line per kill, then median and longest recovery per target."""
    lines = [f"seed {seed}: seconds until the process is ready again, and until its job is seen to go on"]
    by_target: dict[str, list[tuple[float, float]]] = {}
    for run in runs:
        for kill in run.kills:
            resumed = run.resumed_s(kill)
            by_target.setdefault(kill.shot.target, []).append((kill.back_s, resumed))
            lines.append(
                f"  job {run.number}  {kill.shot.share:6.1%}  {kill.at - run.submitted:5.1f} s  "
                f"{kill.shot.target:11}  ready {kill.back_s:5.2f}  goes on {resumed:5.2f}"
            )
        lines.append(f"  job {run.number} ended after {run.seconds:.1f} s")
    lines.append("  target       kills  ready: median    max  goes on: median    max")
    for target, times in sorted(by_target.items()):
        back, resumed_all = zip(*times, strict=True)
        lines.append(
            f"  {target:11}  {len(times):5}  {statistics.median(back):13.2f}  {max(back):5.2f}"
            f"  {statistics.median(resumed_all):15.2f}  {max(resumed_all):5.2f}"
        )
    return "\n".join(lines)
