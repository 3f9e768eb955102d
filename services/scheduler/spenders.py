"""Jobs whose budget is used up."""

from __future__ import annotations

from services.scheduler import budget
from services.scheduler.job import Job
from services.scheduler.reuse import calls_nobody


def used_up(job: Job) -> str | None:
    """Why a job with a budget can make no more calls; None while it can, or some are under way."""
    ledger, limit = job.ledger, job.message.spec.budget_usd
    if not limit or ledger is None or ledger.released or calls_nobody(job.message.spec):
        return None
    units = ledger.unreleased(1)
    if not units or budget.affordable(limit, ledger.spending(), units, [ledger.unit_cost(units[0][0])]):
        return None
    cost = ledger.unit_cost(units[0][0])
    return budget.used_up(limit, ledger.spending(), cost, ledger.items_done, ledger.layout.items)
