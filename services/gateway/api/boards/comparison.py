"""A comparison as the API answers it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf.message import Message

from services.gateway.api.answers import members
from services.gateway.api.answers.metrics import CAUTION, METRIC, mean_of, metric_body
from services.gateway.api.boards.noise import FLIPS, flips_body
from services.gateway.fields.schema import (
    BOOLEAN,
    COUNT,
    NUMBER,
    STRING,
    Schema,
    about,
    array,
    enum,
    null,
    pair,
    shape,
    table,
)
from services.gateway.reads import jobs
from services.words.enums import COMPARISON_VERDICTS, mode_name, weighting_name
from touchstone.v1 import comparison_pb2
from touchstone.v1.comparison_pb2 import ComparedRun, CompareResponse, Difference

_LEVELS = (0.001, 0.01, 0.05)


def body(found: CompareResponse) -> dict[str, Any]:
    """The API document's fields first; models have the names of the request."""
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


CSV_COLUMNS = (
    *("task", "title", "metric", "a", "b", "value_a", "value_b", "difference", "low", "high", "p_value", "p_adjusted"),
    *("smallest_difference", "n", "only_a", "only_b", "verdict", "items_needed", "reason", "total_low", "total_high"),
)


def rows(found: CompareResponse) -> Iterator[list[Any]]:
    """Every difference as a row of `CSV_COLUMNS`, those of the suite first, with the values of both models."""
    told = body(found)
    scores = {one["subject"]: one["scores"] for one in told["models"]}
    for one in told["differences"]:
        both = [scores[one[side]].get(one["metric"], {}).get("mean") for side in "ab"]
        yield _row("", "", one, both)
    for task in told["tasks"]:
        for one in task["differences"]:
            both = [task["values"].get(one[side], {}).get("mean") for side in "ab"]
            yield _row(task["task"], task["title"], one, both)


def _row(task: str, title: str, one: dict[str, Any], both: Sequence[float | None]) -> list[Any]:
    low, high = one["interval"] or (None, None)
    total_low, total_high = one["total_interval"] or (None, None)
    known = (
        one
        | {"total_low": total_low, "total_high": total_high}
        | {"task": task, "title": title, "value_a": both[0], "value_b": both[1], "low": low, "high": high}
    )
    return [known[column] for column in CSV_COLUMNS]


def _ends(runs: Sequence[ComparedRun]) -> tuple[ComparedRun, ComparedRun]:
    """The best and the worst by the first metric; runs that do not rank count only where fewer than two do."""
    scored = [run for run in runs if run.scores and run.scores[0].HasField("mean")]
    ranked = [run for run in scored if not run.not_ranked_reason]
    among = ranked if len(ranked) > 1 else scored if len(scored) > 1 else list(runs)
    ordered = sorted(among, key=lambda run: -(mean_of(run.scores[0]) or 0.0) if run.scores else 0.0)
    return ordered[0], ordered[-1]


def _between(suite: Sequence[Difference], best: ComparedRun, worst: ComparedRun) -> Difference | None:
    """The difference behind the gap; with a baseline, the difference of the best or the worst from it."""
    ends = {best.job_id, worst.job_id}
    of_metric = [one for one in suite if one.metric == suite[0].metric]
    return max(of_metric, key=lambda one: len({one.a, one.b} & ends), default=None)


def _significance(between: Difference | None, alpha: float) -> str:
    """The p-value of the gap, after the correction for several pairs."""
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
        "again": {"runs": run.again.runs, "flips": flips_body(run.again.flips), "floor": run.again.floor}
        if run.HasField("again")
        else None,
        "scores": {score.metric: metric_body(score) for score in run.scores},
    }


