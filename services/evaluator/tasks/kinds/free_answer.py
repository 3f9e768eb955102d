"""Tasks whose answer is a text or number, different for each item (`FreeAnswer`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from services.evaluator.answers import scoring
from services.evaluator.answers.reading.asked import number_asked
from services.evaluator.answers.reading.kinds import Kind
from services.evaluator.answers.reading.layers import Extraction, Layer
from services.evaluator.answers.reading.letter import LetterKind
from services.evaluator.answers.reading.number import NumberKind
from services.evaluator.answers.reading.numerals.forms import canonical_number
from services.evaluator.answers.reading.text import TextKind
from services.evaluator.data.reader import Reader
from services.evaluator.items.task import Item, Response
from services.evaluator.tasks.kinds.definition import Definition, Row
from services.evaluator.tasks.kinds.split_task import Facts, SplitTask
from touchstone.v1 import suite_pb2

Judge = Callable[[str, Sequence[str]], Mapping[str, float]]


def exact_match(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
    """ "correct" if the answer is one of the right ones, ignoring case, white space and a final full stop."""
    return {"correct": float(_plain(answer) in {_plain(right) for right in answers})}


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeAnswer(Definition):
    """An answer that is read from the end of the reply and compared. The target is a text, or a list of right ones.

    `kind` says how it is read; `form` what the prompt says about it, after "Answer: <number>" or "Answer: <text>". For
    a letter, the row's entry `options` holds the options' texts by letter. `judge` turns an answer and the right ones
    into statistics, among them "correct"; an empty answer is wrong.

    `candidates` names an entry that lists the texts to choose from, `continuation` how the model would continue with
    one of them (a template over the row and `{candidate}`): with both and a `context` the task runs in log-likelihood
    mode.
    """

    target: str = "answer"
    kind: Literal["number", "text", "letter"] = "text"
    form: str = ""
    judge: Judge = exact_match
    candidates: str = ""
    continuation: str = "{candidate}"

    def own_columns(self) -> Mapping[str, pa.DataType]:
        return {self.target: pa.string()}

    def task_on(
        self, reader: Reader, mode: suite_pb2.Mode, shots: int = 0, reading: Layer | None = None
    ) -> FreeAnswerTask:
        return FreeAnswerTask(self, reader, mode, shots, reading)


class FreeAnswerTask(SplitTask):
    """Implements `Task` for `FreeAnswer`."""

    def __init__(
        self, definition: FreeAnswer, reader: Reader, mode: suite_pb2.Mode, shots: int, reading: Layer | None
    ) -> None:
        super().__init__(definition, reader, mode, shots, reading)
        self._answered_by = definition.kind
        self._judged = definition.judge
        self._candidates = definition.candidates
        self._continuation = definition.continuation
        asked = "number" if definition.kind == "number" else "text"
        said = f"\nwhere <{asked}> {definition.form}" if definition.form else ""
        self._form = f"End your reply with one line:\nAnswer: <{asked}>{said}"

    def _facts(self, row: Row) -> Facts:
        target = row[self._definition.target]
        answers = tuple(map(self._read_target, [target] if isinstance(target, str) else target))
        if not answers or not all(answers):
            raise ValueError(f"the answer is {target!r}")
        # A right answer that is not a candidate makes the row always wrong in log-likelihood mode, but does not end the
        # task.
        labels = tuple(row[self._candidates]) if self._candidates else ()
        fields = self._fields(row)
        if self._answered_by == "letter":
            fields |= row["options"]
            labels = tuple(row["options"])
        return Facts(answers[0], fields, labels, answers)

    def _read_target(self, text: str) -> str:
        return canonical_number(text) if self._answered_by == "number" else text.strip()

    def _template(self) -> str:
        return f"{self._question}\n\n{self._form}"

    def _continued(self) -> str:
        return f"{self._definition.context}\x1e{self._continuation}"

    def _prompt(self, row: Row, facts: Facts) -> str:
        return f"{self._question.format_map(facts.fields)}\n\n{self._form}"

    def _choices(self, row: Row, facts: Facts) -> tuple[str, ...]:
        return tuple(self._continuation.format_map({**row, "candidate": label}) for label in facts.labels)

    def _extract_from(self, item: Item, response: Response) -> Extraction:
        cut = scoring.is_cut(response)
        kind: Kind
        if self._answered_by == "letter":
            kind = LetterKind(len(item.labels), {letter: item.fields[letter] for letter in item.labels})
        else:
            by_number = self._answered_by == "number"
            kind = NumberKind(cut=cut, asked=number_asked(item.question)) if by_number else TextKind(cut=cut)
        return self._answers(response.text, kind)

    def _judge(self, item: Item, answer: str) -> dict[str, float]:
        if not answer:
            return dict.fromkeys(self._judged("", item.answers), 0.0)
        return dict(self._judged(answer, item.answers))


def _plain(text: str) -> str:
    return " ".join(text.split()).removesuffix(".").casefold()
