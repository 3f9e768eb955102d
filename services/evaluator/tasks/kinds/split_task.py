"""The mechanics behind every definition: loading, checking, hashing, rendering in both modes, few-shot examples."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast, overload

import pyarrow as pa

from services.errors import InvalidRequestError
from services.evaluator.answers import scoring
from services.evaluator.answers.reading.first import read_first
from services.evaluator.answers.reading.layers import Extraction, Layer
from services.evaluator.answers.reading.reader import AnswerReader
from services.evaluator.data.reader import DataError, Reader, Rows, as_dicts
from services.evaluator.items import hashing
from services.evaluator.items.task import Item, Message, Response, Scored
from services.evaluator.tasks.kinds.definition import Definition, Row, unusable
from services.evaluator.tasks.kinds.few_shot import Examples, Shot, order
from services.words.refusals import counted
from touchstone.v1 import item_result_pb2, suite_pb2

_BATCH = 512
_EXAMPLE_ROWS = 2000
"""Rows of the train split among which few-shot examples are chosen."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a family reads from a row. `labels` are the answers that this row offers, if they differ from the task's;
    `answers` are all right ones, if there are several."""

    reference: str
    fields: Mapping[str, str]
    labels: tuple[str, ...] = ()
    answers: tuple[str, ...] = field(default=())


class SplitTask(ABC):
    """Implements `Task` but for what a family adds: what a row means, what a prompt and an answer look like."""

    labels: tuple[str, ...] = ()
    scale: tuple[float, float] | None = None
    scorer_version = scoring.VERSION
    balanced_examples = False
    plugin = ""
    executor: Executor | None = None

    def __init__(
        self, definition: Definition, reader: Reader, mode: suite_pb2.Mode, shots: int, reading: Layer | None
    ) -> None:
        if mode not in definition.modes:
            raise InvalidRequestError(f"Task {definition.task} runs in generate mode only.", "mode")
        if not 0 <= shots <= definition.most_shots:
            raise InvalidRequestError(
                f"Task {definition.task} takes at most {definition.most_shots} few-shot examples; "
                f"{shots} were asked for.",
                "suite.shots",
            )
        self.info = definition.info()
        self.metrics = definition.metrics_in(mode)
        self.shots = shots
        self.version = definition.version
        self.mode = mode
        self.grouped = bool(definition.group)
        self._definition = definition
        self._reader = reader
        self._schema = definition.schema()
        self._identity = (f"{definition.suite}/{definition.task}", definition.version)
        self._generates = mode == suite_pb2.MODE_GENERATE
        self.reading = (reading or definition.reading) if self._generates else None
        self._answers = AnswerReader(tuple(definition.texts.values()), self.reading or Layer.LENIENT)
        captions = (f"{caption}: {{{entry}}}" for entry, caption in definition.texts.items())
        self._question = "\n".join([definition.instruction, "", *captions])
        self._lock = threading.Lock()
        self._loaded: Rows | None = None
        self._examples: Examples | None = None

    # -- data ----------------------------------------------------------------------------------------------------

    def size(self) -> int:
        return len(self._rows())

    def revision(self) -> str:
        return self._rows().revision

    def hashes(self, indexes: Sequence[int]) -> Iterator[str]:
        rows = self._rows()
        for start in range(0, len(indexes), 8 * _BATCH):
            yield from self._hashes(rows.picked(indexes[start : start + 8 * _BATCH]))

    def train(self) -> Sequence[Item]:
        """Read again at each call, rendered item by item, without examples: a train split is large and needed once."""
        if not self._definition.train_split:
            return ()
        return _TrainItems(self, self._read_train())

    def _rows(self) -> Rows:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._read(self._definition.split, self._definition.keep)
            rows = self._loaded
        self._reader.shelf.used(self, rows.table.nbytes)
        return rows

    def unload(self) -> None:
        """Drops the rows until they are used again: a suite of many tasks needs one or two at a time."""
        with self._lock:
            self._loaded = None

    def _read_train(self, most: int = 0) -> Rows:
        return self._read(self._definition.train_split, self._definition.train_keep, most)

    def _read(self, split: str, keep: Callable[[pa.Table], pa.Array] | None, most: int = 0) -> Rows:
        rows = self._reader.read(self._definition.source, split, self._schema, most)
        name = self._definition.source.name(split)
        if keep is not None:
            rows = Rows(rows.table.filter(keep(rows.table)), rows.revision)
            if not len(rows):
                raise DataError(f"{name} cannot be used: none of its rows belong to {self.info.title}.")
        self._check(rows.table, name)
        return rows

    def _hashes(self, table: pa.Table) -> list[str]:
        if not len(table):
            return []
        names = table.column_names
        # The right answer last, as a text. If `prepare` makes it, the columns that it comes from are used instead.
        last = self._definition.target if self._definition.target in names else names[-1]
        columns = [hashing.texts(hashing.whole(table[name])) for name in names if name != last]
        column = hashing.whole(table[last])
        made = last != self._definition.target
        return hashing.hashes(
            self._identity, columns, hashing.texts(column).to_pylist() if made else self._targets(column)
        )

    def _targets(self, column: pa.Array) -> list[str]:
        """The column of right answers as texts, for the items' hashes."""
        return cast("list[str]", hashing.texts(column).to_pylist())

    def _check(self, table: pa.Table, name: str) -> None:
        """Raises DataError for rows whose answers cannot be used."""
        for number, row in enumerate(self._prepared(table)):
            try:
                self._facts(row)
            except (ValueError, KeyError, IndexError, TypeError) as error:
                raise unusable(name, f"row {number} has no answer that can be used ({error})") from error

    # -- rendering -----------------------------------------------------------------------------------------------

    def items(self, indexes: Sequence[int]) -> Iterator[Item]:
        return self._render(self._rows(), indexes, self._shown())

    def prompt_hash(self) -> str:
        shown = self._shown()
        template = self._template() if self._generates else self._continued()
        return hashing.text_hash("\x1e".join([*shown.texts, template]))

    def answer(self, label: str) -> str:
        return f"Answer: {label}"

    def example_rows(self) -> tuple[int, ...]:
        """Row numbers of the few-shot examples, in the task's part of the train split."""
        return tuple(shot.index for shot in self._shown().shots)

    def _shown(self) -> Examples:
        """The few-shot examples, read once."""
        with self._lock:
            if self._examples is None:
                self._examples = self._made_examples()
            return self._examples

    def _made_examples(self) -> Examples:
        preamble = "" if self._generates else self._definition.preamble
        if not self.shots:
            return Examples((), None, preamble)
        rows = self._read_train(_EXAMPLE_ROWS)
        found = [
            (index, row, facts)
            for index, row in enumerate(self._prepared(rows.table))
            if all((facts := self._facts(row)).fields.values())
            and (not facts.labels or facts.reference in facts.labels)
        ]
        if len(found) < self.shots:
            name = self._definition.source.name(self._definition.train_split)
            raise DataError(
                f"{name} cannot be used: it has only {counted(len(found), 'row')} for "
                f"{counted(self.shots, 'few-shot example')}. Ask for fewer, or use a longer split."
            )
        chosen = order([facts.reference for _, _, facts in found], self.shots, self.balanced_examples)
        hashes = self._hashes(rows.table)
        shots = [
            Shot(index, hashes[index], *self._example(row, facts))
            for index, row, facts in (found[place] for place in chosen)
        ]
        return Examples(tuple(shots[: self.shots]), next(iter(shots[self.shots :]), None), preamble)

    def _example(self, row: Row, facts: Facts) -> tuple[str, str]:
        """An example's prompt and answer."""
        if not self._generates:
            place = (facts.labels or self.labels).index(facts.reference)
            return self._context(row), self._choices(row, facts)[place]
        reasoning = self._definition.reasoning and str(row[self._definition.reasoning]).strip()
        answer = self.answer(facts.reference)
        return self._prompt(row, facts), f"{reasoning}\n{answer}" if reasoning else answer

    def _prepared(self, table: pa.Table) -> Iterator[Row]:
        prepare = self._definition.prepare
        for start in range(0, table.num_rows, _BATCH):
            rows = as_dicts(table.slice(start, _BATCH))
            yield from rows if prepare is None else map(prepare, rows)

    def _render(self, rows: Rows, indexes: Sequence[int], shown: Examples) -> Iterator[Item]:
        for start in range(0, len(indexes), _BATCH):
            batch = indexes[start : start + _BATCH]
            table = rows.picked(batch)
            for index, digest, row in zip(batch, self._hashes(table), self._prepared(table), strict=True):
                yield self._item(index, digest, row, shown.without(digest))

    def _item(self, index: int, digest: str, row: Row, shown: Examples) -> Item:
        definition, facts = self._definition, self._facts(row)
        messages: tuple[Message, ...] = ()
        context = ""
        choices: tuple[str, ...] = ()
        if self._generates:
            prompt = self._prompt(row, facts)
            messages, hashed = (*shown.messages, Message("user", prompt)), prompt
        else:
            context, choices = shown.context + self._context(row), self._choices(row, facts)
            choices = tuple(f"{scoring.DELIMITER}{choice}" for choice in choices)
            hashed = "\x1e".join((self._context(row), *choices))
        return Item(
            index=index,
            messages=messages,
            reference=facts.reference,
            hash=digest,
            prompt_hash=shown.hash(hashed),
            fields=facts.fields,
            group=definition.group and definition.group.format_map(row),
            context=context,
            choices=choices,
            labels=facts.labels,
            answers=facts.answers,
            statistics={name: float(row[entry]) for name, entry in definition.statistics.items()},
        )

    def _fields(self, row: Row) -> dict[str, str]:
        return {entry: str(row[entry]).strip() for entry in self._definition.texts}

    def _context(self, row: Row) -> str:
        return self._definition.context.format_map(row)

    @abstractmethod
    def _facts(self, row: Row) -> Facts:
        """The parsed row. Raises ValueError, KeyError, IndexError or TypeError for an invalid one."""

    @abstractmethod
    def _template(self) -> str:
        """The prompt of generate mode with the names of its parts."""

    def _continued(self) -> str:
        """Context and continuations of log-likelihood mode with the names of their parts."""
        return self._definition.context

    @abstractmethod
    def _prompt(self, row: Row, facts: Facts) -> str:
        """The message of generate mode."""

    @abstractmethod
    def _choices(self, row: Row, facts: Facts) -> tuple[str, ...]:
        """The continuations of log-likelihood mode, without the delimiter, in the order of the labels."""

    # -- scoring -------------------------------------------------------------------------------------------------

    def score(self, item: Item, response: Response) -> Scored:
        if not self._generates:
            return self._score_choices(item, response)
        if (end := scoring.unanswered(response, {**self._judge(item, ""), **item.statistics})) is not None:
            return end
        found = self._extract_from(item, response)
        statistics = self._judge(item, found.answer)
        # Each task shows how much its score depends on counting the last answer, not the first.
        if "correct" in statistics and (first := read_first(response.text, partial(self._extract, item, response))):
            correct = self._judge(item, first.answer)["correct"]
            if correct != statistics["correct"]:
                statistics["correct_first"] = correct
        return scoring.scored(response, found, {**statistics, **item.statistics})

    def _extract(self, item: Item, response: Response, text: str) -> Extraction:
        """The answer in a part of the response."""
        return self._extract_from(item, replace(response, text=text))

    def _score_choices(self, item: Item, response: Response) -> Scored:
        wrong = self._judge(item, "") | {"correct_norm": 0.0, "correct_bytes": 0.0}
        if (end := scoring.unanswered(response, {**wrong, **item.statistics})) is not None:
            return end
        try:
            choice = scoring.choose(item.choices, response.continuations)
        except ValueError as error:
            return Scored(item_result_pb2.OUTCOME_UNPARSED, "", {**wrong, **item.statistics}, f"none: {error}")
        labels = item.labels or self.labels
        statistics = self._judge(item, labels[choice.best])
        statistics["correct_norm"] = self._judge(item, labels[choice.by_characters])["correct"]
        statistics["correct_bytes"] = self._judge(item, labels[choice.by_bytes])["correct"]
        statistics.update(item.statistics)
        return Scored(item_result_pb2.OUTCOME_ANSWERED, labels[choice.best], statistics, scoring.BY_SUM)

    def _judge(self, item: Item, answer: str) -> dict[str, float]:
        """The statistics of an answer; an empty one is wrong."""
        return {"correct": float(answer == item.reference)}

    @abstractmethod
    def _extract_from(self, item: Item, response: Response) -> Extraction:
        """The answer in a text."""


class _TrainItems(Sequence[Item]):
    def __init__(self, task: SplitTask, rows: Rows) -> None:
        self._task, self._rows = task, rows
        self._shown = Examples((), None, "")

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | Sequence[Item]:
        chosen = range(len(self))[index]
        if isinstance(chosen, int):
            return next(self._task._render(self._rows, [chosen], self._shown))
        return list(self._task._render(self._rows, chosen, self._shown))

    def __iter__(self) -> Iterator[Item]:
        return self._task._render(self._rows, range(len(self)), self._shown)
