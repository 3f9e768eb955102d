"""Exported metrics: a row for every metric of every task, and for every average over tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from services.results.export.job_rows import FIGURES, RECEIPT, WHO, Run
from services.results.export.tables import Column, Kind, Table, Value, number, table
from services.words import suites
from services.words.enums import METRIC_RULES, OUTCOMES
from services.words.scorers import layer
from touchstone.v1 import job_pb2, metric_pb2
from touchstone.v1.suite_pb2 import MetricSpec


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric of a task; without one an average over `tasks` of them: "macro" weighs tasks equally, "micro" items."""

    run: Run
    metric: metric_pb2.Metric
    task: metric_pb2.TaskResult | None = None
    plan: job_pb2.TaskPlan = field(default_factory=job_pb2.TaskPlan)
    spec: MetricSpec = field(default_factory=MetricSpec)
    averaged: str = ""
    category: str = ""
    tasks: int = 1


def _of_job(column: Column[Run]) -> Column[Measure]:
    return Column(column.name, column.kind, lambda measure: column.read(measure.run))


def _of_task(name: str, kind: Kind, read: Callable[[metric_pb2.TaskResult], Value]) -> Column[Measure]:
    return Column(name, kind, lambda measure: None if measure.task is None else read(measure.task))


def _of_plan(name: str, read: Callable[[job_pb2.TaskPlan], str]) -> Column[Measure]:
    return Column(name, Kind.TEXT, lambda measure: read(measure.plan))


def _figure(name: str) -> Column[Measure]:
    return Column(name, Kind.NUMBER, lambda measure: number(measure.metric, name))


def _share(outcome: str) -> Column[Measure]:
    """Of the answers stored."""

    def read(task: metric_pb2.TaskResult) -> Value:
        return getattr(task.outcomes, outcome) / task.items if task.items else None

    return _of_task(f"{outcome}_share", Kind.NUMBER, read)


COLUMNS_OF_METRICS: tuple[Column[Measure], ...] = (
    *map(_of_job, WHO),
    Column("task", Kind.TEXT, lambda measure: measure.task.task if measure.task is not None else ""),
    Column("category", Kind.TEXT, lambda measure: measure.category),
    Column("metric", Kind.TEXT, lambda measure: measure.metric.metric),
    Column("averaged", Kind.TEXT, lambda measure: measure.averaged),
    Column("tasks", Kind.WHOLE, lambda measure: measure.tasks),
    Column("beside", Kind.FLAG, lambda measure: measure.metric.beside or measure.plan.beside),
    *map(_figure, FIGURES),
    Column("n", Kind.WHOLE, lambda measure: measure.metric.n),
    Column("method", Kind.TEXT, lambda measure: measure.metric.method),
    Column("undefined_reason", Kind.TEXT, lambda measure: measure.metric.undefined_reason),
    _of_task("items", Kind.WHOLE, lambda task: task.items),
    _of_task("items_planned", Kind.WHOLE, lambda task: task.items_planned),
    *map(_share, OUTCOMES),
    _of_task("majority_share", Kind.NUMBER, lambda task: number(task, "majority_share")),
    _of_task("first_answer_gap", Kind.NUMBER, lambda task: task.first_answer_gap),
    Column("rule", Kind.TEXT, lambda measure: METRIC_RULES.of(measure.spec.rule)),
    Column("statistic", Kind.TEXT, lambda measure: measure.spec.statistic),
    Column("over", Kind.TEXT, lambda measure: measure.spec.over),
    Column("positive_label", Kind.TEXT, lambda measure: measure.spec.positive_label),
    _of_plan("dataset", lambda plan: plan.data.dataset),
    _of_plan("dataset_config", lambda plan: plan.data.config),
    _of_plan("split", lambda plan: plan.data.split),
    _of_plan("revision", lambda plan: plan.data.revision),
    _of_plan("task_version", lambda plan: plan.version),
    _of_plan("scorer_version", lambda plan: plan.scorer_version),
    _of_plan("reading", lambda plan: layer(plan.reading) if plan.reading else ""),
    _of_plan("prompt_hash", lambda plan: plan.prompt_hash),
    _of_plan("task_item_set", lambda plan: plan.item_set),
    *map(_of_job, RECEIPT),
)


def metrics(runs: Iterable[Run]) -> Table:
    return table(COLUMNS_OF_METRICS, (measure for run in runs for measure in _measures(run)))


def _measures(run: Run) -> Iterator[Measure]:
    """Tasks in plan order, then averages: the suite's score first."""
    if run.result is None:
        return
    plans = {plan.task: plan for plan in run.job.plan}
    for task in run.result.tasks:
        plan = plans.get(task.task, job_pb2.TaskPlan())
        specs = {spec.metric: spec for spec in plan.metrics}
        for metric in task.metrics:
            spec = specs.get(metric.metric, MetricSpec())
            yield Measure(run, metric, task, plan, spec, category=task.category)
    own = run.result.weighting or suites.TASKS
    for tasks, stored in run.averages:
        metric = metric_pb2.Metric()
        metric.CopyFrom(stored)
        metric.metric, rule = suites.parted(stored.metric)
        # The average by the suite's own rule is already there, under the metric's name.
        if rule != own:
            yield Measure(run, metric, averaged=suites.OLDER_NAMES[rule or own], tasks=tasks)
    for average in run.result.averages:
        if average.category:
            yield Measure(run, average.metric, averaged=average.rule, category=average.category, tasks=average.tasks)
