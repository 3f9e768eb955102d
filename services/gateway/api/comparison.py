"""A comparison as the API answers it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf.message import Message

from services.gateway import jobs
from services.gateway.api.figures import MODE, WEIGHTING, mode_name, weighting_name
from services.gateway.api.metrics import CAUTION, METRIC, mean_of, metric_body
from services.gateway.api.schema import (
    BOOLEAN,
    COUNT,
    NUMBER,
    STRING,
    TIME,
    UUID,
    Schema,
    about,
    array,
    enum,
    null,
    pair,
    shape,
    table,
)
from touchstone.v1 import comparison_pb2
from touchstone.v1.comparison_pb2 import ComparedRun, CompareResponse, Difference

_LEVELS = (0.001, 0.01, 0.05)
VERDICTS = {number: name.removeprefix("VERDICT_").lower() for name, number in comparison_pb2.Verdict.items() if number}


def body(found: CompareResponse) -> dict[str, Any]:
    """The API document's fields first; models are called as they were asked for."""
    names = {run.job_id: run.subject for run in found.runs}
    suite = [one for one in found.differences if not one.task]
    best, worst = _ends(found.runs)
    between = _between(suite, best, worst)
    comparable = between is not None and between.verdict != comparison_pb2.VERDICT_NOT_COMPARABLE
    high, low = (mean_of(run.scores[0]) for run in (best, worst))
    return {
        "models_compared": [run.subject for run in found.runs],
        "best_performing": best.subject if comparable else None,
        "performance_gap": high - low if comparable and high is not None and low is not None else None,
        "statistical_significance": _significance(between, found.alpha),
        "recommendations": list(found.recommendations),
        "suite": found.suite,
        "mode": mode_name(found.mode),
        "metrics": list(found.metrics),
        "weighting": weighting_name(found.weighting),
        "models": [_run(run) for run in found.runs],
        "differences": [_difference(one, names) for one in suite],
        "tasks": _tasks(found, names),
        "omnibus": [_omnibus(one) for one in found.omnibus],
        "items": found.items,
        "subset": found.subset,
        "notes": list(found.notes),
        "margin": found.margin,
        "alpha": found.alpha,
    }


def _ends(runs: Sequence[ComparedRun]) -> tuple[ComparedRun, ComparedRun]:
    """The best and the worst by the first metric; runs that do not rank count only where fewer than two do."""
    scored = [run for run in runs if run.scores and run.scores[0].HasField("mean")]
    ranked = [run for run in scored if not run.not_ranked_reason]
    among = ranked if len(ranked) > 1 else scored if len(scored) > 1 else list(runs)
    ordered = sorted(among, key=lambda run: -(mean_of(run.scores[0]) or 0.0) if run.scores else 0.0)
    return ordered[0], ordered[-1]


def _between(suite: Sequence[Difference], best: ComparedRun, worst: ComparedRun) -> Difference | None:
    """The difference that the gap is; where a baseline was named, that of the best or the worst from it."""
    ends = {best.job_id, worst.job_id}
    of_metric = [one for one in suite if one.metric == suite[0].metric]
    return max(of_metric, key=lambda one: len({one.a, one.b} & ends), default=None)


def _significance(between: Difference | None, alpha: float) -> str:
    """Of the gap, after the correction for several pairs."""
    if between is None:
        return "not tested"
    if between.verdict == comparison_pb2.VERDICT_NOT_COMPARABLE:
        return f"not comparable: {between.reason}"
    p = _optional(between, "p_adjusted") if between.HasField("p_adjusted") else _optional(between, "p_value")
    if p is None:
        return "not tested"
    if p > alpha:
        return f"not significant (p = {p:.2g})"
    return next((f"p < {level:g}" for level in _LEVELS if p < level), f"p = {p:.2g}")


def _run(run: ComparedRun) -> dict[str, Any]:
    return {
        "subject": run.subject,
        "model": run.model,
        "provider": run.endpoint,
        "configuration": run.configuration,
        "name": run.name or None,
        "job_id": run.job_id,
        "completed_at": jobs.iso(run.completed_at),
        "baseline": run.baseline,
        "rank_range": [run.rank_low, run.rank_high] if run.rank_low else None,
        "not_ranked_reason": run.not_ranked_reason or None,
        "caution": run.caution or None,
        "scores": {score.metric: metric_body(score) for score in run.scores},
    }


def _tasks(found: CompareResponse, names: dict[str, str]) -> list[dict[str, Any]]:
    """By task and metric: what each model has, and how the pairs differ."""
    gathered: dict[tuple[str, str], list[Difference]] = {}
    for one in found.differences:
        if one.task:
            gathered.setdefault((one.task, one.metric), []).append(one)
    values: dict[tuple[str, str], dict[str, Any]] = {}
    for run in found.runs:
        for task in run.tasks:
            for metric in task.metrics:
                values.setdefault((task.task, metric.metric), {})[run.subject] = metric_body(metric)
    return [
        {
            "task": task,
            "title": differences[0].title,
            "metric": metric,
            "values": values.get((task, metric), {}),
            "differences": [_difference(one, names) for one in differences],
        }
        for (task, metric), differences in gathered.items()
    ]


