"""One job through the whole stack, timed from `POST /run` to `completed`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import processes
from benchmarks.endpoint import MODEL
from tests.stack import FINISHED, Stack
from touchstone.v1 import job_pb2, scheduler_service_pb2

ENDPOINT = "bench"
WAIT_S = 600.0


@dataclass(frozen=True, slots=True)
class Run:
    """Seconds from sending `POST /run`: until the job's data was read and its units could go out (`running_s`), and
    until it was completed, which means that every item is durable (`wall_s`). Both as the job's record has them, by the
    clock of this same machine.

    `cpu_s` is user and system time of each process of the stack meanwhile.
    """

    job_id: str
    items: int
    running_s: float
    wall_s: float
    cpu_s: Mapping[str, float]

    @property
    def cpu_us(self) -> dict[str, float]:
        """Microseconds an item, by process."""
        return {name: 1e6 * seconds / self.items for name, seconds in self.cpu_s.items()}


@contextmanager
def stack(
    folder: Path, url: str, data_dir: Path, *, concurrency: int, evaluators: int = 1, **environment: str
) -> Iterator[Stack]:
    """The launcher's processes with one endpoint, called with `concurrency` calls at once by each evaluator."""
    table: dict[str, str | int | float | bool] = {
        "name": ENDPOINT,
        "kind": "openai",
        "base_url": url,
        "concurrency": concurrency,
    }
    built = Stack(folder, [table], data_dir, evaluators=evaluators, environment=environment)
    try:
        yield built.start()
    finally:
        built.stop()


def run(on: Stack, items: int, suite: str, **body: Any) -> Run:
    """Raises AssertionError unless the job completes with every item stored."""
    children = processes.pids(on.state_dir)
    before = {name: processes.cpu_s(pid) for name, pid in children.items()}
    started = time.time()
    job_id = on.run(ENDPOINT, MODEL, suite, **body)
    # Watched and not asked again and again, which would take from what is measured.
    request = scheduler_service_pb2.WatchJobRequest(job_id=job_id)
    any(update.job.state in FINISHED for update in on.scheduler.WatchJob(request, timeout=WAIT_S))
    job = on.wait(job_id, WAIT_S)
    assert job.state == job_pb2.Job.STATE_COMPLETED, f"{job.reason}\n{on.tails()}"
    assert job.progress.items_done == items, f"{job.progress.items_done} of {items} items"
    used = {name: processes.cpu_s(pid) - before[name] for name, pid in children.items()}
    running_s, wall_s = (at.ToNanoseconds() / 1e9 - started for at in (job.started_at, job.finished_at))
    return Run(job_id, items, running_s, wall_s, used)
