"""A metric as answers give it."""

from __future__ import annotations

from typing import Any

from services.gateway.api.schema import BOOLEAN, COUNT, NUMBER, SHARE, STRING, Schema, about, array, null, pair, shape
from touchstone.v1 import metric_pb2

_ROUNDING = 1e-9

FIGURES: dict[str, Schema] = {
    "mean": about(null(NUMBER), "In the metric's own range; null where it is undefined."),
    "std": about(null(NUMBER), "Standard error of the mean."),
    "stderr": about(null(NUMBER), "The same under its proper name."),
    "ci95": about(null(pair(NUMBER)), "95 % interval."),
    "n": about(COUNT, "Items, or groups of items for rules over groups."),
    "bounds": about(pair(NUMBER), "What the mean would be were all unanswered items wrong, or all right."),
    "answered_mean": about(
        NUMBER, "What the mean would be had the unanswered items been as good as the answered ones of their task."
    ),
    "undefined_reason": STRING,
    "beside": about(BOOLEAN, "Shown, and no part of the task's score."),
}
SOMETIMES = ("bounds", "answered_mean", "undefined_reason", "beside")
METRIC = shape(FIGURES, name="Metric", optional=SOMETIMES)
TASK_METRIC = shape(
    FIGURES
    | {
        "unparsed": about(SHARE, "Share of items without a readable answer; they count as wrong."),
        "first_answer_gap": about(NUMBER, "By how much scores would change had the first answer counted."),
    },
    name="TaskMetric",
    optional=(*SOMETIMES, "first_answer_gap"),
)
SCORE = shape(FIGURES | {"not_ranked_reason": STRING}, name="Score", optional=(*SOMETIMES, "not_ranked_reason"))
CAUTION = about(
    null(STRING), "Which tasks have more than 5 % of their answers unread, or more than 1 % cut: those count as wrong."
)
_UNREAD: dict[str, Schema] = {
    "task": STRING,
    "unparsed": about(SHARE, "Of the scored answers, those that could not be read."),
    "cut": about(SHARE, "Of the scored answers, those cut at a token limit, or whose prompt was."),
    "unparsed_answers": about(COUNT, "How many could not be read."),
    "marked_would_read": about(COUNT, "Of them, those that the marked layer would read, where it was not asked."),
    "lenient_would_read": about(COUNT, "Of them, those that the lenient layer would read, where it was not asked."),
}
UNREAD = array(shape(_UNREAD, name="Unread"))


def cautioned(measured: metric_pb2.JobResult | metric_pb2.LeaderboardEntry) -> dict[str, Any]:
    """Of a run: how many of its answers count as wrong as nobody could read them, where those are many."""
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


def is_bounded(metric: metric_pb2.Metric) -> bool:
    """Whether its bounds are wider than its mean: what is unanswered could still move it."""
    return metric.HasField("bound_low") and metric.bound_high - metric.bound_low > _ROUNDING


def interval(metric: metric_pb2.Metric) -> list[float] | None:
    return [metric.ci95_low, metric.ci95_high] if metric.HasField("ci95_low") else None
