"""Jobs as REST and pages both read them: status words, ids, times, and how a job is run again.

`following` keeps the newest state of one job up to date while somebody looks at it.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from services import rpc
from services.errors import InvalidRequestError, NotFoundError, TouchstoneError, UnavailableError
from services.gateway.access.limits import Streams
from services.gateway.backend import Backend
from services.words.jobs import is_finished, suite_of
from services.words.times import iso as iso
from services.words.times import moment as moment
from touchstone.v1 import item_result_pb2, job_pb2, metric_pb2, results_service_pb2, scheduler_service_pb2

_BENCHMARK = re.compile(r"bm_[0-9a-fA-F]{32}")
_DATASET = re.compile(r"ds_[0-9a-f]{32}")


def short_id(job_id: str) -> str:
    """Its last eight characters: the first ones are a time, which jobs of one minute share."""
    return job_id[-8:]


def benchmark_id(job_id: str) -> str:
    """A job's id as in /admin/benchmarks: bm_ and its UUID without hyphens."""
    return f"bm_{job_id.replace('-', '')}"


def is_benchmark(name: str) -> bool:
    """Whether the name is what `benchmark_id` makes."""
    return _BENCHMARK.fullmatch(name) is not None


def is_dataset(name: str) -> bool:
    """Whether the name of what a job ran is a dataset's id."""
    return _DATASET.fullmatch(name) is not None


def checked_dataset(dataset_id: str) -> str:
    """The id. Raises NotFoundError for an impossible id."""
    if not is_dataset(dataset_id):
        raise NotFoundError(f"Dataset {dataset_id[:80]} not found")
    return dataset_id


def may_change(job: job_pb2.Job, caller: rpc.Identity) -> bool:
    return caller.is_admin or job.owner == caller.user


def can_judge(job: job_pb2.Job, dropped: str) -> bool:
    """Whether a model may judge the job's answers. `dropped` is when their texts were dropped."""
    return job.state == job_pb2.Job.STATE_COMPLETED and not job.spec.HasField("judging") and not dropped


def not_found(job_id: str) -> NotFoundError:
    return NotFoundError(f"Benchmark job {job_id[:80]} not found")


def checked_id(job_id: str) -> str:
    """The id in its stored form, of a UUID or of what `benchmark_id` makes. Raises NotFoundError for other texts."""
    if is_benchmark(job_id):
        return str(uuid.UUID(job_id[3:]))
    try:
        canonical = str(uuid.UUID(job_id))
    except ValueError:
        raise not_found(job_id) from None
    if canonical != job_id.lower():
        raise not_found(job_id)
    return canonical


async def find(backend: Backend, job_id: str, caller: rpc.Identity) -> job_pb2.Job:
    """A job of any age: live ones from the scheduler, old ones from results.

    Raises NotFoundError. While the scheduler is silent, finished jobs are still found; for others UnavailableError.
    """
    job_id = checked_id(job_id)
    silence: UnavailableError | None = None
    try:
        request = scheduler_service_pb2.GetJobRequest(job_id=job_id)
        return (await backend.ask(backend.scheduler.GetJob, request, caller)).job
    except NotFoundError:
        pass
    except UnavailableError as error:
        silence = error
    try:
        stored = results_service_pb2.ResultsServiceGetJobRequest(job_id=job_id)
        job = (await backend.ask(backend.results.GetJob, stored, caller)).job
    except NotFoundError as gone:
        # The results service says who deleted a job.
        raise silence or gone from None
    if silence and not is_finished(job):
        raise silence
    return job


async def result_of(backend: Backend, job_id: str, caller: rpc.Identity) -> metric_pb2.JobResult:
    """What the job has measured so far; an empty result while nothing is stored."""
    request = results_service_pb2.GetJobResultRequest(job_id=job_id)
    try:
        return (await backend.ask(backend.results.GetJobResult, request, caller)).result
    except NotFoundError:
        return metric_pb2.JobResult(job_id=job_id)


async def scores_of(backend: Backend, job_ids: Sequence[str], caller: rpc.Identity) -> dict[str, metric_pb2.Metric]:
    """By job its score over all of its items, of those that have one."""
    results = await asyncio.gather(*(result_of(backend, job_id, caller) for job_id in job_ids))
    return {one.job_id: one.suite_score for one in results if one.HasField("suite_score")}


_DAYS_TOKEN = re.compile(r"([0-9]{1,4})\.([0-9]{1,13})\.(.+)")


