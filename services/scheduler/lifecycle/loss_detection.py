"""What jobs depend on and may go without a word: evaluators that hold their units, datasets that they ask."""

from __future__ import annotations

import logging

from services.bus import DamagedError, batched_endpoint, of_job
from services.errors import UnavailableError
from services.scheduler.admission import dataset_rules
from services.scheduler.jobs.fleet import Loss, route
from services.scheduler.jobs.job import PLANNING, RUNNING, Job, seconds
from services.scheduler.lifecycle.job_registry import JobRegistry

log = logging.getLogger(__name__)


def tell_losses(registry: JobRegistry) -> None:
    """Logs for every job which evaluators have gone with units of it in hand."""
    for loss in registry.fleet.losses(registry.now()):
        for job in registry.in_state(RUNNING):
            if what := _held(job, loss):
                name = loss.evaluator.evaluator
                how = "was restarted" if loss.restarted else "is silent"
                log.warning(
                    "job %s: evaluator %s %s; %s, and will run again", job.id, name, how, what, extra=of_job(job.id)
                )


def _held(job: Job, loss: Loss) -> str:
    """What the evaluator had of the job, in words; empty for nothing, as far as is known."""
    evaluator, ledger = loss.evaluator, job.ledger
    if ledger is None or not ledger.released:
        return ""
    if units := ledger.held_by(evaluator.evaluator):
        listed = ", ".join(f"{unit:,}" for unit in units[:5]) + (" and more" if len(units) > 5 else "")
        return f"it had begun unit{'' if len(units) == 1 else 's'} {listed}"
    # Of units that have not reported yet nobody knows who has them.
    token = route(job.message.spec)
    serves = any(endpoint.endpoint == (batched_endpoint(token) or token) for endpoint in evaluator.endpoints)
    since = seconds(evaluator.announced_at) >= seconds(job.message.attempt_started_at)
    if serves and since and evaluator.units_in_flight:
        return f"some of its {evaluator.units_in_flight:,} units may belong to this job"
    return ""


async def stop_without_dataset(registry: JobRegistry) -> None:
    """Fails jobs whose dataset is gone: they could not be planned or finished, and would only run out of time."""
    for job in registry.in_state(PLANNING, RUNNING):
        work = job.message.spec.dataset
        if not work.dataset_id:
            continue
        try:
            if await registry.datasets.get_manifest(work.dataset_id) is not None:
                continue
        except DamagedError:
            # Who reads its rows says so in the job's own words.
            continue
        except UnavailableError:
            return
        async with registry.lock:
            if job.state in (PLANNING, RUNNING):
                await registry.fail(job, dataset_rules.vanished(work))
