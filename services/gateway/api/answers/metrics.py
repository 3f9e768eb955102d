"""A metric as answers give it."""

from __future__ import annotations

from typing import Any

from services.gateway.api.answers.members import NOT_RANKED_REASON, TASK
from services.gateway.fields.schema import (
    BOOLEAN,
    COUNT,
    NUMBER,
    SHARE,
    STRING,
    Schema,
    about,
    array,
    null,
    pair,
    shape,
)
from services.gateway.reads.values import is_bounded
from touchstone.v1 import metric_pb2

FIGURES: dict[str, Schema] = {
    "mean": about(null(NUMBER), "The metric in its own range. null if it is undefined."),
    "std": about(null(NUMBER), "The standard error of the mean, as `stderr`."),
    "stderr": about(null(NUMBER), "The standard error of the mean."),
    "ci95": about(null(pair(NUMBER)), "The 95 % interval of the mean."),
    "n": about(COUNT, "The number of items, or of groups of items for metrics over groups."),
    "bounds": about(
        pair(NUMBER), "The mean if all unanswered items were wrong, or all right. Absent if both equal `mean`."
    ),
    "answered_mean": about(
        NUMBER,
        "The mean if unanswered items were as good as the answered ones of their task. Absent if it says nothing new.",
    ),
    "undefined_reason": about(STRING, "Why there is no mean."),
    "beside": about(BOOLEAN, "Reported, not scored."),
}
SOMETIMES = ("bounds", "answered_mean", "undefined_reason", "beside")
METRIC = shape(FIGURES, name="Metric", optional=SOMETIMES)
TASK_METRIC = shape(
    FIGURES
    | {
        "unparsed": about(SHARE, "The share of answers that could not be read. They count as wrong."),
        "first_answer_gap": about(
            NUMBER,
            "How the share of right answers would change if the first answer of a response counted, not the last.",
        ),
    },
    name="TaskMetric",
    optional=(*SOMETIMES, "first_answer_gap"),
)
SCORE = shape(
    FIGURES | {"not_ranked_reason": NOT_RANKED_REASON}, name="Score", optional=(*SOMETIMES, "not_ranked_reason")
)
FIGURE = shape(
    {
        "value": about(NUMBER, "The figure."),
        "ci95": about(pair(NUMBER), "Its 95 % interval."),
        "n": about(COUNT, "The answers, or scenarios, behind it."),
    },
    name="Figure",
)
CAUTION = about(null(STRING), "Names the tasks with more than 5 % of answers unread, or more than 1 % cut.")
_UNREAD: dict[str, Schema] = {
    "task": TASK,
    "unparsed": about(SHARE, "The share of scored answers that could not be read."),
    "cut": about(SHARE, "The share of scored answers that were cut at a token limit, or whose prompt was."),
    "unparsed_answers": about(COUNT, "How many answers could not be read."),
    "marked_would_read": about(COUNT, "How many of them the layer `marked` would read. 0 if the job takes it."),
    "lenient_would_read": about(COUNT, "How many of them the layer `lenient` would read. 0 if the job takes it."),
}
UNREAD = about(array(shape(_UNREAD, name="Unread")), "The tasks that `caution` names, with their figures.")


def cautioned(measured: metric_pb2.JobResult | metric_pb2.LeaderboardEntry) -> dict[str, Any]:
    """For a run: how many of its answers count as wrong because they were not read, if those are many."""
    return {
        "caution": measured.caution or None,
        "unread": [{name: getattr(one, name) for name in _UNREAD} for one in measured.unread],
    }


def metric_body(metric: metric_pb2.Metric) -> dict[str, Any]:
    """`std` is the standard error of `mean`, by our declaration; `stderr` says the same under its proper name."""
    stderr = metric.stderr if metric.HasField("stderr") else None
    body: dict[str, Any] = {
        "mean": mean_of(metric),
        "std": stderr,
        "ci95": interval(metric),
        "n": metric.n,
        "stderr": stderr,
    }
    if is_bounded(metric):
        body["bounds"] = [metric.bound_low, metric.bound_high]
    if metric.HasField("answered_mean"):
        body["answered_mean"] = metric.answered_mean
    if metric.undefined_reason:
        body["undefined_reason"] = metric.undefined_reason
    if metric.beside:
        body["beside"] = True
    return body


def task_metrics(task: metric_pb2.TaskResult) -> dict[str, Any]:
    """By name."""
    beside: dict[str, Any] = {"unparsed": task.outcomes.unparsed / task.items if task.items else 0.0}
    if task.first_answer_gap:
        beside["first_answer_gap"] = task.first_answer_gap
    return {metric.metric: metric_body(metric) | beside for metric in task.metrics}


def mean_of(metric: metric_pb2.Metric) -> float | None:
    return metric.mean if metric.HasField("mean") else None


def interval(metric: metric_pb2.Metric) -> list[float] | None:
    return [metric.ci95_low, metric.ci95_high] if metric.HasField("ci95_low") else None
