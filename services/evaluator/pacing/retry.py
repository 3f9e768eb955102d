"""When a failed call is tried again, and when a job gives up on its endpoint. Pure: callers bring the clock.

Three kinds of failure, three answers:

- the item's own (500s, time-outs, cut answers, while other calls work): full-jitter backoff, then an error of the item;
  at once when the job has used up its retries, so that an endpoint that fails often is not called many times over;
- the endpoint's (nothing works, or it is unreachable): no item is given up; the job fails once the outage has lasted
  `first_outage_s` before the endpoint's first success for this job in this process, `outage_s` after it;
- a rate limit: waits as asked, costs no try, and is an outage only if there is nothing else for `outage_s`.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from services.evaluator.pacing.notices import Seldom
from services.evaluator.providers.protocol.provider import ProviderError

FIRST_DELAY_S = 0.5
MOST_DELAY_S = 60.0
MOST_RETRY_AFTER_S = 120.0
UNREACHABLE_DELAY_S = 5.0
"""Longest wait between tries while an endpoint is away, so that its return is noticed."""
MOST_TRIES = 6
PATIENCE_S = 60.0
"""An item is given up sooner than this only when other calls of its job have worked meanwhile."""
MOST_ITEM_S = 600.0
FREE_RETRIES = 100
RETRIES_PER_ANSWER = 0.2
"""The retries of a job in one process: a fixed number, and more for each answered item."""
MOST_REFUSALS = 8
"""Permanently refused calls (status 400) before a first success: every item would be refused."""

Uniform = Callable[[float, float], float]
"""Draws a number between two."""

_JOBS_REMEMBERED = 256


def backoff_s(tries: int, uniform: Uniform) -> float:
    """Wait before the next try after `tries` failed ones: uniform below a doubling bound, 0.5 s to 60 s.

    Full jitter: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
    """
    return uniform(0, min(MOST_DELAY_S, FIRST_DELAY_S * 2 ** min(tries - 1, 20)))


def delay_s(error: ProviderError, failures: int, uniform: Uniform = random.uniform) -> float:
    """Wait before the next try: what the provider asked for, up to a cap and slightly spread, else backoff."""
    if error.retry_after_s is not None:
        return min(error.retry_after_s, MOST_RETRY_AFTER_S) + uniform(0, 0.25)
    wait = backoff_s(failures, uniform)
    return min(wait, UNREACHABLE_DELAY_S) if error.unreachable else wait


@dataclass(slots=True)
class Outage:
    """What one job has seen of its endpoint in this process. Times are monotonic seconds."""

    first_outage_s: float
    outage_s: float
    last_success: float | None = None
    down_since: float | None = None
    refusals: int = 0

    def success(self, now: float) -> None:
        self.last_success = now
        self.down_since = None

    def failure(self, error: ProviderError, sent: float, now: float) -> bool:
        """Notes a failed call that was sent at `sent`; True when the job must give up."""
        if not error.retryable:
            self.refusals += 1
            return self.last_success is None and self.refusals >= MOST_REFUSALS
        if self.last_success is not None and self.last_success >= sent:
            return False  # Others were answered while this one failed.
        if self.down_since is None:
            self.down_since = sent
        return now - self.down_since >= self._patience_s(error)

    def left_s(self, error: ProviderError, now: float) -> float:
        """Seconds of patience left. Waits must not exceed them, so that giving up is not late."""
        if self.down_since is None:
            return float("inf")
        return max(0.1, self.down_since + self._patience_s(error) - now)

    def _patience_s(self, error: ProviderError) -> float:
        return self.outage_s if self.last_success is not None or error.rate_limited else self.first_outage_s


@dataclass(slots=True)
class Budget:
    """Retries of one job in this process. Waits for a rate limit and during an outage are free."""

    answered: int = 0
    spent: int = 0

    @property
    def allowed(self) -> int:
        return FREE_RETRIES + int(RETRIES_PER_ANSWER * self.answered)

    def spend(self) -> bool:
        """Takes one retry; False when none is left."""
        if self.spent >= self.allowed:
            return False
        self.spent += 1
        return True


@dataclass(slots=True)
class Tries:
    """One item's calls so far. `failures` counts all failures, `spent` those that count against the item.

    `note` is a further sentence on why the item was given up; empty when the error says it all.
    """

    calls: int = 0
    failures: int = 0
    spent: int = 0
    first_failure: float = 0.0
    note: str = ""

    def failed(self, error: ProviderError, outage: Outage, budget: Budget, now: float) -> bool:
        """Notes a failure; True when the item is given up with an infrastructure error."""
        if self.failures == 0:
            self.first_failure = now
        self.failures += 1
        if not error.retryable:
            return True
        own = not (error.rate_limited or error.unreachable)
        if own:
            self.spent += 1
        # Before the endpoint's first success the outage rule alone decides.
        if outage.last_success is None or not self.spent:
            return False
        failing_s = now - self.first_failure
        others_work = outage.last_success > self.first_failure
        if self.spent >= MOST_TRIES and (others_work or failing_s >= PATIENCE_S):
            return True
        if failing_s >= MOST_ITEM_S:
            return True
        # While nothing works the outage rule decides for the whole job, so waiting costs no retries.
        if own and outage.down_since is None and not budget.spend():
            self.note = (
                f"The call was not retried: the job has used up its {budget.allowed:,} retries in this evaluator."
            )
            return True
        return False


@dataclass(slots=True)
class Trouble:
    """The state of one job at one attempt."""

    outage: Outage
    budget: Budget = field(default_factory=Budget)
    failing: Seldom = field(default_factory=Seldom)
    loading: Seldom = field(default_factory=Seldom)


class Troubles:
    """The states of the latest jobs. `first_outage_s` and `outage_s` as in Outage."""

    def __init__(self, first_outage_s: float, outage_s: float) -> None:
        self._patience_s = first_outage_s, outage_s
        self._jobs: OrderedDict[tuple[str, int], Trouble] = OrderedDict()

    def of(self, job: tuple[str, int]) -> Trouble:
        """By job id and attempt."""
        if job not in self._jobs:
            self._jobs[job] = Trouble(Outage(*self._patience_s))
            while len(self._jobs) > _JOBS_REMEMBERED:
                self._jobs.popitem(last=False)
        self._jobs.move_to_end(job)
        return self._jobs[job]
