"""What callers may ask of the scheduler: create, read, watch, cancel and retry jobs."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress

from services.errors import (
    ConflictError,
    InvalidRequestError,
    LimitReachedError,
    PermissionDeniedError,
    UnavailableError,
)
from services.rpc import Identity
from services.scheduler import reuse
from services.scheduler.board import Board
from services.scheduler.job import FINALIZING, PENDING, PLANNING, RUNNING, Job, seconds, stamp
from services.scheduler.ports import Results
from services.scheduler.validation import validate
from touchstone.v1 import job_pb2, queue_pb2

_WATCH_INTERVAL_S = 0.25


class Desk:
    """Requests against one board."""

    def __init__(self, board: Board, results: Results) -> None:
        self._board, self._results = board, results

    async def create(self, caller: Identity, request_id: str, spec: job_pb2.JobSpec) -> job_pb2.Job:
        """Queues a job; the same request id again gives the job it made.

        Raises InvalidRequestError, UnsupportedError, LimitReachedError; of a job whose answers are to be taken also
        NotFoundError, ConflictError and, when only results knows it, UnavailableError.
        """
        # Like a retry's: asked before the lock is taken.
        source = await self._any_age(spec.reuse.job_id) if spec.reuse.job_id else None
        return await self._board.finish_anyway(self._create(caller, request_id, spec, source))

    async def _any_age(self, job_id: str) -> job_pb2.Job:
        if job_id in self._board.jobs:
            return self._board.view(self._board.find(job_id))
        return await self._results.job(job_id)

    async def _create(
        self, caller: Identity, request_id: str, spec: job_pb2.JobSpec, source: job_pb2.Job | None
    ) -> job_pb2.Job:
        board = self._board
        async with board.lock:
            now = board.now()
            if request_id:
                known = await board.store.find_request(caller.user, request_id)
                if known in board.jobs:
                    made = board.jobs[known]
                    # What cannot be judged any more, as its endpoint has gone, may well be the same call once more.
                    with suppress(InvalidRequestError):
                        full = validate(request_id, spec, board.fleet, board.limits.job_time_s, now, source)
                        _require_same(made, full)
                    return board.view(made)
            full = validate(request_id, spec, board.fleet, board.limits.job_time_s, now, source)
            self._require_room(caller.user)
            message = job_pb2.Job(
                job_id=str(uuid.uuid4()),
                owner=caller.user,
                spec=full,
                state=PENDING,
                attempt=1,
            )
            if source is not None:
                reuse.begin(message, source)
                message.baseline = source.baseline
            else:
                message.baseline = board.fleet.endpoint(full.endpoint, now).baseline
            stamp(message.created_at, now)
            message.progress.time_limit_s = full.time_limit_s
            job = Job(message, request_id=request_id, waiting_since=now)
            board.jobs[job.id] = job
            await board.commit(job, caller.user, "created")
            return board.view(job)

    def _require_room(self, owner: str) -> None:
        limits = self._board.limits
        if self._board.pending_by_owner()[owner] >= limits.pending_per_owner:
            raise LimitReachedError("Queue is full. Please try again later.", limits.queue_retry_after_s)

    def get(self, job_id: str) -> job_pb2.Job:
        return self._board.view(self._board.find(job_id))

    def list(self, owner: str) -> list[job_pb2.Job]:
        """Live and recently finished jobs of one owner, or of all for an empty one, newest first."""
        found = [job for job in self._board.jobs.values() if not owner or job.message.owner == owner]
        found.sort(key=lambda job: (seconds(job.message.created_at), job.id), reverse=True)
        return self._board.views(found)

    async def cancel(self, caller: Identity, job_id: str) -> job_pb2.Job:
        """Raises ConflictError when the job is finished, PermissionDeniedError when it is somebody else's."""
        return await self._board.finish_anyway(self._cancel(caller, job_id))

    async def _cancel(self, caller: Identity, job_id: str) -> job_pb2.Job:
        board = self._board
        async with board.lock:
            job = board.find(job_id)
            _require_owner(caller, job)
            job.cancel(caller.user, board.now())
            await board.finish(job, caller.user, "cancelled")
            return board.view(job)

    async def retry(self, caller: Identity, job_id: str) -> job_pb2.Job:
        """Queues the next attempt. Raises ConflictError when nothing is missing."""
        # Finished long ago, a job is known to results only. It is asked before the lock is taken: it may be silent.
        old = None if job_id in self._board.jobs else await self._results.job(job_id)
        return await self._board.finish_anyway(self._retry(caller, job_id, old))

    async def _retry(self, caller: Identity, job_id: str, old: job_pb2.Job | None) -> job_pb2.Job:
        board = self._board
        async with board.lock:
            job = board.jobs.get(job_id) or (Job(old) if old is not None else board.find(job_id))
            _require_owner(caller, job)
            if job.can_retry:
                self._require_room(job.message.owner)
            job.retry(board.now())
            board.jobs[job_id] = job
            await board.commit(job, caller.user, "retried")
            return board.view(job)

    async def watch(self, job_id: str) -> AsyncIterator[job_pb2.Job]:
        """The job now, then after changes, until it is finished. Raises UnavailableError when leadership ends."""
        while True:
            if self._board.closed:
                raise UnavailableError("The scheduler is restarting; ask again.")
            job = self._board.find(job_id)
            changed = self._board.changed(job)
            yield self._board.view(job)
            if not job.live:
                return
            await asyncio.sleep(_WATCH_INTERVAL_S)
            await changed.wait()

    def queue(self) -> queue_pb2.Queue:
        board = self._board
        running = board.in_state(PLANNING, RUNNING, FINALIZING)
        running.sort(key=lambda job: (seconds(job.message.created_at), job.id))
        return queue_pb2.Queue(
            running=board.views(running),
            pending=board.views(board.jobs[w.job_id] for w in board.waiting()),
            slots=board.limits.running_jobs,
            pending_per_owner=board.limits.pending_per_owner,
            evaluators=len(board.fleet.live(board.now())),
        )


def _require_owner(caller: Identity, job: Job) -> None:
    if not caller.is_admin and caller.user != job.message.owner:
        owner = job.message.owner
        raise PermissionDeniedError(f"Job {job.id} belongs to {owner}; only its owner or an admin may do this.")


def _require_same(job: Job, full: job_pb2.JobSpec) -> None:
    if job.message.spec != full:
        raise ConflictError(
            f"request_id {job.request_id} has made job {job.id}, which is another one. Choose another id."
        )
