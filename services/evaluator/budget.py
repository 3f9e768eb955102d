"""What a job with a budget adds to its plan: the most that one answer may cost, and units that reserve little."""

from __future__ import annotations

from services.errors import InvalidRequestError
from services.evaluator.catalogue import Catalogue
from services.evaluator.provider_batches.planning import affordable_rows
from services.evaluator.providers.most_cost import MostCost
from touchstone.v1 import job_pb2, suite_pb2

_UNIT_ITEMS = 4
_UNIT_SHARE = 0.02
"""Of the budget that a unit may reserve: the last units then come near to it."""
_NEARLY_FREE_USD = 1e-9
"""Of an answer at a price of 0: a plan's 0 means that it is not known."""


def reserve(spec: job_pb2.JobSpec, planned: job_pb2.TaskPlan, most_usd: float) -> None:
    """Notes the most that an answer of the task may cost, and makes its units small. Raises InvalidRequestError for a
    budget that not one call fits into."""
    if most_usd > spec.budget_usd:
        raise InvalidRequestError(
            f"One answer may cost up to {_dollars(most_usd)}, more than the whole budget of "
            f"{_dollars(spec.budget_usd)}. Raise the budget, or lower max_tokens.",
            "budget_usd",
        )
    planned.most_cost_usd = max(most_usd, _NEARLY_FREE_USD)
    if spec.provider_batch:
        planned.unit_size = affordable_rows(planned.unit_size, spec.budget_usd, most_usd)
        return
    affordable = int(_UNIT_SHARE * spec.budget_usd / most_usd) if most_usd else planned.unit_size
    planned.unit_size = max(1, min(planned.unit_size, _UNIT_ITEMS, affordable))


def reserve_suite(
    spec: job_pb2.JobSpec, plans: list[job_pb2.TaskPlan], catalogue: Catalogue, most_cost: MostCost
) -> None:
    """`reserve` for every task of a suite, by its dearest item. Reads and renders all of them; blocking. Raises
    InvalidRequestError."""
    work = spec.suite
    for planned in plans:
        task = catalogue.task_of(spec, planned.task)
        chosen = catalogue.selection(task, work.limit, work.seed).indexes
        scored = task.mode == suite_pb2.MODE_LOGLIKELIHOOD
        costs = (
            most_cost.scored(item.context, item.choices) if scored else most_cost.written(item.messages, spec.sampling)
            for item in task.items(chosen)
        )
        reserve(spec, planned, max(costs, default=0.0))


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.6f}".rstrip("0").ljust(5, "0")
