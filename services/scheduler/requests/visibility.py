"""Which parts of other users' jobs a caller may see. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from services.errors import NotFoundError
from services.rpc import Identity
from services.words import refusals
from services.words.jobs import state_name
from touchstone.v1 import job_pb2, queue_pb2


@dataclass(frozen=True, slots=True)
class Reads:
    """Everybody sees all jobs, or with `own` only their own. Admins and services see all.

    Only the owner sees a job's `webhook_url` in either case: such URLs often hold a token.
    """

    own: bool = False

    def sees(self, caller: Identity, owner: str) -> bool:
        return not self.own or caller.is_admin or caller.user == owner

    def check(self, caller: Identity, job: job_pb2.Job) -> None:
        """Raises NotFoundError, as for a job that does not exist."""
        if not self.sees(caller, job.owner):
            raise NotFoundError(refusals.not_found("Benchmark job", job.job_id))

    def job(self, caller: Identity, job: job_pb2.Job) -> job_pb2.Job:
        """The job as the caller may see it. Raises NotFoundError."""
        self.check(caller, job)
        if caller.is_admin or caller.user == job.owner or not job.spec.webhook_url:
            return job
        shown = job_pb2.Job()
        shown.CopyFrom(job)
        shown.spec.ClearField("webhook_url")
        return shown

    def jobs(self, caller: Identity, jobs: Iterable[job_pb2.Job]) -> list[job_pb2.Job]:
        """Those that the caller may see."""
        return [self.job(caller, job) for job in jobs if self.sees(caller, job.owner)]

    def queue(self, caller: Identity, queue: queue_pb2.Queue) -> queue_pb2.Queue:
        """With every job in its position, without what the caller may not see."""
        shown = queue_pb2.Queue()
        shown.CopyFrom(queue)
        for name in ("running", "pending", "scoring", "ended"):
            listed = list(getattr(queue, name))
            shown.ClearField(name)
            getattr(shown, name).extend(
                self.job(caller, job) if self.sees(caller, job.owner) else _place(job) for job in listed
            )
        return shown


def _place(job: job_pb2.Job) -> job_pb2.Job:
    """A placeholder for a job."""
    place = job.progress.queue_position
    step = f"Waiting in the queue, place {place}" if place else state_name(job.state).capitalize()
    return job_pb2.Job(state=job.state, progress=job_pb2.Progress(queue_position=place, current_step=step))
