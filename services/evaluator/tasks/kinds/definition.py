"""What every row of a suite's table says, and what a split must be for a task to use it.

Each family of tasks adds its own fields.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.layers import Layer
from services.evaluator.data.reader import DataError, Reader, Source
from services.evaluator.items.task import Task
from touchstone.v1 import suite_pb2

Row = Mapping[str, Any]

MAX_SHOTS = 32
"""The number of few-shot examples of a task with a train split, unless its definition says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition(ABC):
    """A task of a suite, as its file declares it.

    Generate mode: the prompt is `instruction`, the `texts` (entries of a row and the captions under which the prompt
    shows them, in order), and the form of the answer. Log-likelihood mode: the model continues `preamble`, then
    `context`, a `str.format` template over a row; a task without a `context` runs in generate mode only.

    The data is `columns` of the source's `split`; if absent, they are the texts and the family's columns. `prepare`
    turns a row of it into the entries that texts and templates name, if the columns alone are not enough. `keep` and
    `train_keep` say which rows of a split belong to the task, as a Boolean array over the split's table.

    `target` names the entry that holds the right answer. `group` is a template: items with the same text share a
    passage. `statistics` maps names of per-item statistics to the entries that hold their values. `reasoning` names an
    entry with a worked solution, shown in few-shot examples before the answer.

    `train_split` feeds few-shot examples and baselines; empty where there is none. `version` changes with anything that
    a prompt holds: two versions are not comparable. A task that is `optional` is left out of a plan if its data is
    absent; a task with `beside` is reported, and not part of the suite's score. `reading` is the most lenient layer by
    which answers are read unless a job says otherwise.
    """

    suite: str
    task: str
    title: str
    source: Source
    texts: Mapping[str, str]
    instruction: str
    metrics: tuple[suite_pb2.MetricSpec, ...]
    published_items: int
    split: str = "validation"
    train_split: str = "train"
    target: str = "label"
    columns: Mapping[str, pa.DataType] = field(default_factory=dict)
    prepare: Callable[[Row], Row] | None = None
    keep: Callable[[pa.Table], pa.Array] | None = None
    train_keep: Callable[[pa.Table], pa.Array] | None = None
    context: str = ""
    preamble: str = ""
    group: str = ""
    statistics: Mapping[str, str] = field(default_factory=dict)
    reasoning: str = ""
    max_shots: int = MAX_SHOTS
    score_group: str = ""
    category: str = ""
    beside: bool = False
    optional: bool = False
    reading: Layer = Layer.LENIENT
    version: str = "1"

    @property
    def modes(self) -> tuple[suite_pb2.Mode, ...]:
        """The modes that the task runs in."""
        both = (suite_pb2.MODE_GENERATE, suite_pb2.MODE_LOGLIKELIHOOD)
        return both if self.context else both[:1]

    @property
    def most_shots(self) -> int:
        """The largest number of few-shot examples."""
        return self.max_shots if self.train_split else 0

    def info(self) -> suite_pb2.TaskInfo:
        return suite_pb2.TaskInfo(
            task=self.task,
            title=self.title,
            metrics=self.metrics,
            modes=self.modes,
            max_shots=self.most_shots,
            published_items=self.published_items,
            score_group=self.score_group,
            data=suite_pb2.DataSource(dataset=self.source.dataset, config=self.source.config, split=self.split),
            category=self.category,
            beside=self.beside,
            reading=layers.reading_of(self.reading),
        )

    def splits(self) -> Iterator[tuple[Source, str]]:
        """The splits that the task reads: its own, then the train split."""
        yield self.source, self.split
        if self.train_split and self.train_split != self.split:
            yield self.source, self.train_split

    def metrics_in(self, mode: suite_pb2.Mode) -> tuple[suite_pb2.MetricSpec, ...]:
        """The metrics of a mode, the primary one first."""
        return self.metrics

    def schema(self) -> pa.Schema:
        """The columns to read."""
        columns = self.columns or {**dict.fromkeys(self.texts, pa.string()), **self.own_columns()}
        return pa.schema(list(columns.items()))

    @abstractmethod
    def own_columns(self) -> Mapping[str, pa.DataType]:
        """The columns that the family reads in addition to the texts."""

    @abstractmethod
    def task_on(self, reader: Reader, mode: suite_pb2.Mode, shots: int = 0, reading: Layer | None = None) -> Task:
        """The task over this reader's data, which is not read yet. `reading` is by default the definition's.

        Raises InvalidRequestError where it does not run in this mode, or not with this number of few-shot examples.
        """


def unusable(name: str, what: str) -> DataError:
    """The error for a split without usable answers; `what` is a clause."""
    return DataError(f"{name} cannot be used: {what}. Use a split whose answers are published.")


def check_range(column: pa.ChunkedArray, low: float, high: float, name: str) -> None:
    """Raises DataError where a label is missing or outside `low`–`high`."""
    if column.null_count:
        raise unusable(name, f"row {pc.index(column.is_null(), True).as_py()} has no label")
    bounds = pc.min_max(column).as_py()
    if not low <= bounds["min"] <= bounds["max"] <= high:
        raise unusable(name, f"labels run from {bounds['min']:g} to {bounds['max']:g}, not within {low:g}–{high:g}")
