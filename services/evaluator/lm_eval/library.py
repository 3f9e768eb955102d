"""The few functions used of the installed lm_eval. It ships no types."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def index() -> Mapping[str, Any]:
    """Every shipped task, group and tag by name: entries with `kind`, `yaml_path`, `cfg` and `tags`."""
    from lm_eval.tasks import TaskManager

    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    entries: Mapping[str, Any] = TaskManager().task_index
    return entries


def kinds() -> Any:
    """The enumeration of kinds of entries."""
    from lm_eval.tasks._index import Kind

    return Kind


def configuration(file: Path) -> dict[str, Any]:
    """A task's YAML with its includes, and the functions that it names."""
    from lm_eval.tasks._yaml_loader import load_yaml

    read: dict[str, Any] = load_yaml(file, resolve_func=True)
    return dict(read)


def build(configuration: Mapping[str, Any]) -> Any:
    """The task; reads its data set."""
    import datasets
    from lm_eval.api.task import ConfigurableTask

    datasets.disable_progress_bars()
    # Without meaning for a single task, and not one of its fields.
    own = {key: value for key, value in configuration.items() if key not in ("tag", "group", "task_list")}
    return ConfigurableTask(config=own)


def default_metrics(output_type: str) -> list[str]:
    """The metrics of a task that does not name any."""
    from lm_eval.api.registry import DEFAULT_METRIC_REGISTRY

    return list(DEFAULT_METRIC_REGISTRY.get(output_type, ()))


def aggregation(metric: str, named: Any) -> str:
    """How a metric is aggregated: "mean", "f1", "matthews_corrcoef", or "" for anything else."""
    from lm_eval.api import metrics, registry

    known = {metrics.mean: "mean", metrics.f1_score: "f1", metrics.matthews_corrcoef: "matthews_corrcoef"}
    function = named
    if isinstance(named, str):
        function = registry.get_aggregation(named)
    elif named is None:
        function = registry.get_metric_aggregation(metric)
    return known.get(function, "")


def higher_is_better(metric: str, stated: bool | None) -> bool:
    from lm_eval.api.registry import is_higher_better

    return bool(is_higher_better(metric)) if stated is None else stated


def instance(kind: str, document: Any, arguments: tuple[Any, ...], place: int, answer: Any) -> Any:
    """A request that was answered."""
    from lm_eval.api.instance import Instance

    made = Instance(request_type=kind, doc=document, arguments=arguments, idx=place)
    made.resps = [answer]
    return made
