"""The gate's verdict on a comparison. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from services.words.refusals import counted
from touchstone.v1 import comparison_pb2, decision_pb2, job_pb2
from touchstone_client.command.gate.exits import PASSED, REGRESSION, UNDECIDED, UNUSABLE

ALPHA = 0.05
"""The error rate of each of the gate's two one-sided tests. Compare is called with 2 · ALPHA: the ends of its two-sided
interval at 90 % are the ends of the one-sided ones at 95 %, and a two-sided p of 0.10 is a one-sided one of 0.05."""

_NOT_WORSE = (job_pb2.DECISION_VERDICT_BETTER, job_pb2.DECISION_VERDICT_EQUIVALENT)
_LEAST = 0.0001
"""Smallest figure that four decimals show."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The candidate against the baseline on the suite or on one task; `difference` is candidate − baseline.

    `low` and `high` each end a one-sided 95 % interval. `reason` says why they are missing.
    """

    task: str
    metric: str
    difference: float | None
    low: float | None
    high: float | None
    p_value: float | None
    """Two-sided."""
    worse: bool
    """Whether it is shown to be worse; for tasks, after the family's correction."""
    n: int
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    words: str
    findings: tuple[Finding, ...] = ()
    """The suite first; empty where nothing was compared."""


def judge(
    compared: comparison_pb2.CompareResponse, candidate: str, baseline: str, metric: str, max_drop: float
) -> Outcome:
    """The outcome for two jobs: non-inferiority first, since a drop may be proved and proved to be small."""
    pairs = [found for found in compared.differences if {found.a, found.b} == {candidate, baseline}]
    tasks = tuple(_finding(found, candidate) for found in pairs if found.task)
    of_suite = [_finding(found, candidate) for found in pairs if not found.task and found.metric == metric]
    if not of_suite:
        return Outcome(UNUSABLE, f"The comparison does not include {metric}. Choose another --metric.", tasks)
    whole, findings = of_suite[0], (of_suite[0], *tasks)
    for run in compared.runs:
        if why := run.not_ranked_reason or run.caution:
            which = "candidate's" if run.job_id == candidate else "baseline's"
            return Outcome(UNUSABLE, f"The {which} score cannot be relied on: {why}.", findings)
    if whole.reason or whole.difference is None or whole.low is None or whole.high is None:
        why = whole.reason or "the difference is not defined"
        return Outcome(UNUSABLE, f"The runs cannot be compared: {why}.", findings)
    drop, bound, change = -whole.difference, max(0.0, -whole.low), _change(whole.difference)
    if whole.low > -max_drop:
        shown = f"the drop is less than {max(bound, _LEAST):.4f}" if bound else "there is no drop"
        return Outcome(PASSED, f"{change}. At 95 % confidence {shown}; {max_drop:g} was allowed.", findings)
    if whole.worse:
        return Outcome(
            REGRESSION,
            f"A significant drop of {drop:.4f}; at 95 % confidence it is more than {max(0.0, -whole.high):.4f}. "
            f"It is not shown to be less than {max_drop:g}.",
            findings,
        )
    return Outcome(
        UNDECIDED,
        f"{change}. At 95 % confidence a drop could be as large as {bound:.4f}, where {max_drop:g} was "
        "allowed, and no drop is shown either. Use more items or a larger --max-drop.",
        findings,
    )


def judge_decision(found: decision_pb2.Decision, max_drop: float, why: str) -> Outcome:
    """The outcome of a decision with `max_drop` as its margin: it passes where the interval, which holds at all looks,
    rules out a drop that large. `why` says why there is no verdict."""
    if not found.verdict or not (found.HasField("difference") and found.HasField("low") and found.HasField("high")):
        return Outcome(UNUSABLE, f"The decision ended without a verdict: {why.rstrip('.')}.")
    if found.failed:
        # Runs that lack answers are not compared, either.
        some = f"{found.failed:,} of {counted(found.decided_at + found.failed, 'item')}"
        have = "has" if found.failed == 1 else "have"
        words = f"The decision cannot be relied on: {some} {have} no answer of both models after all retries."
        return Outcome(UNUSABLE, words)
    change, bound = _change(found.difference), max(0.0, -found.low)
    after = f"decided after {found.decided_at:,} of {found.items_total:,} items"
    if found.verdict in _NOT_WORSE or found.low > -max_drop:
        shown = f"the drop is less than {max(bound, _LEAST):.4f}" if bound else "there is no drop"
        return Outcome(PASSED, f"{change}, {after}: {shown}; {max_drop:g} was allowed.")
    if found.verdict == job_pb2.DECISION_VERDICT_WORSE:
        return Outcome(REGRESSION, f"{change}, {after}. It is not shown to be less than {max_drop:g}.")
    return Outcome(
        UNDECIDED,
        f"{change}, {after}. A drop could be as large as {bound:.4f}, where {max_drop:g} was allowed, and the "
        "rest would hardly show one. Use a larger suite or --max-drop.",
    )


def _change(difference: float) -> str:
    if not difference:
        return "No difference"
    size = f"{abs(difference):.4f}" if abs(difference) >= _LEAST else f"less than {_LEAST:g}"
    return f"A {'drop' if difference < 0 else 'rise'} of {size}"


def _finding(found: comparison_pb2.Difference, candidate: str) -> Finding:
    first = found.a == candidate
    known = found.HasField("difference") and found.HasField("low") and found.HasField("high")
    difference = low = high = None
    if known:
        difference = found.difference if first else -found.difference
        low, high = (found.low, found.high) if first else (-found.high, -found.low)
    p = found.p_value if found.HasField("p_value") else None
    decided = found.p_adjusted if found.HasField("p_adjusted") else p
    # Without a p-value the interval is the test.
    significant = decided <= 2 * ALPHA if decided is not None else high is not None and high < 0
    return Finding(
        task=found.task,
        metric=found.metric,
        difference=difference,
        low=low,
        high=high,
        p_value=p,
        worse=significant and difference is not None and difference < 0,
        n=found.n,
        reason=found.reason,
    )
