"""The budget of a job: whether its cost can be known, and which units may still go out. Pure. Amounts are US dollars.

No call begins that could pass the budget: a unit goes out only when what was spent, the most that everything out may
cost, and the unit's own most fit together. Calls that were lost with their evaluator may have been charged, so they
always count at their highest cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum

from services import numbers
from services.errors import ConflictError, InvalidRequestError
from services.words import refusals
from services.words.jobs import calls_nobody
from services.words.refusals import counted
from touchstone.v1 import dataset_pb2, endpoint_pb2, job_pb2, job_record_pb2, suite_pb2

_FIELD = "spec.budget_usd"
_ROUNDING = 1e-9


def check_form(spec: job_pb2.JobSpec, dataset: dataset_pb2.Dataset | None) -> None:
    """Checks what does not need the endpoint. Raises InvalidRequestError."""
    if not spec.budget_usd or calls_nobody(spec):
        return
    bounded = spec.sampling.HasField("max_tokens") or spec.mode == suite_pb2.MODE_LOGLIKELIHOOD
    if not bounded and not (dataset is not None and dataset.most_max_tokens):
        raise InvalidRequestError(
            "A budget needs max_tokens, which limits the cost of an answer. Set sampling.max_tokens"
            + (", or max_tokens in every row." if dataset is not None else "."),
            "spec.sampling.max_tokens",
        )


def check_prices(spec: job_pb2.JobSpec, model: endpoint_pb2.Model) -> None:
    """Raises InvalidRequestError for a listed model without prices."""
    if spec.budget_usd and not (model.HasField("input_price") and model.HasField("output_price")):
        raise InvalidRequestError(refusals.prices_unknown(spec.endpoint, spec.model), _FIELD)


def check_plan(spec: job_pb2.JobSpec, tasks: Iterable[job_pb2.TaskPlan]) -> None:
    """Raises ConflictError when a budget is set and the most that an answer may cost is unknown for some task."""
    if spec.budget_usd and not calls_nobody(spec) and not all(task.most_cost_usd > 0 for task in tasks):
        raise ConflictError(refusals.prices_unknown(spec.endpoint, spec.model))


@dataclass(frozen=True, slots=True)
class Spending:
    """What a job has cost. `spent`: answers, at their prices. `lost`: the most that calls of unknown price may have
    cost. `reserved`: the most that calls under way may still cost."""

    spent: float = 0.0
    lost: float = 0.0
    reserved: float = 0.0

    @property
    def most(self) -> float:
        return self.spent + self.lost + self.reserved


def affordable(
    budget: float, spending: Spending, units: Sequence[tuple[int, int]], costs: Sequence[float]
) -> list[tuple[int, int]]:
    """The first of `units` that may go out together; `costs` is the most that each may cost. A budget of 0 means no
    limit."""
    if not budget:
        return list(units)
    total = spending.most
    fitting: list[tuple[int, int]] = []
    for unit, cost in zip(units, costs, strict=True):
        total += cost
        if total > budget * (1 + _ROUNDING):
            break
        fitting.append(unit)
    return fitting


def used_up(budget: float, spending: Spending, unit_cost: float, done: int, total: int) -> str:
    """Why a job ends when its next unit, at `unit_cost` for all of its items, may exceed its budget."""
    lost = f", and lost calls may have cost up to {dollars(spending.lost)}" if spending.lost else ""
    return (
        f"The budget of {dollars(budget)} does not allow more calls: {dollars(spending.spent)} was spent on "
        f"{done:,} of {counted(total, 'item')}{lost}, and the next ones may cost up to {dollars(unit_cost)}. "
        "Answers so far are kept. To continue, re-run this job with a higher budget: a new job reuses its answers "
        "and runs the rest."
    )


def check_retry(job: job_pb2.Job) -> None:
    """Raises ConflictError when a further attempt could not make one call: the budget is the whole job's."""
    if not pays_a_call(job, job.spec.budget_usd):
        raise ConflictError(
            f"Job {job.job_id} has used up its budget of {dollars(job.spec.budget_usd)}. Re-run it with a higher "
            "budget: a new job reuses its answers and runs the rest."
        )


def pays_a_call(job: job_pb2.Job, budget_usd: float) -> bool:
    """Whether a further attempt could make one call within this budget of the whole job, as far as is known."""
    spent = job.progress.cost_usd + job.progress.reserved_usd
    costs = [task.most_cost_usd for task in job.plan]
    return not budget_usd or not costs or spent + min(costs) <= budget_usd * (1 + _ROUNDING)


def dollars(amount: float) -> str:
    """In words: whole cents from a dollar on, two significant digits below that."""
    if amount >= 1 or amount <= 0:
        return f"${max(0.0, amount):,.2f}"
    digits = max(2, 1 - math.floor(math.log10(amount)))
    return f"${amount:.{digits}f}"


class Bill:
    """The costs of all attempts, without the units in flight. `costs` are known prices, added up at once so that no
    digits are lost; `lost_calls` is the most calls without a known price, and `lost` the most that those may have
    cost."""

    def __init__(self) -> None:
        self.costs: list[float] = []
        self.lost = 0.0
        self.lost_calls = 0

    def pay(self, costs: Iterable[float]) -> None:
        """Adds known prices."""
        self.costs += costs

    def lose(self, calls: int, most: float) -> None:
        """Adds calls whose price will never be known, with the most that each may have cost."""
        self.lost_calls += calls
        self.lost += most * calls

    def carry(self, before: job_pb2.Progress) -> None:
        """Takes over what earlier attempts have cost."""
        self.costs = _known(before.cost_usd if before.HasField("cost_usd") else None)
        self.lost, self.lost_calls = fsum(_known(before.reserved_usd)), before.lost_calls

    def save(self, record: job_record_pb2.JobRecord) -> None:
        record.ClearField("cost_usd")
        if self.costs:
            record.cost_usd = fsum(self.costs)
        record.lost_usd, record.lost_calls = self.lost, self.lost_calls

    def load(self, record: job_record_pb2.JobRecord) -> None:
        self.costs = _known(record.cost_usd if record.HasField("cost_usd") else None)
        self.lost, self.lost_calls = fsum(_known(record.lost_usd)), record.lost_calls


def _known(usd: float | None) -> list[float]:
    """The sum; empty for an impossible one, as earlier versions stored them."""
    known = numbers.job_usd(usd)
    return [] if known is None else [known]
