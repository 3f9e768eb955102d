"""Headers of messages: what a service needs of one without its body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from services import numbers
from services.words.jobs import FINISHED
from touchstone.v1 import job_pb2

KIND_ITEMS, KIND_PLAN, KIND_FAULT = "items", "plan", "fault"
KIND_RETURNED = "returned"
"""A unit of a job with a budget left WORK undone: the scheduler, which counts the cost, decides whether to run it
again."""
KIND_BEGUN = "begun"
"""A call of such a unit is about to begin. `items` counts the unit's items so far that are stored or have begun."""
_MOST_COUNT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ResultHeaders:
    """What the scheduler needs of a RESULTS message without its body.

    `items`, `errors`, `output_tokens`, `untold`, `cost`, `unpriced` and `retries` count this message only; `done` marks
    the unit's last message. `untold` counts answers from calls whose generated tokens are unknown. `cost` is in
    micro-dollars, None if no answer's price is known; `unpriced` counts items from calls of unknown cost, `retries`
    their calls beyond the first. `evaluator` is the sender. `counted`, for a returned unit: each of its calls was noted
    as KIND_BEGUN before it began.
    """

    kind: str
    attempt: int
    delivery: int = 1
    task: str = ""
    items: int = 0
    errors: int = 0
    output_tokens: int = 0
    done: bool = False
    cost: float | None = None
    unpriced: int = 0
    retries: int = 0
    evaluator: str = ""
    untold: int = 0
    counted: bool = False

    def encode(self) -> dict[str, str]:
        headers = {
            "Touchstone-Kind": self.kind,
            "Touchstone-Attempt": str(self.attempt),
            "Touchstone-Delivery": str(self.delivery),
            "Touchstone-Task": self.task,
            "Touchstone-Items": str(self.items),
            "Touchstone-Errors": str(self.errors),
            "Touchstone-Tokens": str(self.output_tokens),
            "Touchstone-Untold": str(self.untold),
            "Touchstone-Done": "1" if self.done else "0",
            "Touchstone-Unpriced": str(self.unpriced),
            "Touchstone-Retries": str(self.retries),
            "Touchstone-Evaluator": self.evaluator,
            "Touchstone-Counted": "1" if self.counted else "0",
        }
        return headers if self.cost is None else headers | {"Touchstone-Cost": repr(self.cost)}

    @classmethod
    def decode(cls, headers: dict[str, str] | None) -> ResultHeaders:
        """Raises ValueError for impossible counts."""
        h = headers or {}
        told = h.get("Touchstone-Cost")
        cost = _micro_dollars(told)
        items, unpriced = _count(h, "Touchstone-Items"), _count(h, "Touchstone-Unpriced")
        return cls(
            kind=h.get("Touchstone-Kind", ""),
            attempt=_count(h, "Touchstone-Attempt"),
            delivery=_count(h, "Touchstone-Delivery", 1),
            task=h.get("Touchstone-Task", ""),
            items=items,
            errors=_count(h, "Touchstone-Errors"),
            output_tokens=_count(h, "Touchstone-Tokens"),
            untold=_count(h, "Touchstone-Untold"),
            done=h.get("Touchstone-Done") == "1",
            cost=cost,
            # An impossible sum, as earlier versions sent it, says nothing about any of its answers.
            unpriced=items if told is not None and cost is None else unpriced,
            retries=_count(h, "Touchstone-Retries"),
            evaluator=h.get("Touchstone-Evaluator", ""),
            counted=h.get("Touchstone-Counted") == "1",
        )


def _micro_dollars(told: str | None) -> float | None:
    try:
        return None if told is None else numbers.real(float(told), 0.0, numbers.MOST_JOB_USD * 1e6)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class JobHeaders:
    """State, attempt and dataset, if any, in the headers of every job record, so that no other service parses the
    scheduler's records."""

    state: job_pb2.Job.State
    attempt: int
    dataset: str = ""

    def is_past(self, attempt: int) -> bool:
        """Whether the job is finished or beyond this attempt."""
        return self.state in FINISHED or self.attempt > attempt

    def encode(self) -> dict[str, str]:
        return {
            "Touchstone-State": str(int(self.state)),
            "Touchstone-Attempt": str(self.attempt),
            "Touchstone-Dataset": self.dataset,
        }

    @classmethod
    def decode(cls, headers: dict[str, str] | None) -> JobHeaders:
        """Unreadable headers count as unspecified, of attempt 0: such a job neither runs nor is finished."""
        h = headers or {}
        try:
            state = cast(job_pb2.Job.State, _count(h, "Touchstone-State"))
            return cls(state, _count(h, "Touchstone-Attempt"), h.get("Touchstone-Dataset", ""))
        except ValueError:
            return cls(job_pb2.Job.STATE_UNSPECIFIED, 0, h.get("Touchstone-Dataset", ""))


def _count(headers: dict[str, str], name: str, default: int = 0) -> int:
    """Raises ValueError for what is not a number from 0 to 2^31 - 1."""
    count = int(headers.get(name, default))
    if not 0 <= count <= _MOST_COUNT:
        raise ValueError(f"{name} must be between 0 and {_MOST_COUNT}; it is {count}.")
    return count
