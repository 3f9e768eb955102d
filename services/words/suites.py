"""Suites: their order, the refusal of an unknown one, and what has equal weight in their figures. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from services.errors import InvalidRequestError
from services.words.jobs import suite_of
from touchstone.v1 import job_pb2, metric_pb2, suite_pb2
from touchstone.v1.suite_pb2 import Weighting

DOCUMENT_SUITES = ("glue", "superglue", "mmlu", "medical")
"""The API document's order of suites. Only installed ones are offered."""
ECHO = "echo"
"""The baseline that repeats the prompt: it answers rows of datasets and no suite."""
MAJORITY = "majority"
"""The baseline that gives the most frequent answer, of rows with references."""
ITEMS, TASKS = suite_pb2.WEIGHTING_ITEMS, suite_pb2.WEIGHTING_TASKS
UNSPECIFIED = suite_pb2.WEIGHTING_UNSPECIFIED
OLDER_NAMES = {ITEMS: "micro", TASKS: "macro"}
"""In answers and exports, with or instead of the words."""

WORDS = {ITEMS: "over items", TASKS: "over tasks"}
# For plans from before they had this field.
_OVER_ITEMS = ("mmlu", "mmlu_pro")
_COUNT_ONCE = {"bbh": ("logical_deduction", "tracking_shuffled_objects")}


def suite_order(suite: str) -> tuple[int, str]:
    """Sorts the API document's suites in its order, then the others by name."""
    return (DOCUMENT_SUITES.index(suite) if suite in DOCUMENT_SUITES else len(DOCUMENT_SUITES)), suite


def unknown_suite(announced: Iterable[str], stored: Iterable[str] = ()) -> InvalidRequestError:
    """The refusal of an unknown suite. It lists the suites that can be run, then those that were."""
    runnable = sorted(set(announced), key=suite_order)
    others = sorted({*stored} - {*runnable}, key=suite_order)
    supported = ", ".join([*runnable, *others]) or "none yet; start an evaluator"
    return InvalidRequestError(f"Invalid benchmark suite. Supported: {supported}", "suite")


def asked(weighting: int) -> Weighting:
    """Raises InvalidRequestError for an unknown number."""
    for known in (UNSPECIFIED, ITEMS, TASKS):
        if weighting == known:
            return known
    raise InvalidRequestError("weighting must be items or tasks.", "weighting")


def of_plans(plans: Sequence[job_pb2.TaskPlan]) -> Weighting:
    """The rule of a job's score; UNSPECIFIED if it comes from a single task, so that it makes no difference."""
    counted = [plan for plan in plans if not plan.beside]
    return counted[0].weighting or TASKS if len(counted) > 1 else UNSPECIFIED


def complete(job: job_pb2.Job) -> job_pb2.Job:
    """A job with what its suite declares now, if its plan is from before plans had this field."""
    if all(plan.weighting for plan in job.plan):
        return job
    made, suite = job_pb2.Job(), suite_of(job.spec)
    made.CopyFrom(job)
    for plan in made.plan:
        plan.weighting = ITEMS if suite in _OVER_ITEMS else TASKS
        plan.score_group = next((g for g in _COUNT_ONCE.get(suite, ()) if plan.task.startswith(g)), plan.score_group)
    return made


def average_name(metric: str, weighting: Weighting) -> str:
    """The name of a stored average: by the suite's rule the metric itself, and for several tasks also by each rule, as
    "score over items"."""
    return f"{metric} {WORDS[weighting]}" if weighting else metric


def parted(name: str) -> tuple[str, Weighting]:
    """The metric of a stored average, and its rule; UNSPECIFIED for the suite's own."""
    for weighting, words in WORDS.items():
        if name.endswith(f" {words}"):
            return name.removesuffix(f" {words}"), weighting
    return name, UNSPECIFIED


def taken_by(averages: Iterable[metric_pb2.Metric], weighting: Weighting) -> Mapping[str, metric_pb2.Metric]:
    """Stored averages of one run by metric, as a rule gives them; by the suite's own where it makes no difference."""
    found: dict[str, metric_pb2.Metric] = {}
    for average in averages:
        metric, own = parted(average.metric)
        if own == weighting or (not own and metric not in found):
            named = metric_pb2.Metric()
            named.CopyFrom(average)
            named.metric = metric
            found[metric] = named
    return found
