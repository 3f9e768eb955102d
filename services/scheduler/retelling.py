"""Jobs whose last event the audit trail has lost: NATS cuts off what it cannot read. Results learns of jobs from the
trail alone, and its database may be lost as well. So the queue, which has the job, tells the event again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from services.bus import heed_cancel, is_at_fault, of_job
from services.errors import TouchstoneError
from services.scheduler.asking import until_answered
from services.scheduler.board import Board
from services.scheduler.job import COMPLETED, Job, state_name
from services.scheduler.plan import Layout
from services.scheduler.ports import Results

log = logging.getLogger(__name__)

_AT_ONCE = 16
LOST = (
    "{:,} of {:,} answers were lost with the files of NATS and of the results service. "
    "The others are kept; a retry runs what is missing."
)


async def tell_again(board: Board, results: Results, relayed: Mapping[str, str]) -> None:
    """Looks once at jobs that were loaded, all of whose events were relayed; `relayed` has the last one's id by job.
    It is the lost event that is told, so whoever has it takes no notice. Raises LeadershipLostError."""
    untold: list[Job] = []
    waiting = list(relayed)
    while waiting:
        heed_cancel()
        some, waiting = waiting[:_AT_ONCE], waiting[_AT_ONCE:]
        found = await asyncio.gather(*(_untold(board, job_id, relayed[job_id]) for job_id in some))
        untold += [job for job in found if job is not None]
    # Those for which results must be asked come last: it may be away for long.
    for job in sorted(untold, key=lambda job: job.state == COMPLETED):
        heed_cancel()
        event_id = relayed[job.id]
        lost = await _lost_answers(board, results, job, event_id) if job.state == COMPLETED else 0
        async with board.lock:
            if _same(board, job, event_id):
                log.warning("job %s: the audit trail lost its last event", job.id, extra=of_job(job.id))
                await _tell(board, job, lost)


async def _untold(board: Board, job_id: str, event_id: str) -> Job | None:
    """The job, unless the trail has its last event or the job has moved since."""
    newest = await board.store.last_told(job_id)
    job = board.jobs.get(job_id)
    if job is None or not _same(board, job, event_id):
        return None
    if newest is None:
        return job
    if event_id:
        behind = _place(newest.event_id) < _place(event_id)
    else:
        behind = (newest.job.attempt, newest.job.state) < (job.message.attempt, job.state)
    return job if behind else None


def _same(board: Board, job: Job, event_id: str) -> bool:
    return board.jobs.get(job.id) is job and job.told.event_id == event_id


def _place(event_id: str) -> tuple[int, str]:
    """As results orders events."""
    return len(event_id), event_id


async def _lost_answers(board: Board, results: Results, job: Job, event_id: str) -> int:
    """How many answers of a completed job results does not have. 0 where it cannot tell."""
    position = await board.work.results_position()
    try:
        stored = await until_answered(
            job, lambda: _same(board, job, event_id), lambda: results.stored(job.id, position)
        )
    except TouchstoneError as error:
        if not is_at_fault(error):
            raise
        log.warning("job %s: results does not tell what is stored: %s", job.id, error.message)
        return 0
    if stored is None:
        return 0
    layout = Layout(job.message.plan)
    return sum(
        max(0, layout.task_items(number) - len(stored.get(task.task, ())))
        for number, task in enumerate(job.message.plan)
    )


async def _tell(board: Board, job: Job, lost: int) -> None:
    """A job that has lost too many answers fails instead, as it would have at its end; with fewer it is incomplete, so
    that it can be retried."""
    planned = Layout(job.message.plan).items
    if lost > board.limits.error_share * planned:
        await board.fail(job, LOST.format(lost, planned))
    elif lost and not job.message.incomplete:
        job.message.incomplete = True
        await board.commit(job, "scheduler", state_name(job.state))
    else:
        if not job.told.event_id:
            board.note(job, "scheduler", state_name(job.state))
        await board.store.tell(job.event())
