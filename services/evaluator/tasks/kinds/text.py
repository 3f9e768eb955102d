"""Tasks over short texts: a class for each (`Classification`), or a number within a scale (`Regression`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from services.evaluator.answers import scoring
from services.evaluator.answers.reading.label import LabelKind
from services.evaluator.answers.reading.layers import Extraction, Layer
from services.evaluator.answers.reading.number import NumberKind
from services.evaluator.answers.reading.numerals.forms import format_number
from services.evaluator.data.reader import Reader
from services.evaluator.items.task import Item, Response, Scored
from services.evaluator.tasks.kinds.definition import Definition, Row, check_range
from services.evaluator.tasks.kinds.split_task import Facts, SplitTask
from touchstone.v1 import suite_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification(Definition):
    """A choice among `labels`. The target is one of them, or its place among them.

    `continuations` are the texts of the labels in log-likelihood mode, templates over a row.
    """

    labels: tuple[str, ...]
    continuations: tuple[str, ...] = ()

    def own_columns(self) -> Mapping[str, pa.DataType]:
        return {self.target: pa.int64()}

    def task_on(
        self, reader: Reader, mode: suite_pb2.Mode, shots: int = 0, reading: Layer | None = None
    ) -> ClassificationTask:
        return ClassificationTask(self, reader, mode, shots, reading)


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression(Definition):
    """A number within `scale`, in generate mode only."""

    scale: tuple[float, float] = field(default=(0.0, 5.0))

    def own_columns(self) -> Mapping[str, pa.DataType]:
        return {self.target: pa.float64()}

    def task_on(
        self, reader: Reader, mode: suite_pb2.Mode, shots: int = 0, reading: Layer | None = None
    ) -> RegressionTask:
        return RegressionTask(self, reader, mode, shots, reading)


class ClassificationTask(SplitTask):
    """Implements `Task` for `Classification`."""

    balanced_examples = True

    def __init__(
        self, definition: Classification, reader: Reader, mode: suite_pb2.Mode, shots: int, reading: Layer | None
    ) -> None:
        super().__init__(definition, reader, mode, shots, reading)
        self.labels = definition.labels
        self._continuations = definition.continuations
        self._form = (
            f"End your reply with one line:\nAnswer: <label>\nwhere <label> is one of: {', '.join(definition.labels)}."
        )
        self._kind = LabelKind(definition.labels)

    def _check(self, table: pa.Table, name: str) -> None:
        target = self._definition.target
        if target in table.column_names and pa.types.is_integer(table[target].type):
            check_range(table[target], 0, len(self.labels) - 1, name)
        else:
            super()._check(table, name)

    def _targets(self, column: pa.Array) -> list[str]:
        if not pa.types.is_integer(column.type):
            return super()._targets(column)
        return [self.labels[place] for place in column.to_pylist()]

    def _facts(self, row: Row) -> Facts:
        target = row[self._definition.target]
        place = self.labels.index(target) if isinstance(target, str) else target
        if place < 0:
            raise IndexError(f"the label is {place}")
        return Facts(self.labels[place], self._fields(row))

    def _template(self) -> str:
        return f"{self._question}\n\n{self._form}"

    def _continued(self) -> str:
        return "\x1e".join((self._definition.context, *self._continuations))

    def _prompt(self, row: Row, facts: Facts) -> str:
        return f"{self._question.format_map(facts.fields)}\n\n{self._form}"

    def _choices(self, row: Row, facts: Facts) -> tuple[str, ...]:
        return tuple(text.format_map(row) for text in self._continuations)

    def _extract_from(self, item: Item, response: Response) -> Extraction:
        return self._answers(response.text, self._kind)


class RegressionTask(SplitTask):
    """Implements `Task` for `Regression`. An unanswered item counts with the mean of the train split."""

    def __init__(
        self, definition: Regression, reader: Reader, mode: suite_pb2.Mode, shots: int, reading: Layer | None
    ) -> None:
        super().__init__(definition, reader, mode, shots, reading)
        low, high = definition.scale
        self.scale: tuple[float, float] | None = definition.scale
        self._scale = definition.scale
        self._form = (
            "End your reply with one line:\nAnswer: <number>\n"
            f"where <number> is between {low:g} and {high:g} and may have decimals."
        )

    def items(self, indexes: Sequence[int]) -> Iterator[Item]:
        # Read with the items, in their thread: scoring must not wait for a file.
        _ = self._train_mean
        return super().items(indexes)

    def score(self, item: Item, response: Response) -> Scored:
        target = float(item.reference)
        if (end := scoring.unanswered(response, {"value": self._train_mean, "target": target})) is not None:
            return end
        found = self._extract_from(item, response)
        value = float(found.answer) if found.answer else self._train_mean
        return scoring.scored(response, found, {"value": value, "target": target})

    @cached_property
    def _train_mean(self) -> float:
        train = self._read_train()
        return float(pc.mean(train.table[self._definition.target]).as_py())

    def _check(self, table: pa.Table, name: str) -> None:
        check_range(table[self._definition.target], *self._scale, name)

    def _targets(self, column: pa.Array) -> list[str]:
        return [format_number(value) for value in column.to_pylist()]

    def _facts(self, row: Row) -> Facts:
        return Facts(format_number(row[self._definition.target]), self._fields(row))

    def _template(self) -> str:
        return f"{self._question}\n\n{self._form}"

    def _prompt(self, row: Row, facts: Facts) -> str:
        return f"{self._question.format_map(facts.fields)}\n\n{self._form}"

    def _choices(self, row: Row, facts: Facts) -> tuple[str, ...]:
        return ()

    def _extract_from(self, item: Item, response: Response) -> Extraction:
        return self._answers(response.text, NumberKind(self._scale, cut=scoring.is_cut(response)))
