"""An item as a row of a table: what tells it apart, how it ended, and its address."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

from services.gateway.pages.display import conversation
from services.words import chat, phrases
from services.words.enums import VERDICTS
from touchstone.v1 import item_result_pb2, results_service_pb2


@dataclass(frozen=True, slots=True)
class Row:
    """An item in the table. `verdict` is right, wrong, or another outcome; `tone` its colour. `score` is a graded
    answer's score; `judged` a person's verdict."""

    task: str
    result: item_result_pb2.ItemResult
    question: str
    verdict: str
    tone: str
    score: float | None = None
    judged: str = ""
    before: str = ""
    """The baseline's verdict where it differs."""

    @property
    def key(self) -> str:
        """Names the row in the page's address."""
        repeat = f".{self.result.repeat}" if self.result.repeat else ""
        return f"{self.task}:{self.result.item}{repeat}"

    @property
    def said(self) -> str:
        """The answer as one text."""
        return chat.answer_text(self.result.response, self.result.tool_calls)


def item_address(job_id: str, row: Row) -> str:
    repeat = f"?repeat={row.result.repeat}" if row.result.repeat else ""
    return f"/jobs/{job_id}/items/{quote(row.task, safe='')}/{row.result.item}{repeat}"


def rows_of(stored: Sequence[results_service_pb2.StoredItem]) -> list[Row]:
    """Rows whose question leaves out the common beginning of the task's prompts, so that they differ visibly."""
    prompts: dict[str, list[str]] = {}
    for one in stored:
        prompts.setdefault(one.task, []).append(_flat(_asked(one.result)))
    skip = {task: _shared(texts) for task, texts in prompts.items()}
    return [_row(one, _flat(_asked(one.result))[skip[one.task] :]) for one in stored]


def row_of(stored: results_service_pb2.StoredItem) -> Row:
    """The item alone, its question from the beginning."""
    return _row(stored, _asked(stored.result))


def _row(stored: results_service_pb2.StoredItem, question: str) -> Row:
    result = stored.result
    verdict = phrases.UNREAD.get(result.outcome, "")
    failed = result.outcome == item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR
    tone = "bad" if failed else "warn" if verdict else ""
    if failed and "timed out" in result.error:
        verdict = "timed out"
    if not verdict:
        correct = result.statistics.get("correct")
        verdict = "answered" if correct is None else "right" if correct == 1 else "wrong"
    graded = stored.HasField("score") and stored.score not in (0, 1)
    return Row(
        task=stored.task,
        result=result,
        question=question.strip()[:160] or _flat(result.prompt)[:160],
        verdict=verdict,
        tone=tone,
        score=stored.score if graded or (stored.HasField("score") and "correct" not in result.statistics) else None,
        judged=VERDICTS.of(stored.annotation.verdict) if stored.annotation.verdict else "",
    )


def _flat(text: str) -> str:
    return " ".join(re.sub(r"^(user|system): ", "", text.strip()).split())


def _shared(texts: Sequence[str]) -> int:
    """Length of the common beginning, up to a word's start; 0 when that would leave a row empty."""
    if len(texts) < 2:
        return 0
    first, last = min(texts), max(texts)
    # All texts between two sorted texts share their common beginning.
    length = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    length = first.rfind(" ", 0, length) + 1
    return length if all(len(text) > length for text in texts) else 0


def beside(rows: list[Row], baselines: Sequence[results_service_pb2.StoredItem]) -> list[Row]:
    """The rows, each with the baseline's verdict where it differs."""
    if not baselines:
        return rows
    before = [_row(one, "").verdict if one.job_id else "" for one in baselines]
    return [
        replace(row, before=word) if word not in ("", row.verdict) else row
        for row, word in zip(rows, before, strict=True)
    ]


def _asked(result: item_result_pb2.ItemResult) -> str:
    """What distinguishes the item from others: the last message, or the prompt."""
    turns = conversation.turns(result.messages)
    return turns[-1].text if turns else result.prompt
