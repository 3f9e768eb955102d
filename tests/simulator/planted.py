"""Bugs that the simulator must find. Each is put into the services for one run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

from services import bus
from services.bus.key_values import KeyValues
from services.evaluator.endpoint_worker import EndpointWorker
from services.evaluator.stored.responses import KnownAnswers
from services.evaluator.units import units_in_hand
from services.results.export.exports import Exports
from services.results.intake import writes
from services.results.intake.feeds import Feed
from services.results.servicer import ResultsServicer
from services.scheduler.jobs.job import Job
from services.scheduler.jobs.ledger import Ledger
from services.scheduler.lifecycle.job_registry import JobRegistry
from services.scheduler.lifecycle.maintenance import Upkeep
from services.scheduler.lifecycle.scheduler import Scheduler
from services.scheduler.nats.jobs_bucket import FencedBucket, JobStore
from services.scheduler.requests.experiments import Experiments
from services.scheduler.schedules.schedules import Timetable
from services.scheduler.webhooks import deliveries
from services.scheduler.webhooks.courier import Courier
from tests.simulator.history import FINALIZING, PENDING
from tests.simulator.planted_datasets import DATASET_BUGS
from tests.simulator.planted_decisions import DECISION_BUGS, RACE_BUGS
from touchstone.v1 import results_service_pb2

Plant = Callable[[], AbstractContextManager[Any]]


def _store_the_mark_first() -> AbstractContextManager[Any]:
    """Results says that messages are stored, then stores them: a crash in between loses them."""
    right = Feed._commit

    async def commit(self: Feed, mark: Any, messages: Any) -> None:
        await self._database.write(lambda connection: writes.write_mark(connection, mark))
        await right(self, mark, messages)

    return patch.object(Feed, "_commit", commit)


def _forget_the_fence() -> AbstractContextManager[Any]:
    """A scheduler whose leadership is over goes on writing."""
    right = FencedBucket.write

    def write(self: FencedBucket, key: str, value: bytes, headers: Any = None) -> Any:
        subject, value, _ = right(self, key, value)
        return subject, value, bus.REPLACE | (headers or {})

    return patch.object(FencedBucket, "write", write)


def _count_twice() -> AbstractContextManager[Any]:
    """A message that is seen again after a restart counts again."""

    def is_news(self: Ledger, unit: int, sequence: int) -> bool:
        self.sequence = sequence
        return self.has(unit)

    return patch.object(Ledger, "_is_news", is_news)


def _leave_the_lost() -> AbstractContextManager[Any]:
    """Units that left WORK undone are not missed."""

    async def find_lost(self: Upkeep, now: float) -> None:
        pass

    return patch.object(Upkeep, "_find_lost", find_lost)


def _forget_calls() -> AbstractContextManager[Any]:
    """Calls of webhooks that a crashed scheduler has not made are never made."""

    async def resume(self: Courier) -> None:
        pass

    return patch.object(Courier, "resume", resume)


def _give_up_early() -> AbstractContextManager[Any]:
    """A receiver that does not answer once is not asked again."""

    def after(delivery: Any, answer: Any, settings: Any, *rest: Any) -> Any:
        return right(delivery, answer, replace(settings, tries=2), *rest)

    right = deliveries.after
    return patch.object(deliveries, "after", after)


def _forget_schedules() -> AbstractContextManager[Any]:
    """A scheduler that starts does not know the schedules."""

    async def load(self: Timetable) -> None:
        pass

    return patch.object(Timetable, "load", load)


def _cut_exports() -> AbstractContextManager[Any]:
    """An export ends as if it were whole when its reader is slow."""
    right = Exports.serve

    async def serve(self: Exports, *asked: Any) -> AsyncGenerator[Any]:
        pieces = 0
        async for piece in right(self, *asked):
            yield piece
            pieces += 1
            if pieces == 3:
                return

    return patch.object(Exports, "serve", serve)


def _start_twice() -> AbstractContextManager[Any]:
    """A request that is sent again makes another job."""

    async def find_request(self: JobStore, owner: str, request_id: str) -> list[str]:
        return []

    return patch.object(JobStore, "find_request", find_request)


def _drop_the_outbox() -> AbstractContextManager[Any]:
    """Events that a crashed scheduler has not relayed are forgotten."""
    right = JobStore.load

    async def load(self: JobStore, *asked: Any) -> list[Job]:
        jobs = await right(self, *asked)
        while not self._outbox.empty():
            self._outbox.get_nowait()
        return jobs

    return patch.object(JobStore, "load", load)


def _die_at_start() -> AbstractContextManager[Any]:
    """A scheduler does not start while a job waits for its results."""
    right = Scheduler.restore

    def restore(self: Scheduler, jobs: Iterable[Job], released: Any, position: int) -> int:
        known = list(jobs)
        assert all(job.state != FINALIZING for job in known)
        return right(self, known, released, position)

    return patch.object(Scheduler, "restore", restore)


def _admit_too_many() -> AbstractContextManager[Any]:
    """One job more than there are slots."""
    right = Scheduler._admit

    async def admit(self: Scheduler) -> None:
        limits = self._registry.limits
        self._registry.limits = replace(limits, running_jobs=limits.running_jobs + 1)
        await right(self)
        self._registry.limits = limits

    return patch.object(Scheduler, "_admit", admit)


def _answer_before_storing() -> AbstractContextManager[Any]:
    """The end of a job is acknowledged first and stored later."""
    right = JobRegistry.finish

    async def finish(self: JobRegistry, job: Job, actor: str, action: str) -> None:
        async def later() -> None:
            await asyncio.sleep(0.2)
            async with self.lock:
                await right(self, job, actor, action)

        if action != "cancelled":
            await right(self, job, actor, action)
            return
        self._changes.add(asyncio.create_task(later()))

    return patch.object(JobRegistry, "finish", finish)


def _call_twice() -> AbstractContextManager[Any]:
    """Each item is asked for twice, and paid twice."""
    right = EndpointWorker._ask

    async def ask(self: EndpointWorker, call: Any) -> Any:
        await right(self, call)
        return await right(self, call)

    return patch.object(EndpointWorker, "_ask", ask)


def _pay_again() -> AbstractContextManager[Any]:
    """A unit that comes again does not look for the answers that an earlier delivery has stored."""

    async def own(self: KnownAnswers, unit: Any, loaded: Any) -> dict[int, Any]:
        return {}

    return patch.object(KnownAnswers, "_own", own)


def _mark_later() -> AbstractContextManager[Any]:
    """A mark is acknowledged first and stored later."""
    right = ResultsServicer.MarkRun

    async def mark(self: ResultsServicer, request: Any, context: Any) -> Any:
        async def later() -> None:
            await asyncio.sleep(1.0)
            await right(self, request, context)

        task = asyncio.create_task(later())
        task.add_done_callback(lambda task: task.cancelled() or task.exception())
        return results_service_pb2.MarkRunResponse()

    return patch.object(ResultsServicer, "MarkRun", mark)


def _retry_the_same_attempt() -> AbstractContextManager[Any]:
    """A retry goes on under the attempt that was ended."""
    right = Job.retry

    def retry(self: Job, now: float) -> None:
        right(self, now)
        self.message.attempt -= 1
        assert self.state == PENDING

    return patch.object(Job, "retry", retry)


def _one_marker() -> AbstractContextManager[Any]:
    """A deletion leaves only a marker that expires, which may outlive the server but not the value."""

    async def delete(self: KeyValues, bucket: str, key: str, expected: dict[str, str] | None = None) -> None:
        headers = {"KV-Operation": "PURGE"} | bus.REPLACE | (expected or {})
        await self.js.publish(bus.kv_subject(bucket, key), headers=headers, msg_ttl=3)

    return patch.object(KeyValues, "kv_delete", delete)


def _judge_at_once() -> AbstractContextManager[Any]:
    """Judges of an experiment start although some of its jobs are live."""
    return patch.multiple(JobRegistry, answering=lambda self: set(), kept_apart=lambda self: set())


def _answer_while_judges_run() -> AbstractContextManager[Any]:
    """Judges wait for the jobs of their experiment, but not the other way round."""
    right = JobRegistry.kept_apart

    def kept_apart(self: JobRegistry) -> set[str]:
        return {job_id for job_id in right(self) if self.jobs[job_id].message.spec.HasField("judging")}

    return patch.object(JobRegistry, "kept_apart", kept_apart)


EXPERIMENT_BUGS: dict[str, Plant] = {
    "judge-at-once": _judge_at_once,
    "answer-while-judges-run": _answer_while_judges_run,
    "forget-an-experiments-jobs": partial(patch.object, Experiments, "_there", lambda self, asked: {}),
}


def _judge_twice() -> AbstractContextManager[Any]:
    """A scheduler that starts does not know which judges it has started."""
    right = JobStore.find_request

    async def find_request(self: JobStore, owner: str, request_id: str) -> Sequence[str]:
        return [] if request_id.startswith("judge ") else await right(self, owner, request_id)

    return patch.object(JobStore, "find_request", find_request)


JUDGE_BUGS: dict[str, Plant] = {
    "judge-twice": _judge_twice,
    "judge-what-is-replaced": partial(patch.object, JobRegistry, "replaced_judges", lambda self: []),
}


BUGS: dict[str, Plant] = {
    "store-the-mark-first": _store_the_mark_first,
    "forget-the-fence": _forget_the_fence,
    "count-twice": _count_twice,
    "leave-the-lost": _leave_the_lost,
    "forget-calls": _forget_calls,
    "give-up-early": _give_up_early,
    "forget-schedules": _forget_schedules,
    "cut-exports": _cut_exports,
    "start-twice": _start_twice,
    "one-marker": _one_marker,
    "drop-the-outbox": _drop_the_outbox,
    "die-at-start": _die_at_start,
    "admit-too-many": _admit_too_many,
    "answer-before-storing": _answer_before_storing,
    "call-twice": _call_twice,
    "mark-later": _mark_later,
    "pay-again": _pay_again,
    "forget-deleted-jobs": partial(patch.object, Job, "deleted", False),
    "retry-the-same-attempt": _retry_the_same_attempt,
    "condemn-the-healthy": partial(patch.object, units_in_hand, "DEAD_FROM_CRASHES", 0),
    **DATASET_BUGS,
    **EXPERIMENT_BUGS,
    **JUDGE_BUGS,
    **DECISION_BUGS,
    **RACE_BUGS,
}


def planted(bug: str) -> AbstractContextManager[Any]:
    """Inside, the services have this bug; none for an empty name. Raises KeyError for an unknown one."""
    return BUGS[bug]() if bug else nullcontext()
