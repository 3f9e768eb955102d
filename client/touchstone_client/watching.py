"""What a watch of a job does when a stream ends or breaks; the clients only do the waiting."""

from __future__ import annotations

import time

import grpc

from services.words.jobs import is_finished
from touchstone.v1 import job_pb2
from touchstone_client.errors import ClientError, NotFoundError, UnreachableError

_PAUSE_S = 0.5
_AWAY_S = 30.0
"""How long a watch waits for a scheduler that is being restarted."""


class Watch:
    """One watch. `timeout_s` is None if it may last as long as the job."""

    def __init__(self, job_id: str, timeout_s: float | None) -> None:
        self._job_id = job_id
        self._timeout_s = timeout_s
        self._ends_at = None if timeout_s is None else time.monotonic() + timeout_s
        self._silent_since: float | None = None
        self.over = False

    def left_s(self) -> float | None:
        """The next stream's deadline. Raises TimeoutError when there is no time left."""
        if self._ends_at is None:
            return None
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"Job {self._job_id} is not finished after {self._timeout_s:g} s; it continues.")
        return left

    def pause_s(self) -> float:
        """The wait between two streams. Raises as `left_s` does."""
        return min(_PAUSE_S, self.left_s() or _PAUSE_S)

    def heard(self, job: job_pb2.Job) -> None:
        self._silent_since = None
        self.over = is_finished(job)

    def forgotten(self, failure: ClientError) -> bool:
        """Decides on a broken stream: true when only the results service still knows the job; false to try again.
        Raises TimeoutError when the time is up, else `failure` when waiting longer makes no sense."""
        self.left_s()
        if isinstance(failure, NotFoundError):
            return True
        now = time.monotonic()
        self._silent_since = self._silent_since or now
        away = isinstance(failure, UnreachableError) and failure.code == grpc.StatusCode.UNAVAILABLE
        if not away or now - self._silent_since > _AWAY_S:
            raise failure
        return False
