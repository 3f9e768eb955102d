"""Tasks whose answer is a text or number of the item's own (`FreeAnswer`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from services.evaluator.answers import free_text, scoring
from services.evaluator.data.reader import Reader
from services.evaluator.tasks.base import Item, Response
from services.evaluator.tasks.definition import Definition, Row
from services.evaluator.tasks.split_task import Facts, SplitTask
from touchstone.v1 import suite_pb2

Judge = Callable[[str, Sequence[str]], Mapping[str, float]]


def exact_match(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
    """ "correct" where the answer is one of the right ones but for case, white space and a final full stop."""
    return {"correct": float(_plain(answer) in {_plain(right) for right in answers})}


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeAnswer(Definition):
    """An answer that is read off the end of the reply and compared. The target is a text, or a list of right ones.

    `kind` says how it is read; `form` what the prompt says about it, after "Answer: <number>" or "Answer: <text>".
    `judge` turns an answer and the right ones into statistics, among them "correct"; an empty answer is wrong.

    `candidates` names an entry that lists the texts to choose from, `continuation` how the model would go on with one
    of them (a template over the row and `{candidate}`): with both and a `context` the task runs in log-likelihood mode.
    """

    target: str = "answer"
    kind: Literal["number", "text"] = "text"
    form: str = ""
    judge: Judge = exact_match
    candidates: str = ""
    continuation: str = "{candidate}"

    def own_columns(self) -> Mapping[str, pa.DataType]:
        return {self.target: pa.string()}

    def task_on(self, reader: Reader, mode: suite_pb2.Mode, shots: int = 0) -> FreeAnswerTask:
        return FreeAnswerTask(self, reader, mode, shots)


class FreeAnswerTask(SplitTask):
    """Implements `Task` for `FreeAnswer`."""

    def __init__(self, definition: FreeAnswer, reader: Reader, mode: suite_pb2.Mode, shots: int) -> None:
        super().__init__(definition, reader, mode, shots)
        self._is_number = definition.kind == "number"
        if self._is_number:
            self.scorer_version = scoring.NUMBER_VERSION
        self._judged = definition.judge
        self._candidates = definition.candidates
        self._continuation = definition.continuation
        said = f"\nwhere <{definition.kind}> {definition.form}" if definition.form else ""
        self._form = f"End your reply with one line:\nAnswer: <{definition.kind}>{said}"
        captions = tuple(definition.texts.values())
        extractor = free_text.FinalNumberExtractor if self._is_number else free_text.TextExtractor
        self._extract = extractor(captions)

    def _facts(self, row: Row) -> Facts:
        target = row[self._definition.target]
        answers = tuple(map(self._read_target, [target] if isinstance(target, str) else target))
        if not answers or not all(answers):
            raise ValueError(f"the answer is {target!r}")
        # A right answer that is no candidate costs a row its chance in log-likelihood mode, not the task its data.
        labels = tuple(row[self._candidates]) if self._candidates else ()
        return Facts(answers[0], self._fields(row), labels, answers)

    def _read_target(self, text: str) -> str:
        return free_text.canonical_number(text) if self._is_number else text.strip()

    def _template(self) -> str:
        return f"{self._question}\n\n{self._form}"

    def _continued(self) -> str:
        return f"{self._definition.context}\x1e{self._continuation}"

    def _prompt(self, row: Row, facts: Facts) -> str:
        return f"{self._question.format_map(facts.fields)}\n\n{self._form}"

    def _choices(self, row: Row, facts: Facts) -> tuple[str, ...]:
        return tuple(self._continuation.format_map({**row, "candidate": label}) for label in facts.labels)

    def _extract_from(self, item: Item, response: Response) -> scoring.Extraction:
        return self._extract(response.text, cut=scoring.is_cut(response))

    def _judge(self, item: Item, answer: str) -> dict[str, float]:
        if not answer:
            return dict.fromkeys(self._judged("", item.answers), 0.0)
        return dict(self._judged(answer, item.answers))


def _plain(text: str) -> str:
    return " ".join(text.split()).removesuffix(".").casefold()