def _tasks(found: CompareResponse, names: dict[str, str]) -> list[dict[str, Any]]:
    """By task and metric: the value of each model, and the differences of the pairs."""
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
        "verdict": COMPARISON_VERDICTS.of(one.verdict),
        "words": one.words,
        "smallest_difference": _optional(one, "smallest_difference"),
        "equivalence_p": _optional(one, "equivalence_p"),
        "items_needed": one.items_needed if one.HasField("items_needed") else None,
        "total_interval": [one.total_low, one.total_high] if one.HasField("total_low") else None,
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
        "a": about(STRING, "The better model of the pair, by the name in the request."),
        "b": about(STRING, "The other model of the pair."),
        "metric": members.METRIC_NAME,
        "difference": about(null(NUMBER), "a − b, in the metric's own range."),
        "stderr": about(null(NUMBER), "The standard error of the difference."),
        "interval": about(null(pair(NUMBER)), "The interval at 1 − alpha, without a correction for several pairs."),
        "p_value": about(null(NUMBER), "The p-value of the paired test."),
        "p_adjusted": about(null(NUMBER), "The p-value after the correction of its family. null for a single test."),
        "family": about(enum("primary", "tasks", "exploratory"), "The tests that are corrected together."),
        "correction": about(null(enum("holm", "benjamini-hochberg")), "The correction of the family."),
        "test": about(null(STRING), "The test's name."),
        "n": about(COUNT, "The number of items, or of groups of items."),
        "only_a": about(COUNT, "Items that only a has right."),
        "only_b": about(COUNT, "Items that only b has right."),
        "verdict": about(enum(*COMPARISON_VERDICTS), "The verdict on a, by `p_adjusted` and the margin."),
        "words": about(STRING, "The verdict as a sentence."),
        "smallest_difference": about(
            null(NUMBER),
            "The smallest true difference that these items show with 80 % power.",
        ),
        "equivalence_p": about(
            null(NUMBER), "The p-value of the two one-sided tests for equivalence within the margin."
        ),
        "items_needed": about(
            null(COUNT),
            "About how many items would show the difference with 80 % power, if it is real. null if it is shown, "
            "equivalent or unknown.",
        ),
        "total_interval": about(
            null(pair(NUMBER)),
            "As `interval`, with what moves all answers of a run together. null if that was not measured of both, and "
            "for metrics other than means over items.",
        ),
        "reason": about(null(STRING), "Why the runs are not comparable."),
        "baseline": about(BOOLEAN, "Whether one of the two is a bundled baseline. Such pairs are in no family."),
    },
    name="Difference",
)
COMPARISON: Schema = shape(
    {
        "models_compared": about(array(STRING), "The models by the names in the request, best first."),
        "best_performing": about(
            null(STRING), "The best model by the first metric. null if the runs are not comparable."
        ),
        "performance_gap": about(null(NUMBER), "The best minus the worst, by the first metric."),
        "statistical_significance": about(STRING, "Whether the gap is significant, after the correction."),
        "recommendations": about(array(STRING), "What follows, in sentences."),
        "suite": members.SUITE,
        "mode": members.MODE,
        "weighting": about(members.WEIGHTING, "What has equal weight in the suite's figures. null for a single task."),
        "metrics": about(array(STRING), "The metrics. The first one ranks."),
        "models": about(
            array(
                shape(
                    {
                        "subject": about(STRING, "The name in the request."),
                        "model": members.MODEL,
                        "provider": members.PROVIDER,
                        "configuration": members.CONFIGURATION,
                        "name": members.CONFIGURATION_NAME,
                        "job_id": members.JOB_ID,
                        "completed_at": members.COMPLETED_AT,
                        "baseline": members.BASELINE,
                        "rank_range": about(null(pair(COUNT)), "The ranks that the data leave open."),
                        "not_ranked_reason": about(null(STRING), "Why the run has no rank. null if it has one."),
                        "caution": CAUTION,
                        "again": about(
                            null(
                                shape(
                                    {
                                        "runs": about(
                                            COUNT, "The runs that were read, this one and the newest others."
                                        ),
                                        "flips": about(FLIPS, "Between two of them."),
                                        "floor": about(
                                            NUMBER,
                                            "Mean scores of two of them differ by at most this with a chance of 95 %.",
                                        ),
                                    },
                                    name="RunsAgain",
                                )
                            ),
                            "How much it varies by itself. null without other complete runs of its configuration on "
                            "these items.",
                        ),
                        "scores": about(table(METRIC), "By metric, on the shared items."),
                    },
                    name="ComparedModel",
                )
            ),
            "The runs.",
        ),
        "differences": about(array(_DIFFERENCE), "Differences of the suite, by metric and pair."),
        "tasks": about(
            array(
                shape(
                    {
                        "task": members.TASK,
                        "title": about(STRING, "The task's title."),
                        "metric": members.METRIC_NAME,
                        "values": about(table(METRIC), "The metric by model."),
                        "differences": about(array(_DIFFERENCE), "Differences of the task, by pair."),
                    },
                    name="ComparedTask",
                )
            ),
            "The tasks, by metric.",
        ),
        "omnibus": about(
            array(
                shape(
                    {
                        "task": about(null(STRING), "The task. null for the suite."),
                        "metric": members.METRIC_NAME,
                        "test": about(STRING, "The test's name."),
                        "statistic": about(NUMBER, "The test's statistic."),
                        "degrees_of_freedom": about(COUNT, "Its degrees of freedom."),
                        "p_value": about(NUMBER, "The p-value."),
                        "n": about(COUNT, "The number of items, or of groups of items."),
                    },
                    name="Omnibus",
                )
            ),
            "Tests whether three or more models differ at all.",
        ),
        "items": about(COUNT, "The number of items that all runs share."),
        "subset": members.SUBSET,
        "notes": about(array(STRING), "Notes about the comparison, in sentences."),
        "margin": about(NUMBER, "The margin of equivalence."),
        "alpha": about(NUMBER, "The family-wise error rate."),
    },
    name="Comparison",
)