def _difference(one: Difference, names: dict[str, str]) -> dict[str, Any]:
    return {
        "a": names[one.a],
        "b": names[one.b],
        "metric": one.metric,
        "difference": _optional(one, "difference"),
        "stderr": _optional(one, "stderr"),
        "interval": [one.low, one.high] if one.HasField("low") and one.HasField("high") else None,
        "p_value": _optional(one, "p_value"),
        "p_adjusted": _optional(one, "p_adjusted"),
        "family": one.family,
        "correction": one.correction or None,
        "test": one.test or None,
        "n": one.n,
        "only_a": one.only_a,
        "only_b": one.only_b,
        "verdict": VERDICTS[one.verdict],
        "words": one.words,
        "smallest_difference": _optional(one, "smallest_difference"),
        "equivalence_p": _optional(one, "equivalence_p"),
        "reason": one.reason or None,
        "baseline": one.baseline,
    }


def _omnibus(one: comparison_pb2.Omnibus) -> dict[str, Any]:
    return {
        "task": one.task or None,
        "metric": one.metric,
        "test": one.test,
        "statistic": one.statistic,
        "degrees_of_freedom": one.degrees_of_freedom,
        "p_value": one.p_value,
        "n": one.n,
    }


def _optional(message: Message, field: str) -> float | None:
    return getattr(message, field) if message.HasField(field) else None


_DIFFERENCE = shape(
    {
        "a": about(STRING, "The better model of the pair, as it was asked for."),
        "b": STRING,
        "metric": STRING,
        "difference": about(null(NUMBER), "a − b, in the metric's own range."),
        "stderr": null(NUMBER),
        "interval": about(null(pair(NUMBER)), "At 1 − alpha, not adjusted."),
        "p_value": null(NUMBER),
        "p_adjusted": about(null(NUMBER), "After the family's correction; null for a single hypothesis."),
        "family": enum("primary", "tasks", "exploratory"),
        "correction": null(enum("holm", "benjamini-hochberg")),
        "test": null(STRING),
        "n": about(COUNT, "Items, or groups of items."),
        "only_a": about(COUNT, "Items right in a alone."),
        "only_b": COUNT,
        "verdict": enum(*VERDICTS.values()),
        "words": about(STRING, "The verdict as a sentence."),
        "smallest_difference": about(
            null(NUMBER),
            "Smallest true difference that these items show with 80 % power, at alpha by the number of comparisons "
            "that p is corrected for.",
        ),
        "equivalence_p": about(null(NUMBER), "Of the two one-sided tests for equivalence within the margin."),
        "reason": about(null(STRING), "Why the runs do not compare."),
        "baseline": about(BOOLEAN, "One of the two is a bundled baseline, outside of every family."),
    },
    name="Difference",
)
COMPARISON: Schema = shape(
    {
        "models_compared": about(array(STRING), "Best first, as they were asked for."),
        "best_performing": about(null(STRING), "By the first metric; null where the runs do not compare."),
        "performance_gap": about(null(NUMBER), "Best − worst by the first metric."),
        "statistical_significance": about(STRING, "Of the gap, after the correction for several pairs."),
        "recommendations": array(STRING),
        "suite": STRING,
        "mode": MODE,
        "weighting": about(WEIGHTING, "What counts alike in the suite's figures; null of a single task."),
        "metrics": array(STRING),
        "models": array(
            shape(
                {
                    "subject": STRING,
                    "model": STRING,
                    "provider": STRING,
                    "configuration": STRING,
                    "name": null(STRING),
                    "job_id": UUID,
                    "completed_at": null(TIME),
                    "baseline": BOOLEAN,
                    "rank_range": about(null(pair(COUNT)), "Places that the data leave open."),
                    "not_ranked_reason": null(STRING),
                    "caution": CAUTION,
                    "scores": about(table(METRIC), "By metric, on the items in common."),
                },
                name="ComparedModel",
            )
        ),
        "differences": about(array(_DIFFERENCE), "Of the suite, by metric and pair."),
        "tasks": array(
            shape(
                {
                    "task": STRING,
                    "title": STRING,
                    "metric": STRING,
                    "values": about(table(METRIC), "By model."),
                    "differences": array(_DIFFERENCE),
                },
                name="ComparedTask",
            )
        ),
        "omnibus": array(
            shape(
                {
                    "task": about(null(STRING), "null for the suite."),
                    "metric": STRING,
                    "test": STRING,
                    "statistic": NUMBER,
                    "degrees_of_freedom": COUNT,
                    "p_value": NUMBER,
                    "n": COUNT,
                },
                name="Omnibus",
            )
        ),
        "items": about(COUNT, "Items that all runs have in common."),
        "subset": BOOLEAN,
        "notes": array(STRING),
        "margin": NUMBER,
        "alpha": NUMBER,
    },
    name="Comparison",
)
