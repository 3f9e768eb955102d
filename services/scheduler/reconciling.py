"""Jobs that the results service calls live and that the queue does not know: their records were lost with NATS, or it
was restored from an older backup. They can go on no more, so each ends as failed with the reason, and may be retried.
"""

from __future__ import annotations

import asyncio
import logging

from services.bus import heed_cancel
from services.errors import TouchstoneError
from services.scheduler.board import Board
from services.scheduler.job import LIVE, Job
from services.scheduler.ports import Results

log = logging.getLogger(__name__)

LOST = "The queue lost this job, as when NATS loses its files. What was answered is kept; a retry runs the rest."
_AGAIN_S = 20.0
_FIRST_PAUSE_S, _MOST_PAUSE_S = 0.5, 10.0


async def reconcile(board: Board, results: Results) -> None:
    """Ends lost jobs until cancelled: results may learn of some late, as after a restored backup. Raises
    LeadershipLostError."""
    while True:
        await end_lost_jobs(board, results)
        await asyncio.sleep(_AGAIN_S)


async def end_lost_jobs(board: Board, results: Results) -> None:
    """Returns when results has told once which jobs are live. Raises LeadershipLostError."""
    pause = _FIRST_PAUSE_S
    while True:
        heed_cancel()
        try:
            live = await results.live()
            break
        except TouchstoneError as error:
            log.info("which jobs are live is not known yet: %s", error.message)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MOST_PAUSE_S)
    for message in live:
        if message.job_id in board.jobs:
            continue
        # Results may be behind: the trail has the end of a job that the queue has forgotten since.
        told = await board.store.last_told(message.job_id)
        newest = told.job if told is not None else message
        if newest.state not in LIVE:
            continue
        async with board.lock:
            if newest.job_id not in board.jobs:
                board.jobs[newest.job_id] = job = Job(newest)
                await board.fail(job, LOST)
