"""What a caller may read: everything, or with TOUCHSTONE_READS=own a user only what belongs to the user's own jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from services import rpc
from services.errors import NotFoundError
from touchstone.v1 import job_pb2

OPEN: Final = "open"
OWN: Final = "own"


class HiddenJobError(NotFoundError):
    """The job exists, but this caller must not learn that."""


@dataclass(frozen=True, slots=True)
class Visibility:
    """The caller sees only jobs of `owner`; empty means every job.

    In SQL: `AND ($visible_owner = '' OR owner = $visible_owner)`, with `parameters`.
    """

    owner: str = ""

    @property
    def parameters(self) -> dict[str, str]:
        return {"visible_owner": self.owner}

    def check(self, job: job_pb2.Job) -> None:
        """Raises HiddenJobError, which looks the same as for a job that does not exist."""
        if self.owner and job.owner != self.owner:
            raise HiddenJobError(f"Benchmark job {job.job_id} not found")


EVERYTHING: Final = Visibility()


def of_caller(reads: str) -> Visibility:
    """What the caller of the RPC being served may read, `reads` being "open" or "own". Admins and services see all."""
    caller = rpc.identity()
    return EVERYTHING if reads == OPEN or caller.is_admin else Visibility(caller.user)
