"""Which runs may be compared, and why others may not. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.results.comparison.selection.runs import Run
from services.words import scorers, suites
from services.words.enums import MODES
from touchstone.v1 import job_pb2
from touchstone.v1.suite_pb2 import Weighting

_SHOWN_CHARACTERS = 12
"""Shown characters of a revision or a hash."""


@dataclass(frozen=True, slots=True)
class Comparability:
    """Runs are identified by index. `tasks` are those that all runs have, in the suite's order; `left_out` the rest.

    `cohorts[task][run]` numbers, from 0, the sets of runs that are comparable with each other on a task.
    `plans[task][run]` is the run's plan, with only the metrics that its whole cohort defines in the same way.
    `weighting` is the rule of the suite's figures of all runs; UNSPECIFIED if they have a single task in common.
    """

    runs: Sequence[Run]
    tasks: Sequence[str]
    left_out: Sequence[str]
    cohorts: Mapping[str, Sequence[int]]
    plans: Mapping[str, Sequence[job_pb2.TaskPlan]]
    weighting: Weighting

    def reason(self, a: int, b: int, tasks: Sequence[str]) -> str:
        """Why two runs are not comparable on these tasks, as part of a sentence; "" if they are."""
        told: dict[str, list[str]] = {}
        for task in tasks:
            if self.cohorts[task][a] != self.cohorts[task][b]:
                why = difference_of_task(self.runs[a], self.runs[b], task)
                told.setdefault(why, []).append(self.title(task))
        # A reason that applies to every task is given once, without naming them.
        return "; ".join(
            why if len(titles) == len(tasks) else f"{_some(titles)}: {why}" for why, titles in told.items()
        )

    def title(self, task: str) -> str:
        return self.runs[0].plans[task].title or task


def compare(runs: Sequence[Run], asked: Weighting = suites.UNSPECIFIED) -> Comparability:
    """`asked` is the rule to compare the suite's figures by; without one, the rule of the newest run."""
    order = {task: None for run in runs for task in run.plans}
    tasks = [task for task in order if all(task in run.plans for run in runs)]
    cohorts = {task: _cohorts(runs, task) for task in tasks}
    newest = max(runs, key=lambda run: (run.completed_at.ToNanoseconds(), run.job_id))
    own = suites.of_plans([newest.plans[task] for task in tasks])
    return Comparability(
        runs,
        tasks,
        left_out=[task for task in order if task not in tasks],
        cohorts=cohorts,
        plans={task: _shared_plans([run.plans[task] for run in runs], cohorts[task]) for task in tasks},
        weighting=own and (asked or own),
    )


def difference_of_task(a: Run, b: Run, task: str) -> str:
    """Why two runs are not comparable on a task, as part of a sentence; "" if they are."""
    one, other = a.plans[task], b.plans[task]
    if a.mode != b.mode:
        return f"one ran in {MODES.of(a.mode)} mode, the other in {MODES.of(b.mode)} mode"
    if one.data.revision != other.data.revision and not _same_items(one, other):
        return f"the data have the revisions {_short(one.data.revision)} and {_short(other.data.revision)}"
    if one.version != other.version:
        return f"the prompts have the versions {one.version or 'none'} and {other.version or 'none'}"
    if a.job.spec.suite.shots != b.job.spec.suite.shots:
        return f"they have {a.job.spec.suite.shots} and {b.job.spec.suite.shots} examples in the prompt"
    if one.prompt_hash != other.prompt_hash:
        return f"the prompts differ ({_short(one.prompt_hash)} and {_short(other.prompt_hash)})"
    if scorers.all_of_job(a.job.spec) != scorers.all_of_job(b.job.spec):
        return (
            f"the answers are scored differently ({scorers.words(a.job.spec)}, and {scorers.words(b.job.spec)}); "
            "re-score one of them like the other"
        )
    if max(1, one.repeats) != max(1, other.repeats):
        return f"they have {max(1, one.repeats)} and {max(1, other.repeats)} answers per item"
    readings = scorers.reading_of(a.job.spec, one), scorers.reading_of(b.job.spec, other)
    if readings[0] != readings[1]:
        stricter = a if readings[0] < readings[1] else b
        return (
            f"the answers were read by the {scorers.layer(readings[0])} and by the {scorers.layer(readings[1])} "
            f"layer; re-score the stricter ones with `touchstone rescore {stricter.job_id} --reading "
            f"{scorers.layer(max(readings))}`"
        )
    if one.scorer_version != other.scorer_version:
        older = min((a, b), key=lambda run: (run.completed_at.ToNanoseconds(), run.job_id))
        return (
            f"the answers were scored by versions {one.scorer_version or 'none'} and "
            f"{other.scorer_version or 'none'} of the scorer; re-score the older ones with `touchstone rescore "
            f"{older.job_id}`"
        )
    return ""


def _cohorts(runs: Sequence[Run], task: str) -> list[int]:
    """Numbers the sets of runs that are comparable with each other.

    Data of one revision are comparable, and so are data of another revision with exactly the same items: through a
    third run, both may apply.
    """
    numbers = list(range(len(runs)))
    first: dict[tuple[object, ...], int] = {}
    for place, run in enumerate(runs):
        plan = run.plans[task]
        scored = tuple(one.SerializeToString(deterministic=True) for one in scorers.all_of_job(run.job.spec))
        scored_as = (scored, scorers.reading_of(run.job.spec, plan), plan.scorer_version)
        asked = (run.mode, plan.version, run.job.spec.suite.shots, plan.prompt_hash, max(1, plan.repeats), scored_as)
        rows = [("revision", plan.data.revision), *([("items", plan.item_set)] if plan.item_set else [])]
        for key in rows:
            low, high = sorted((numbers[first.setdefault((asked, key), place)], numbers[place]))
            numbers = [low if number == high else number for number in numbers]
    return numbers


def _shared_plans(plans: Sequence[job_pb2.TaskPlan], cohorts: Sequence[int]) -> list[job_pb2.TaskPlan]:
    defined = [{spec.SerializeToString(deterministic=True) for spec in plan.metrics} for plan in plans]
    found = []
    for place, plan in enumerate(plans):
        own = [other for other, number in zip(defined, cohorts, strict=True) if number == cohorts[place]]
        if all(other == defined[place] for other in own):
            found.append(plan)
            continue
        shared = set.intersection(*own)
        kept = job_pb2.TaskPlan()
        kept.CopyFrom(plan)
        del kept.metrics[:]
        kept.metrics.extend(spec for spec in plan.metrics if spec.SerializeToString(deterministic=True) in shared)
        found.append(kept)
    return found


def _same_items(one: job_pb2.TaskPlan, other: job_pb2.TaskPlan) -> bool:
    return bool(one.item_set) and one.item_set == other.item_set


def _short(text: str) -> str:
    return text[:_SHOWN_CHARACTERS] or "unknown"


def _some(titles: Sequence[str]) -> str:
    return ", ".join(titles[:3]) + (f" and {len(titles) - 3} more tasks" if len(titles) > 3 else "")
