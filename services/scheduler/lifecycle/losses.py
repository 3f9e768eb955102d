"""What jobs can lose: evaluators that hold their units, datasets that they ask, records and events.

An evaluator or a dataset may go without a word.

NATS may lose a job's record, or an older backup may be restored: the results service still calls the job live, and the
queue does not know it. Such a job cannot continue, so it ends as failed with the reason, and may be retried.

NATS cuts off what it cannot read, and with it perhaps the last event of a job in the audit trail. The results service
learns of jobs only from the trail, and its database may be lost as well. So the queue, which has the job, publishes the
event again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from services.bus import DamagedError, batched_endpoint, heed_cancel, is_at_fault, of_job
from services.errors import TouchstoneError, UnavailableError
from services.scheduler.admission import dataset_rules
from services.scheduler.jobs.fleet import Loss, route
from services.scheduler.jobs.job import COMPLETED, PLANNING, RUNNING, Job, seconds
from services.scheduler.jobs.units import Layout
from services.scheduler.lifecycle.job_registry import JobRegistry
from services.scheduler.ports import Results
from services.scheduler.results_client import until_answered
from services.words.jobs import LIVE, state_name
from services.words.refusals import counted

log = logging.getLogger(__name__)


def tell_losses(registry: JobRegistry) -> None:
    """Logs for every job which evaluators disappeared with units of it in hand."""
    for loss in registry.fleet.losses(registry.now()):
        for job in registry.in_state(RUNNING):
            if what := _held(job, loss):
                name = loss.evaluator.evaluator
                how = "was restarted" if loss.restarted else "is silent"
                log.warning(
                    "job %s: evaluator %s %s; %s, and will run again", job.id, name, how, what, extra=of_job(job.id)
                )


def _held(job: Job, loss: Loss) -> str:
    """What the evaluator had of the job, in words; empty for nothing known."""
    evaluator, ledger = loss.evaluator, job.ledger
    if ledger is None or not ledger.released:
        return ""
    if units := ledger.held_by(evaluator.evaluator):
        listed = ", ".join(f"{unit:,}" for unit in units[:5]) + (" and more" if len(units) > 5 else "")
        return f"it had begun unit{'' if len(units) == 1 else 's'} {listed}"
    # The evaluators of units that have not reported yet are unknown.
    token = route(job.message.spec)
    serves = any(endpoint.endpoint == (batched_endpoint(token) or token) for endpoint in evaluator.endpoints)
    since = seconds(evaluator.announced_at) >= seconds(job.message.attempt_started_at)
    if serves and since and evaluator.units_in_flight:
        return f"some of its {counted(evaluator.units_in_flight, 'unit')} in hand may belong to this job"
    return ""


async def stop_without_dataset(registry: JobRegistry) -> None:
    """Fails jobs whose dataset was deleted: they could not be planned or finished, and would only run out of time."""
    for job in registry.in_state(PLANNING, RUNNING):
        work = job.message.spec.dataset
        if not work.dataset_id:
            continue
        try:
            if await registry.datasets.get_manifest(work.dataset_id) is not None:
                continue
        except DamagedError:
            # The evaluator that reads its rows reports that in the job.
            continue
        except UnavailableError:
            return
        async with registry.lock:
            if job.state in (PLANNING, RUNNING):
                await registry.fail(job, dataset_rules.vanished(work))


LOST_JOB = (
    "The queue lost this job, for example because NATS lost its files. Answers so far are kept; a retry runs the rest."
)
_AGAIN_S = 20.0
_FIRST_PAUSE_S, _MOST_PAUSE_S = 0.5, 10.0


_AT_ONCE = 16
LOST_ANSWERS = (
    "{:,} of {:,} answers were lost with the files of NATS and of the results service. The others are kept; a "
    "retry runs the missing ones."
)


async def reconcile(registry: JobRegistry, results: Results) -> None:
    """Ends lost jobs until cancelled: the results service may learn of some late, for instance after a restored backup.
    Raises LeadershipLostError."""
    while True:
        await end_lost_jobs(registry, results)
        await asyncio.sleep(_AGAIN_S)


async def end_lost_jobs(registry: JobRegistry, results: Results) -> None:
    """Returns when the results service has reported the live jobs once. Raises LeadershipLostError."""
    pause = _FIRST_PAUSE_S
    while True:
        heed_cancel()
        try:
            live = await results.live()
            break
        except TouchstoneError as error:
            log.info("it is not yet known which jobs are live: %s", error.message)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MOST_PAUSE_S)
    for message in live:
        if message.job_id in registry.jobs or message.job_id in registry.deleted:
            continue
        # The results service may be behind: the trail has the end of a job that the queue has since forgotten.
        told = await registry.store.last_told(message.job_id)
        newest = told.job if told is not None else message
        if newest.state not in LIVE:
            continue
        async with registry.lock:
            if newest.job_id not in registry.jobs and newest.job_id not in registry.deleted:
                registry.jobs[newest.job_id] = job = Job(newest)
                await registry.fail(job, LOST_JOB)


async def tell_again(registry: JobRegistry, results: Results, relayed: Mapping[str, str]) -> None:
    """Checks loaded jobs once, after all of their events were relayed; `relayed` has the last one's id by job. It
    publishes the lost event itself, so services that have it ignore it. Raises LeadershipLostError."""
    untold: list[Job] = []
    waiting = list(relayed)
    while waiting:
        heed_cancel()
        some, waiting = waiting[:_AT_ONCE], waiting[_AT_ONCE:]
        found = await asyncio.gather(*(_untold(registry, job_id, relayed[job_id]) for job_id in some))
        untold += [job for job in found if job is not None]
    # Those that need the results service come last: it may be away for long.
    for job in sorted(untold, key=lambda job: job.state == COMPLETED):
        heed_cancel()
        event_id = relayed[job.id]
        answers = job.state == COMPLETED and not job.deleted
        lost = await _lost_answers(registry, results, job, event_id) if answers else 0
        async with registry.lock:
            if _same(registry, job, event_id):
                log.warning("job %s: the audit trail lost its last event", job.id, extra=of_job(job.id))
                await _tell(registry, job, lost)


async def _untold(registry: JobRegistry, job_id: str, event_id: str) -> Job | None:
    """The job, unless the trail has its last event or the job has moved since."""
    newest = await registry.store.last_told(job_id)
    job = registry.jobs.get(job_id) or registry.deleted.get(job_id)
    if job is None or not _same(registry, job, event_id):
        return None
    if newest is None:
        return job
    if event_id:
        behind = _place(newest.event_id) < _place(event_id)
    else:
        behind = (newest.job.attempt, newest.job.state) < (job.message.attempt, job.state)
    return job if behind else None


def _same(registry: JobRegistry, job: Job, event_id: str) -> bool:
    known = registry.deleted if job.deleted else registry.jobs
    return known.get(job.id) is job and job.told.event_id == event_id


def _place(event_id: str) -> tuple[int, str]:
    """As results orders events."""
    return len(event_id), event_id


async def _lost_answers(registry: JobRegistry, results: Results, job: Job, event_id: str) -> int:
    """How many answers of a completed job the results service lacks. 0 if it does not know."""
    position = await registry.work.results_position()
    try:
        stored = await until_answered(
            job, lambda: _same(registry, job, event_id), lambda: results.stored(job.id, position)
        )
    except TouchstoneError as error:
        if not is_at_fault(error):
            raise
        log.warning("job %s: the results service cannot say what is stored: %s", job.id, error.message)
        return 0
    if stored is None:
        return 0
    layout = Layout(job.message.plan)
    return sum(
        max(0, layout.task_items(number) - len(stored.get(task.task, ())))
        for number, task in enumerate(job.message.plan)
    )


async def _tell(registry: JobRegistry, job: Job, lost: int) -> None:
    """A job that has lost too many answers fails instead, as it would have at its end; with fewer it is incomplete, so
    that it can be retried."""
    planned = Layout(job.message.plan).items
    if lost > registry.limits.error_share * planned:
        await registry.fail(job, LOST_ANSWERS.format(lost, planned))
    elif lost and not job.message.incomplete:
        job.message.incomplete = True
        await registry.commit(job, "scheduler", state_name(job.state))
    else:
        if not job.told.event_id:
            registry.note(job, "scheduler", state_name(job.state))
        await registry.store.tell(job.event())
