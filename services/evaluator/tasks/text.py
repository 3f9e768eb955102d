"""Tasks over short texts: what a suite's table says (`Classification`, `Regression`) and the mechanics behind it."""

from __future__ import annotations

import hashlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, overload

import pyarrow as pa
import pyarrow.compute as pc

from services.errors import InvalidRequestError
from services.evaluator import scoring
from services.evaluator.data import DataError, Reader, Rows, Source
from services.evaluator.tasks.base import Item, Message, Response, Scored
from touchstone.v1 import suite_pb2

_BATCH = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A row of a suite's table.

    `texts` maps the data's text columns to the captions under which the prompt shows them, in order; with several,
    each is a side of a pair. `instruction` says what to decide. `version` changes with anything that a prompt holds:
    two versions are not comparable. A task that is `optional` is left out of a plan where its data is absent.
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
    score_group: str = ""
    optional: bool = False
    version: str = "1"

    def info(self) -> suite_pb2.TaskInfo:
        return suite_pb2.TaskInfo(
            task=self.task,
            title=self.title,
            metrics=self.metrics,
            modes=[suite_pb2.MODE_GENERATE],
            max_shots=0,
            published_items=self.published_items,
            score_group=self.score_group,
            data=suite_pb2.DataSource(dataset=self.source.dataset, config=self.source.config, split=self.split),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification(Definition):
    """A choice among `labels`, in the order of the data's integers."""

    labels: tuple[str, ...]

    def task_on(self, reader: Reader, mode: suite_pb2.Mode) -> ClassificationTask:
        return ClassificationTask(self, reader, mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression(Definition):
    """A number within `scale`."""

    scale: tuple[float, float] = field(default=(0.0, 5.0))

    def task_on(self, reader: Reader, mode: suite_pb2.Mode) -> RegressionTask:
        return RegressionTask(self, reader, mode)


class _TextTask(ABC):
    """What both kinds share: loading, prompts, hashes. `answer_form` ends the prompt with what an answer looks like."""

    scorer_version = scoring.VERSION

    def __init__(
        self,
        definition: Definition,
        reader: Reader,
        mode: suite_pb2.Mode,
        label_type: pa.DataType,
        answer_form: str,
    ) -> None:
        if mode != suite_pb2.MODE_GENERATE:
            raise InvalidRequestError(f"Task {definition.task} runs in generate mode only.", "mode")
        self.info = definition.info()
        self.version = definition.version
        self.mode = mode
        self._definition = definition
        self._reader = reader
        self._label_type = label_type
        self._columns = tuple(definition.texts)
        self._question = "\n".join(
            [definition.instruction, "", *(f"{caption}: {{{column}}}" for column, caption in definition.texts.items())]
        )
        self._template = f"{self._question}\n\n{answer_form}"
        self._lock = threading.Lock()
        self._loaded: Rows | None = None

    def size(self) -> int:
        return len(self._rows())

    def revision(self) -> str:
        return self._rows().revision

    def prompt_hash(self) -> str:
        return _hash(self._template)

    def items(self, indexes: Sequence[int]) -> Iterator[Item]:
        return self._render(self._rows(), indexes)

    def train(self) -> Sequence[Item]:
        """Read anew at each call and rendered item by item: a train split is large and needed once."""
        return _TrainItems(self, self._read(self._definition.train_split))

    def answer(self, label: str) -> str:
        return f"Answer: {label}"

    def _rows(self) -> Rows:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._read(self._definition.split)
            return self._loaded

    def _read(self, split: str) -> Rows:
        rows = self._reader.read(self._definition.source, split, self._columns, self._label_type)
        low, high = self._label_bounds()
        bounds = pc.min_max(rows.table["label"]).as_py()
        if not low <= bounds["min"] <= bounds["max"] <= high:
            raise DataError(
                f"{self._definition.source.name(split)} cannot be used: labels run from {bounds['min']:g} to "
                f"{bounds['max']:g}, not within {low:g}–{high:g}. Use a split whose labels are published."
            )
        return rows

    def _render(self, rows: Rows, indexes: Sequence[int]) -> Iterator[Item]:
        for start in range(0, len(indexes), _BATCH):
            batch = indexes[start : start + _BATCH]
            for index, row in zip(batch, rows.take(batch), strict=True):
                yield self._item(index, row)

    def _item(self, index: int, row: Mapping[str, Any]) -> Item:
        definition = self._definition
        texts = {column: row[column].strip() for column in self._columns}
        reference = self._reference(row["label"])
        prompt = self._template.format_map(texts)
        identity = (f"{definition.suite}/{definition.task}", definition.version, *texts.values(), reference)
        return Item(
            index=index,
            messages=(Message("user", prompt),),
            reference=reference,
            hash=_hash("\x1f".join(identity)),
            prompt_hash=_hash(prompt),
            fields=texts,
            context=f"{self._question.format_map(texts)}\nAnswer:",
            choices=self._choices(),
        )

    @abstractmethod
    def _label_bounds(self) -> tuple[float, float]:
        """The least and the greatest label that the data may hold."""

    @abstractmethod
    def _reference(self, label: Any) -> str:
        """A label of the data in the form that extraction yields."""

    @abstractmethod
    def _choices(self) -> tuple[str, ...]:
        """The continuations of `Item.context`."""


class ClassificationTask(_TextTask):
    """Implements `Task` for `Classification`."""

    scale: tuple[float, float] | None = None

    def __init__(self, definition: Classification, reader: Reader, mode: suite_pb2.Mode) -> None:
        form = (
            f"End your reply with one line:\nAnswer: <label>\nwhere <label> is one of: {', '.join(definition.labels)}."
        )
        super().__init__(definition, reader, mode, pa.int64(), form)
        self.labels = definition.labels
        self._continuations = tuple(f" {label}" for label in definition.labels)
        self._extract = scoring.LabelExtractor(definition.labels, tuple(definition.texts.values()))

    def score(self, item: Item, response: Response) -> Scored:
        if (end := scoring.unanswered(response, {"correct": 0.0})) is not None:
            return end
        extraction = self._extract(response.text)
        return scoring.scored(response, extraction, {"correct": float(extraction.answer == item.reference)})

    def _label_bounds(self) -> tuple[float, float]:
        return 0, len(self.labels) - 1

    def _reference(self, label: Any) -> str:
        return self.labels[int(label)]

    def _choices(self) -> tuple[str, ...]:
        return self._continuations


class RegressionTask(_TextTask):
    """Implements `Task` for `Regression`. An unanswered item counts with the mean of the train split."""

    labels: tuple[str, ...] = ()

    def __init__(self, definition: Regression, reader: Reader, mode: suite_pb2.Mode) -> None:
        low, high = definition.scale
        form = (
            "End your reply with one line:\nAnswer: <number>\n"
            f"where <number> is between {low:g} and {high:g} and may have decimals."
        )
        super().__init__(definition, reader, mode, pa.float64(), form)
        self.scale: tuple[float, float] | None = definition.scale
        self._scale = definition.scale
        self._extract = scoring.NumberExtractor(low, high, tuple(definition.texts.values()))

    def items(self, indexes: Sequence[int]) -> Iterator[Item]:
        # Read with the items, in their thread: scoring must not stop for a file.
        _ = self._train_mean
        return super().items(indexes)

    def score(self, item: Item, response: Response) -> Scored:
        target = float(item.reference)
        if (end := scoring.unanswered(response, {"value": self._train_mean, "target": target})) is not None:
            return end
        extraction = self._extract(response.text, cut=scoring.is_cut(response))
        value = float(extraction.answer) if extraction.answer else self._train_mean
        return scoring.scored(response, extraction, {"value": value, "target": target})

    @cached_property
    def _train_mean(self) -> float:
        return float(pc.mean(self._read(self._definition.train_split).table["label"]).as_py())

    def _label_bounds(self) -> tuple[float, float]:
        return self._scale

    def _reference(self, label: Any) -> str:
        return scoring.format_number(label)

    def _choices(self) -> tuple[str, ...]:
        return ()


class _TrainItems(Sequence[Item]):
    def __init__(self, task: _TextTask, rows: Rows) -> None:
        self._task, self._rows = task, rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | Sequence[Item]:
        chosen = range(len(self))[index]
        if isinstance(chosen, int):
            return next(self._task._render(self._rows, [chosen]))
        return list(self._task._render(self._rows, chosen))

    def __iter__(self) -> Iterator[Item]:
        return self._task._render(self._rows, range(len(self)))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
