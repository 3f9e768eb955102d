"""What a task's YAML says, as far as Touchstone can run it: everything else is refused with a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.errors import InvalidRequestError
from services.evaluator.lm_eval import library
from touchstone.v1 import suite_pb2
from touchstone.v1.suite_pb2 import MetricSpec

MAX_SHOTS = 32
_MODES = {
    "multiple_choice": suite_pb2.MODE_LOGLIKELIHOOD,
    "loglikelihood": suite_pb2.MODE_LOGLIKELIHOOD,
    "generate_until": suite_pb2.MODE_GENERATE,
}
_MODE_NAMES = {suite_pb2.MODE_LOGLIKELIHOOD: "log-likelihood", suite_pb2.MODE_GENERATE: "generate"}
_NAMES = {"acc": "accuracy"}
"""Metrics that have a name of their own here."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A task that can be run. `split` is evaluated. `means` maps the names of metrics that are means over items to
    lm_eval's own, with the filter whose answers they measure: ("exact_match", "strict-match")."""

    name: str
    raw: Mapping[str, Any]
    mode: suite_pb2.Mode
    split: str
    filters: Sequence[str]
    means: Mapping[str, tuple[str, str]]
    metrics: tuple[MetricSpec, ...]

    @staticmethod
    def read(name: str, file: Path, declared: Mapping[str, Any]) -> Configuration:
        """`declared` is the file's content, its functions unread: reading them imports their modules, which what is
        refused must not get.

        Raises InvalidRequestError for a task that cannot be run.
        """
        output = declared.get("output_type", "generate_until")
        if why := _obstacle(declared, output):
            raise _refused(name, why)
        try:
            raw = library.configuration(file)
        except Exception as error:  # of modules that import what they like
            raise _refused(name, f"it does not load ({error})") from error
        filters = [each["name"] for each in raw.get("filter_list") or ()] or ["none"]
        means, metrics = _metrics(raw, output, filters)
        if not metrics:
            raise _refused(name, "none of its metrics is a mean over its items, an F1 or a correlation of two classes")
        split = str(raw.get("test_split") or raw.get("validation_split"))
        return Configuration(name, raw, _MODES[output], split, filters, means, metrics)

    @property
    def usual_shots(self) -> int:
        """Few-shot examples that the task itself asks for."""
        return int(self.raw.get("num_fewshot") or 0)

    def check(self, mode: suite_pb2.Mode, shots: int) -> None:
        """Raises InvalidRequestError where the task does not run so."""
        if mode != self.mode:
            raise _refused(self.name, f"it runs in {_MODE_NAMES[self.mode]} mode only", "mode")
        if not 0 <= shots <= MAX_SHOTS:
            why = f"it takes at most {MAX_SHOTS} few-shot examples; {shots} were asked for"
            raise _refused(self.name, why, "suite.shots")

    def info(self) -> suite_pb2.TaskInfo:
        return suite_pb2.TaskInfo(
            task=self.name,
            title=self.name,
            metrics=self.metrics,
            modes=[self.mode],
            max_shots=MAX_SHOTS,
            data=suite_pb2.DataSource(dataset=str(self.raw.get("dataset_path")), config=self.config, split=self.split),
        )

    @property
    def config(self) -> str:
        return str(self.raw.get("dataset_name") or "default")

    @property
    def example_split(self) -> str:
        """Where few-shot examples come from; empty where the task brings its own or takes what it evaluates."""
        examples = self.raw.get("fewshot_config") or {}
        named = (examples.get("split"), self.raw.get("fewshot_split"))
        split = next(
            (name for name in named if name), "" if examples.get("samples") else self.raw.get("training_split")
        )
        return str(split or "")

    @property
    def splits(self) -> set[str]:
        """Every split that the task may read."""
        examples = self.raw.get("fewshot_config") or {}
        names = [self.raw.get(f"{use}_split") for use in ("training", "validation", "test", "fewshot")]
        return {name for name in (*names, examples.get("split")) if name}


def _obstacle(raw: Mapping[str, Any], output: str) -> str:
    """Why the task cannot be run, or an empty text."""
    loading = {key for key in raw.get("dataset_kwargs") or {} if key != "trust_remote_code"}
    obstacles = {
        f"its requests are of the kind {output}": output not in _MODES,
        "it runs code that the model writes": bool(raw.get("unsafe_code")),
        "it shows pictures or sounds": any(raw.get(f"doc_to_{what}") for what in ("image", "audio")),
        "it asks several times for an answer and chooses among them": int(raw.get("repeats") or 1) > 1,
        "its data is made by a program": bool(raw.get("custom_dataset")),
        f"its data is loaded with {', '.join(sorted(loading))}": bool(loading),
        "it names no split with answers": not (raw.get("test_split") or raw.get("validation_split")),
        "its score compares with a prompt without a question": "acc_mutual_info" in _metric_names(raw, output),
    }
    return next((why for why, holds in obstacles.items() if holds), "")


def _metric_names(raw: Mapping[str, Any], output: str) -> list[str]:
    return [name for name, _ in _stated_metrics(raw, output)]


def _stated_metrics(raw: Mapping[str, Any], output: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    stated = raw.get("metric_list")
    if stated is None:
        stated = [{"metric": name} for name in library.default_metrics(output)]
    for metric in stated:
        name = metric["metric"]
        yield (name.__name__ if callable(name) else str(name)), metric


def _metrics(
    raw: Mapping[str, Any], output: str, filters: Sequence[str]
) -> tuple[dict[str, tuple[str, str]], tuple[MetricSpec, ...]]:
    """What can be measured here; the first metric is the task's score, the others stand beside."""
    means: dict[str, tuple[str, str]] = {}
    specs: list[MetricSpec] = []
    for used in filters:
        for name, metric in _stated_metrics(raw, output):
            if not library.higher_is_better(name, metric.get("higher_is_better")):
                continue
            shown = _NAMES.get(name, name) if used == filters[0] else f"{_NAMES.get(name, name)} ({used})"
            how = library.aggregation(name, metric.get("aggregation"))
            if how == "mean":
                means[shown] = (name, used)
                specs.append(MetricSpec(metric=shown, rule=MetricSpec.RULE_MEAN, statistic=shown))
            elif (table := _table(raw, output, how)) is not None and used == filters[0]:
                specs.append(table)
    for spec in specs[1:]:
        spec.beside = True
    return means, tuple(specs)


def _table(raw: Mapping[str, Any], output: str, how: str) -> MetricSpec | None:
    """A metric over the table of two fixed choices, or None."""
    choices = raw.get("doc_to_choice")
    if output != "multiple_choice" or not isinstance(choices, list) or len(choices) != 2:
        return None
    match how:
        case "f1":
            return MetricSpec(metric="f1", positive_label=choices[1])
        case "matthews_corrcoef":
            return MetricSpec(metric="matthews_correlation")
    return None


def _refused(name: str, why: str, field: str = "suite") -> InvalidRequestError:
    return InvalidRequestError(f"lm_eval's task {name} cannot be run here: {why}.", field)
