"""Tasks with separate options for each item (`MultipleChoice`)."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from services.evaluator.answers.reading.layers import Extraction, Layer
from services.evaluator.answers.reading.letter import LetterKind
from services.evaluator.data.reader import Reader
from services.evaluator.items.metrics import ACC_BYTES, ACC_NORM, beside
from services.evaluator.items.task import Item, Response
from services.evaluator.tasks.kinds.definition import Definition, Row, check_range, unusable
from services.evaluator.tasks.kinds.split_task import Facts, SplitTask
from touchstone.v1 import suite_pb2

_LETTERS = string.ascii_uppercase


@dataclass(frozen=True, slots=True, kw_only=True)
class MultipleChoice(Definition):
    """A choice among the texts in the entry `options`, answered by letter. The target is the right one's index or
    letter.

    In log-likelihood mode the letters are the continuations, or with `by_text` the options' texts; that task's primary
    metric is then the accuracy by log-probability per character, as is usual where continuations differ in length. The
    `context` may name `{lettered}`: the options, one per line, as "A. text".

    Every item offers `option_count` options, or at most that many if `varying`.
    """

    options: str = "choices"
    target: str = "answer"
    option_count: int = 4
    varying: bool = False
    by_text: bool = False

    def metrics_in(self, mode: suite_pb2.Mode) -> tuple[suite_pb2.MetricSpec, ...]:
        if mode != suite_pb2.MODE_LOGLIKELIHOOD or not self.by_text:
            return self.metrics
        return (ACC_NORM, *map(beside, (*self.metrics, ACC_BYTES)))

    def own_columns(self) -> Mapping[str, pa.DataType]:
        return {self.options: pa.list_(pa.string()), self.target: pa.int64()}

    def task_on(
        self, reader: Reader, mode: suite_pb2.Mode, shots: int = 0, reading: Layer | None = None
    ) -> MultipleChoiceTask:
        return MultipleChoiceTask(self, reader, mode, shots, reading)


class MultipleChoiceTask(SplitTask):
    """Implements `Task` for `MultipleChoice`."""

    def __init__(
        self, definition: MultipleChoice, reader: Reader, mode: suite_pb2.Mode, shots: int, reading: Layer | None
    ) -> None:
        super().__init__(definition, reader, mode, shots, reading)
        self.labels = tuple(_LETTERS[: definition.option_count])
        self._options = definition.options
        self._varying = definition.varying
        self._by_text = definition.by_text

    def _check(self, table: pa.Table, name: str) -> None:
        target = self._definition.target
        if not {target, self._options} <= set(table.column_names) or not pa.types.is_integer(table[target].type):
            super()._check(table, name)
            return
        check_range(table[target], 0, len(self.labels) - 1, name)
        counts = pc.list_value_length(table[self._options])
        bounds = pc.min_max(counts).as_py()
        enough = pc.all(pc.less(table[target], counts)).as_py() and bounds["max"] <= len(self.labels)
        if not enough or (not self._varying and bounds["min"] < len(self.labels)):
            pairs = zip(counts.to_pylist(), table[target].to_pylist(), strict=True)
            for row, (count, place) in enumerate(pairs):
                if count > len(self.labels) or place >= count or (not self._varying and count < len(self.labels)):
                    raise unusable(name, f"row {row} has {count} options and the answer {place}")

    def _facts(self, row: Row) -> Facts:
        options, target = row[self._options], row[self._definition.target]
        offered = self.labels[: len(options)]
        place = offered.index(target) if isinstance(target, str) else target
        if not 0 <= place < len(options) <= len(self.labels):
            raise IndexError(f"{len(options)} options, the answer {target}")
        fields = self._fields(row)
        fields.update(zip(offered, (str(option).strip() for option in options), strict=True))
        return Facts(offered[place], fields, offered if self._varying else ())

    def _template(self) -> str:
        return f"{self._question}\n{{lettered}}\n\n{_form('{letters}')}"

    def _continued(self) -> str:
        return f"{self._definition.context}\x1e{'{option}' if self._by_text else '{letter}'}"

    def _prompt(self, row: Row, facts: Facts) -> str:
        offered = facts.labels or self.labels
        lines = "\n".join(f"{letter}. {facts.fields[letter]}" for letter in offered)
        return f"{self._question.format_map(facts.fields)}\n{lines}\n\n{_form(', '.join(offered))}"

    def _context(self, row: Row) -> str:
        lettered = "\n".join(f"{letter}. {text}" for letter, text in zip(_LETTERS, row[self._options], strict=False))
        return self._definition.context.format_map({**row, "lettered": lettered})

    def _choices(self, row: Row, facts: Facts) -> tuple[str, ...]:
        return tuple(row[self._options]) if self._by_text else facts.labels or self.labels

    def _extract_from(self, item: Item, response: Response) -> Extraction:
        offered = item.labels or self.labels
        return self._answers(response.text, LetterKind(len(offered), {each: item.fields[each] for each in offered}))


def _form(offered: str) -> str:
    return f"End your reply with one line:\nAnswer: <letter>\nwhere <letter> is one of: {offered}."
