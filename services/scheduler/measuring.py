"""Sets the gauges of the queue, running jobs and their units."""

from __future__ import annotations

from collections import Counter

from services.scheduler.jobs.fleet import route
from services.scheduler.jobs.job import HOLDS_SLOT, PENDING, RUNNING
from services.scheduler.lifecycle.job_registry import JobRegistry
from services.telemetry import metrics
from services.words.enums import PRIORITIES

GAUGES = (metrics.QUEUE_JOBS, metrics.RUNNING_JOBS, metrics.JOB_SLOTS, metrics.UNITS, metrics.ENDPOINT_EVALUATORS)


async def measure(registry: JobRegistry | None) -> None:
    """Sets the gauges. A scheduler that does not lead has no registry, and neither jobs nor slots."""
    metrics.LEADING.set(registry is not None)
    if registry is None:
        metrics.QUEUE_AGE.set(0)
        for gauge in GAUGES:
            gauge.replace({})
        return
    now = registry.now()
    pending, holding = registry.in_state(PENDING), registry.in_state(*HOLDS_SLOT)
    metrics.QUEUE_JOBS.replace(Counter((PRIORITIES.of(job.message.spec.priority),) for job in pending))
    metrics.QUEUE_AGE.set(max((now - job.waiting_since for job in pending), default=0))
    kinds = Counter((metrics.BATCHES if job.message.spec.provider_batch else metrics.CALLS,) for job in holding)
    metrics.RUNNING_JOBS.replace(kinds)
    limits = registry.limits
    metrics.JOB_SLOTS.replace({(metrics.CALLS,): limits.running_jobs, (metrics.BATCHES,): limits.batch_jobs})
    units: Counter[tuple[str, str]] = Counter()
    for job in registry.in_state(RUNNING):
        if job.ledger is not None:
            endpoint = route(job.message.spec)
            job.update(now)
            offered = len(job.ledger.released)
            left = job.ledger.layout.units - job.message.progress.units_done
            units[endpoint, metrics.WAITING] += left - offered
            units[endpoint, metrics.OFFERED] += offered
    # Also the endpoints without work, so that each has its line.
    known = [endpoint.endpoint for endpoint in registry.fleet.endpoints(now)]
    for endpoint in known:
        for state in metrics.UNIT_STATES:
            units[endpoint, state] += 0
    metrics.UNITS.replace(units)
    metrics.ENDPOINT_EVALUATORS.replace(
        {(endpoint,): registry.fleet.capacity(endpoint, now).evaluators for endpoint in known}
    )
