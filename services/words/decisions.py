"""What a decision says, in words. Pure."""

from __future__ import annotations

from touchstone.v1 import job_pb2

DEFAULT_ERROR = 0.05
LEAST_ERROR, MOST_ERROR = 0.0001, 0.5
_SAID = {
    job_pb2.DECISION_VERDICT_BETTER: "{candidate} is better than {baseline}",
    job_pb2.DECISION_VERDICT_WORSE: "{candidate} is worse than {baseline}",
    job_pb2.DECISION_VERDICT_EQUIVALENT: "{candidate} and {baseline} differ by less than {margin:g}",
    job_pb2.DECISION_VERDICT_NO_DIFFERENCE: (
        "{candidate} and {baseline} are not shown to differ, and all items are unlikely to show it"
    ),
}
_OPEN = "It is not decided whether {candidate} is better than {baseline}"


def said(verdict: job_pb2.DecisionVerdict, candidate: str, baseline: str, margin: float) -> str:
    """What was found of the two, which are called that, as a sentence without its end."""
    return _SAID.get(verdict, _OPEN).format(candidate=candidate, baseline=baseline, margin=margin)
