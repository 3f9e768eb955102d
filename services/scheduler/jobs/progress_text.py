"""What a live job is doing, and why it no longer makes calls, in words for a user. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from services.bus import BatchStage
from services.scheduler.jobs import budget
from services.scheduler.jobs.fleet import Fleet, route
from services.scheduler.jobs.job import FINALIZING, PENDING, PLANNING, RUNNING, Job
from services.words.jobs import calls_nobody


def describe(
    job: Job, waiting: Sequence[str], fleet: Fleet, now: float, *, paused: bool = False, apart: bool = False
) -> None:
    """Sets the current step and the place in the queue. `waiting` lists pending job ids in starting order; `paused`
    says that no units are released because a disk is full, `apart` that the job waits for others of its experiment."""
    progress = job.message.progress
    spec = job.message.spec
    needed = "an evaluator" if calls_nobody(spec) else f"an evaluator that serves {spec.endpoint}"
    lacking = fleet.lacking(job.message, now)
    if lacking:
        needed += f"{' and' if not calls_nobody(spec) else ' that'} has {lacking}"
    if fleet.only_drained(route(spec), now):
        needed += f"{' and' if lacking or not calls_nobody(spec) else ' that'} is not drained"
    served = fleet.capacity(route(spec), now).evaluators > 0 and not lacking
    progress.queue_position = waiting.index(job.id) + 1 if job.id in waiting else 0
    if job.state == PENDING:
        place = progress.queue_position
        progress.current_step = f"Waiting in the queue, place {place}" if place else "Waiting in the queue"
        if apart:
            others = "all answers" if spec.HasField("judging") else "the judges"
            progress.current_step = f"Waiting for {others} of experiment {spec.experiment_name}"
        elif not served:
            progress.current_step = f"Waiting for {needed}"
    elif paused and job.state in (PLANNING, RUNNING):
        progress.current_step = "Paused: the disk is full"
    elif lacking or (job.state == RUNNING and not served):
        progress.current_step = f"Waiting for {needed}"
    elif job.state == PLANNING:
        progress.current_step = "Reading the data"
    elif job.state == RUNNING and spec.provider_batch:
        progress.current_step = _batches(job)
    elif job.state == RUNNING:
        names = [task.task for task in progress.tasks if task.running][:3]
        listed = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
        unit = min(progress.units_done + 1, progress.units_total)
        progress.current_step = f"{listed or 'Starting'}, unit {unit:,} of {progress.units_total:,}"
    elif job.state == FINALIZING:
        progress.current_step = "Scoring: checking the items and computing metrics"


def _batches(job: Job) -> str:
    """What a job that uses a provider's batch API waits for."""
    ledger = job.ledger
    under_way = [record for unit, record in job.batches.items() if ledger is not None and not ledger.is_done(unit)]
    if ledger is None or not under_way:
        return "Sending the rows to the provider's batch API"
    begun = [record for record in under_way if record.stage in (BatchStage.WAITING, BatchStage.READING)]
    if not begun:
        held_up = next((record.words for record in under_way if record.words), "")
        return held_up or f"Sending the rows to {under_way[0].label}'s batch API"
    # Otherwise answers that have been read are counted twice: in the provider's figures and in ours.
    beyond = sum(max(0, record.done + record.failed - ledger.counted(record.unit)) for record in begun)
    done, total = min(ledger.items_done + beyond, ledger.layout.items), ledger.layout.items
    batches = "batch" if len(begun) == 1 else f"{len(begun)} batches"
    return f"Waiting for {begun[0].label}'s {batches}: {done:,} of {total:,} done"


def budget_used_up(job: Job) -> str | None:
    """Why a job with a budget can no longer make calls; None while it can, or some are under way."""
    ledger, limit = job.ledger, job.message.spec.budget_usd
    if not limit or ledger is None or ledger.released or calls_nobody(job.message.spec):
        return None
    units = ledger.unreleased(1)
    if not units or budget.affordable(limit, ledger.spending(), units, [ledger.unit_cost(units[0][0])]):
        return None
    cost = ledger.unit_cost(units[0][0])
    return budget.used_up(limit, ledger.spending(), cost, ledger.items_done, ledger.layout.items)
