"""The comparison as the gate reports it: the candidate first, and both runs named by their roles. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from touchstone.v1 import comparison_pb2

_TURNED = {
    comparison_pb2.VERDICT_BETTER: comparison_pb2.VERDICT_WORSE,
    comparison_pb2.VERDICT_WORSE: comparison_pb2.VERDICT_BETTER,
}
_WAYS: tuple[Callable[[comparison_pb2.ComparedRun], str], ...] = (
    lambda run: run.name or run.model,
    lambda run: run.name or f"{run.model}@{run.endpoint}",
    lambda run: f"{run.model} (configuration {run.configuration})",
    lambda run: f"{run.model} (job {run.job_id})",
)
"""What the service's sentences call a run: the first of these that distinguishes the two."""


def candidate_first(
    compared: comparison_pb2.CompareResponse, candidate: str, names: Mapping[str, str]
) -> comparison_pb2.CompareResponse:
    """A copy in which every difference is candidate − baseline, and sentences use `names` for the runs."""
    made = comparison_pb2.CompareResponse()
    made.CopyFrom(compared)
    made.runs.sort(key=lambda run: run.job_id != candidate)
    for found in made.differences:
        if found.b == candidate:
            _turn(found)
    renamed = _renaming(made.runs, names)
    for found in made.differences:
        found.words, found.reason = renamed(found.words), renamed(found.reason)
    made.notes[:] = [renamed(note) for note in compared.notes]
    return made


def _turn(found: comparison_pb2.Difference) -> None:
    found.a, found.b = found.b, found.a
    found.only_a, found.only_b = found.only_b, found.only_a
    found.verdict = _TURNED.get(found.verdict, found.verdict)
    # 0 − x, as −x turns 0 into a negative zero.
    if found.HasField("difference"):
        found.difference = 0 - found.difference
    if found.HasField("low") and found.HasField("high"):
        found.low, found.high = 0 - found.high, 0 - found.low


def _renaming(runs: Sequence[comparison_pb2.ComparedRun], names: Mapping[str, str]) -> Callable[[str], str]:
    called = next(({way(run): names[run.job_id] for run in runs} for way in _WAYS if len({*map(way, runs)}) > 1), {})
    if not called:
        return lambda sentence: sentence
    any_of = "|".join(re.escape(label) for label in sorted(called, key=len, reverse=True))
    found = re.compile(rf"(?<!\S)({any_of})(?=[\s,.:;]|$)")
    return lambda sentence: found.sub(lambda match: called[match[1]], sentence)
