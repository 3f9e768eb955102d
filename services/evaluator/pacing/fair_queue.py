"""Waiting calls: users take turns, and among a user's calls its jobs do."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from services.evaluator.pacing.shares import Flow

T = TypeVar("T")


class Turns(Generic[T]):
    """First come, first served within a job; users, and the jobs of each user, take turns of one call."""

    def __init__(self) -> None:
        self._owners: OrderedDict[str, OrderedDict[str, deque[T]]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, flow: Flow, calls: Iterable[T]) -> None:
        queue = self._queue(flow)
        before = len(queue)
        queue.extend(calls)
        self._count += len(queue) - before
        self._tidy(flow)

    def put_back(self, flow: Flow, call: T, *, last: bool = False) -> None:
        """Puts the call first among its job's calls again, or last."""
        queue = self._queue(flow)
        if last:
            queue.append(call)
        else:
            queue.appendleft(call)
        self._count += 1

    def take(self, flow: Flow | None = None) -> T:
        """The call whose turn it is, or the first of `flow`. Raises KeyError or StopIteration when there is none."""
        owner, job_id = flow or self.first()
        jobs = self._owners[owner]
        call = jobs[job_id].popleft()
        self._count -= 1
        jobs.move_to_end(job_id)
        self._owners.move_to_end(owner)
        self._tidy(Flow(owner, job_id))
        return call

    def first(self) -> Flow:
        """Whose turn it is. Raises StopIteration when nothing waits."""
        owner = next(iter(self._owners))
        return Flow(owner, next(iter(self._owners[owner])))

    def peek(self, flow: Flow) -> T:
        """The first call of a flow that waits. Raises KeyError when it has none."""
        return self._owners[flow.owner][flow.job_id][0]

    def waiting(self) -> dict[Flow, int]:
        """Calls that wait, by flow, in the order of turns."""
        return {
            Flow(owner, job_id): len(calls) for owner, jobs in self._owners.items() for job_id, calls in jobs.items()
        }

    def drop(self, flow: Flow, unwanted: Callable[[T], bool]) -> None:
        """Removes calls that will not be made."""
        queue = self._queue(flow)
        kept = [call for call in queue if not unwanted(call)]
        self._count -= len(queue) - len(kept)
        queue.clear()
        queue.extend(kept)
        self._tidy(flow)

    def _queue(self, flow: Flow) -> deque[T]:
        return self._owners.setdefault(flow.owner, OrderedDict()).setdefault(flow.job_id, deque())

    def _tidy(self, flow: Flow) -> None:
        jobs = self._owners[flow.owner]
        if not jobs[flow.job_id]:
            del jobs[flow.job_id]
        if not jobs:
            del self._owners[flow.owner]
