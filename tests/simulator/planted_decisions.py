"""Bugs of decisions that the simulator must find, as those in `planted`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Any
from unittest.mock import patch

from services import decision_order
from services.evaluator.units.units_in_hand import Hand
from services.results.decisions import answers, evidence
from services.scheduler.jobs.job import Job
from services.scheduler.lifecycle import deciding
from services.scheduler.lifecycle.job_registry import JobRegistry
from services.scheduler.nats.streams import WorkStream
from tests.simulator import decisions

Plant = Callable[[], AbstractContextManager[Any]]


def _count_as_they_come() -> AbstractContextManager[Any]:
    """Pairs count in the order in which they were stored, not in that of the items."""
    arrived: list[tuple[int, int]] = []

    right = decisions.stored_answers

    def stored(connection: Any, job: Any, statistics: Any) -> Any:
        found = right(connection, job, statistics)
        arrived[:] = zip(found["place"].tolist(), found["position"].tolist(), strict=True)
        return found

    def order(plan: Any, seed: int) -> Sequence[tuple[int, int]]:
        known = dict.fromkeys(arrived)
        return [*known, *(each for each in decision_order.order(plan, seed) if each not in known)]

    stack = ExitStack()
    stack.enter_context(patch.object(decisions, "stored_answers", stored))
    stack.enter_context(patch.object(answers, "decision_order", _Orders(order)))
    return stack


class _Orders:
    def __init__(self, order: Any) -> None:
        self.order = order


def _stop_one_by_one() -> AbstractContextManager[Any]:
    """A verdict stops one job in a write, and the other in the next."""

    async def finish_all(self: JobRegistry, jobs: Sequence[Job], actor: str, action: str) -> None:
        for job in jobs:
            await right(self, [job], actor, action)

    right = JobRegistry.finish_all
    return patch.object(JobRegistry, "finish_all", finish_all)


def _create_one_by_one() -> AbstractContextManager[Any]:
    """Each job of a decision is created in a write of its own: a crash in between leaves some of them out."""

    async def commit_all(self: JobRegistry, jobs: Sequence[Job], actor: str, action: str) -> None:
        for job in jobs:
            await right(self, [job], actor, action)

    right = JobRegistry.commit_all
    return patch.object(JobRegistry, "commit_all", commit_all)


def _go_on() -> AbstractContextManager[Any]:
    """A verdict stops a job, and what is under way of it goes on: its units stay in the queue, and evaluators take no
    notice."""

    async def withdraw(self: Any, job_id: str) -> None:
        pass

    async def wanted(self: Hand, unit: Any) -> bool:
        return True

    stack = ExitStack()
    stack.enter_context(patch.object(WorkStream, "withdraw", withdraw))
    stack.enter_context(patch.object(Hand, "_wanted", wanted))
    stack.enter_context(patch.object(Hand, "_job_is", lambda self, job_id, headers: False))
    return stack


def _run_on() -> AbstractContextManager[Any]:
    """A job goes on when all others of its decision have failed or were cancelled. Of a race the results service tells
    it, too."""
    stack = ExitStack()
    stack.enter_context(patch.object(deciding, "_ENDED", ()))
    stack.enter_context(patch.object(evidence, "_has_ended", lambda job: False))
    return stack


DECISION_BUGS: dict[str, Plant] = {
    "count-as-they-come": _count_as_they_come,
    "stop-one-by-one": _stop_one_by_one,
    "go-on-after-the-verdict": _go_on,
    "run-on-alone": _run_on,
}
RACE_BUGS: dict[str, Plant] = {
    "create-one-by-one": _create_one_by_one,
    "forget-the-number-of-pairs": partial(patch.object, evidence, "pair_error", lambda error, models: error),
}
"""The same of races."""