def days_start(days: int, token: str) -> tuple[int, str]:
    """Milliseconds since 1970 at which a list of the last days begins, at a whole minute so that equal requests within
    it get one answer, and the list's own token.

    All pages have the same beginning as the first one: a list's token is invalid for any other filter. Raises
    InvalidRequestError for a token of another request.
    """
    if not token:
        return (int(time.time()) // 60 * 60 - days * 86_400) * 1000, ""
    found = _DAYS_TOKEN.fullmatch(token)
    if found is None or int(found[1]) != days:
        raise InvalidRequestError("The page token belongs to another request. Start again without one.", "page_token")
    return int(found[2]), found[3]


def days_token(days: int, start_ms: int, token: str) -> str:
    """What `days_start` reads; empty on the last page."""
    return f"{days}.{start_ms}.{token}" if token else ""


def percent(job: job_pb2.Job) -> int:
    """Whole percent of items done, rounded down: 100 means all."""
    total = job.progress.items_total
    return math.floor(100 * job.progress.items_done / total) if total else 0


def total_seconds(job: job_pb2.Job) -> float:
    """Time running, over all attempts and without the pauses between them; 0 before the start."""
    return round(job.progress.elapsed_s, 2)


def copy_of(source: job_pb2.Job, rerun: list[item_result_pb2.Outcome]) -> job_pb2.JobSpec:
    """The job's spec again, with its answers taken; items with the outcomes in `rerun` are asked again."""
    spec = job_pb2.JobSpec()
    spec.CopyFrom(source.spec)
    spec.reuse.CopyFrom(job_pb2.Reuse(job_id=source.job_id, rerun=rerun))
    # The first job's webhook was not requested for this one.
    spec.webhook_url = spec.schedule_id = ""
    # Its rows are those of the first job already, and what it judged were answers of that job.
    spec.ClearField("judging")
    spec.ClearField("judges")
    if not rerun:
        # No call is made, so nothing is spent, and there is no wait for a provider's batch.
        for field in ("provider_batch", "budget_usd", "time_limit_s"):
            spec.ClearField(field)
    return spec


def spec_again(source: job_pb2.Job) -> job_pb2.JobSpec:
    """What the job asked for, without what belongs to this job alone, so that another job can ask it."""
    spec = job_pb2.JobSpec()
    spec.CopyFrom(source.spec)
    for field in ("reuse", "priority", "watching", "deciding", "schedule_id"):
        spec.ClearField(field)
    return spec


_NEW_S = 10.0
_SETTLE_S = 1.0
_SETTLE_STEP_S = 0.02
_MOST_STORED = 1_000


async def settle(backend: Backend, caller: rpc.Identity) -> None:
    """Returns once the results service has heard of the jobs that were lately made, retried or ended, so that what is
    read next agrees with the scheduler: counts, scores and lists. At once if it has, and after a second at most.
    Raises nothing while a service is silent: the reads that follow say so."""
    try:
        queue = (await backend.ask(backend.scheduler.GetQueue, scheduler_service_pb2.GetQueueRequest(), caller)).queue
    except TouchstoneError:
        return
    live = (*queue.running, *queue.scoring, *queue.pending)
    new = (job for job in live if job.attempt > 1 or time.time() - job.created_at.ToNanoseconds() / 1e9 < _NEW_S)
    # Many readers look at the same jobs: one of them asks.
    unknown = [job for job in (*queue.ended, *new) if job.job_id and not _is_as_new(backend.stored, job)]
    end = time.monotonic() + _SETTLE_S
    while unknown:
        heard = await asyncio.gather(*(_is_stored(backend, job, caller) for job in unknown))
        unknown = [job for job, known in zip(unknown, heard, strict=True) if not known]
        if not unknown or time.monotonic() >= end:
            break
        await asyncio.sleep(_SETTLE_STEP_S)


async def _is_stored(backend: Backend, job: job_pb2.Job, caller: rpc.Identity) -> bool:
    """Whether the results service counts the job as the scheduler does, or has heard of more."""
    request = results_service_pb2.ResultsServiceGetJobRequest(job_id=job.job_id)
    try:
        stored = (await backend.ask(backend.results.GetJob, request, caller, timeout_s=_SETTLE_S, fresh=True)).job
    except NotFoundError:
        return False
    except TouchstoneError:
        return True  # the next read says what is wrong
    if len(backend.stored) >= _MOST_STORED:
        backend.stored.clear()
    backend.stored[job.job_id] = (stored.attempt, is_finished(stored))
    return _is_as_new(backend.stored, job)


def _is_as_new(stored: Mapping[str, tuple[int, bool]], job: job_pb2.Job) -> bool:
    """Whether what is stored is of this state of the job, or of a later one."""
    return stored.get(job.job_id, (0, False)) >= (job.attempt, is_finished(job))


async def current(
    backend: Backend,
    request: results_service_pb2.ResultsServiceListJobsRequest,
    stored: Sequence[job_pb2.Job],
    caller: rpc.Identity,
    room: int,
) -> tuple[list[job_pb2.Job], int]:
    """The jobs of a stored list as they are now, newest first, and how many of them are not stored yet: at most `room`.

    The results service learns of a change a moment after the scheduler. `request` chose the list; jobs that no longer
    fit it are left out. While the scheduler is silent, the stored list is the answer.
    """
    try:
        # Asked after the list was read: an unfinished job that is not in the queue then has ended.
        answer = await backend.ask(backend.scheduler.GetQueue, scheduler_service_pb2.GetQueueRequest(), caller)
        queued = (*answer.queue.running, *answer.queue.scoring, *answer.queue.pending)
        now = {job.job_id: job for job in queued if job.job_id}
        ended = [job.job_id for job in stored if not is_finished(job) and job.job_id not in now]
        now |= {job.job_id: job for job in await asyncio.gather(*(find(backend, one, caller) for one in ended))}
    except TouchstoneError:
        return list(stored), 0
    known = [now.pop(job.job_id, job) for job in stored]
    fresh = [job for job in now.values() if _fits(job, request)][:room]
    found = [job for job in known if _fits(job, request)] + fresh
    return sorted(found, key=lambda job: -job.created_at.ToNanoseconds()), len(fresh)


def _fits(job: job_pb2.Job, request: results_service_pb2.ResultsServiceListJobsRequest) -> bool:
    """Whether the results service would list the job."""
    return (
        request.model in ("", job.spec.model)
        and request.suite in ("", suite_of(job.spec))
        and request.endpoint in ("", job.spec.endpoint)
        and (not request.states or job.state in request.states)
        and request.owner in ("", job.owner)
        and request.project_id in (0, job.spec.project_id)
        and request.model_query.lower() in job.spec.model.lower()
        and request.created_after.ToNanoseconds() <= job.created_at.ToNanoseconds()
    )


async def runs_around(
    backend: Backend, job: job_pb2.Job, caller: rpc.Identity
) -> tuple[job_pb2.Job | None, job_pb2.Job | None]:
    """The completed runs of the job's configuration before and after it. None where there is none, and while the
    results service is silent."""
    request = results_service_pb2.ResultsServiceGetJobRequest(job_id=job.job_id, with_runs_around=True)
    try:
        found = await backend.ask(backend.results.GetJob, request, caller)
    except TouchstoneError:
        return None, None
    return (
        found.previous if found.HasField("previous") else None,
        found.following if found.HasField("following") else None,
    )


RECONNECT_S = 1.0


class Feed:
    """`job` is its newest state. Use `following`."""

    def __init__(self, backend: Backend, job: job_pb2.Job, caller: rpc.Identity) -> None:
        self._backend = backend
        self._caller = caller
        self.job = job
        self.changed = asyncio.Event()

    async def follow(self) -> None:
        """Watches until the job is finished; waits without limit for a scheduler that goes away."""
        while not is_finished(self.job):
            try:
                async for job in self._backend.watch(self.job.job_id, self._caller):
                    self._take(job)
                # A stream that ends before the job does comes from a scheduler that shuts down.
            except NotFoundError:
                with contextlib.suppress(TouchstoneError):
                    self._take(await find(self._backend, self.job.job_id, self._caller))
            except TouchstoneError:
                pass  # asked again below
            if not is_finished(self.job):
                await asyncio.sleep(RECONNECT_S)

    def _take(self, job: job_pb2.Job) -> None:
        self.job = job
        self.changed.set()

    async def wait(self, streams: Streams, most: float, pause: float = 0) -> bool:
        """Waits `pause`, then for a change, but at most `most` seconds. False when nothing changed."""
        stopping = asyncio.create_task(streams.stopping.wait())
        changing = asyncio.create_task(self.changed.wait())
        try:
            done, _ = await asyncio.wait((stopping,), timeout=pause)
            if not done:
                done, _ = await asyncio.wait((stopping, changing), timeout=most, return_when=asyncio.FIRST_COMPLETED)
            return bool(done)
        finally:
            stopping.cancel()
            changing.cancel()


@asynccontextmanager
async def following(backend: Backend, job: job_pb2.Job, caller: rpc.Identity) -> AsyncIterator[Feed]:
    """The job's feed inside the block, updated by a separate task."""
    feed = Feed(backend, job, caller)
    task = asyncio.create_task(feed.follow())
    try:
        yield feed
    finally:
        task.cancel()
