"""Which item each answer of a file belongs to. The lines say so themselves: by an id, or by the item's text."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from services.evaluator.datasets import rows as dataset_rows
from services.evaluator.datasets.task import AnyTask, DatasetTask
from services.evaluator.imports.matching import plain, prompts_number, short
from services.evaluator.imports.store import ImportedRows, ImportStore
from services.evaluator.tasks.base import Item, Response, Task
from services.evaluator.units.result import prompt_text
from touchstone.v1 import item_result_pb2, job_pb2
from touchstone.v1.results_service_pb2 import ImportedAnswer

_NUMBER = re.compile(r"(?:^|[^0-9A-Za-z.])(\d{1,9})$")
"""A row number: alone, or at the end after a sign that belongs to no number or word, as in "gsm8k-main-test-#17"."""
_EXAMPLE_CHARACTERS = 200
_TEXTS = ("question", "prompt")
_AMBIGUOUS = -1
_HASH_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Found:
    """`answers`: row number of each item that has an answer, in increasing order → the answer's own number.

    `prompt_hash` is that of the prompts that the lines have; empty where they are those that we send.
    """

    answers: Mapping[int, int]
    prompt_hash: str
    counts: job_pb2.ImportCounts


async def find(store: ImportStore, import_id: str, name: str, task: AnyTask) -> Found:
    """Looks at all items of the task, and raises as reading them does; NotFoundError without the import."""
    rows = await store.rows(import_id, name, copies=True)
    keys = _Keys()
    if isinstance(task, DatasetTask):
        async for numbered in task.batches():
            for number, row in numbered:
                keys.add(dataset_rows.item(number, row, (), None))
    else:
        await asyncio.to_thread(_add_all, keys, task)
    return await asyncio.to_thread(_found, rows, keys)


def contradiction(task: AnyTask, item: Item, answer: ImportedAnswer) -> str:
    """Why an answer whose id names the item belongs to another one, as a sentence; "" where nothing speaks against it.

    A text that the line has must hold the item's question, or be part of it. Without one, the line's reference must be
    the item's, as far as it can be read: ids alone would also score lines that are numbered otherwise.
    """
    line = _line(answer.row)
    ours = plain(_question(item))
    said = [text for name in _TEXTS if (text := plain(line.get(name, "")))]
    if said:
        if any(ours in text or text in ours for text in said):
            return ""
        return f"The line is about another item: it says “{short(said[0])}”, and the item “{short(ours)}”."
    if (reference := line.get("reference")) and not item.custom_id:
        read = task.score(item, Response(reference))
        if read.outcome == item_result_pb2.OUTCOME_ANSWERED and read.statistics.get("correct") == 0.0:
            return f"The line is about another item: its reference is “{short(reference)}”, not “{item.reference}”."
    return ""


def asked_as_we_do(item: Item, answer: ImportedAnswer) -> bool:
    """The line has our prompt; or it has none and answers a dataset's row, which is the prompt."""
    if not answer.prompt:
        return bool(item.custom_id)
    return plain(answer.prompt) in {plain(text) for text in _prompts(item)}


def shown_prompt(item: Item) -> str:
    """What stands beside an answer whose line has no prompt: the dataset's row, or the texts of the suite's row."""
    if item.custom_id:
        return prompt_text(item)
    return "\n\n".join(f"{name}:\n{text}" for name, text in item.fields.items())


class _Keys:
    """Items by what tells them: their own ids in a dataset, row numbers in a suite, and their texts."""

    def __init__(self) -> None:
        self._by_id: dict[str, int] = {}
        self._by_text: dict[bytes, int] = {}
        self._prompts: dict[int, frozenset[bytes]] = {}

    def add(self, item: Item) -> None:
        self._prompts[item.index] = frozenset(map(_digest, _prompts(item)))
        if item.custom_id:
            self._by_id[item.custom_id] = item.index
        for key in {*self._prompts[item.index], *map(_digest, _texts(item))}:
            self._by_text[key] = _AMBIGUOUS if key in self._by_text else item.index

    def find(self, line: Mapping[str, str]) -> int:
        """The item's number, or one below 0."""
        own_id = line.get("id", "")
        if own_id in self._by_id:
            return self._by_id[own_id]
        if not self._by_id and (number := _NUMBER.search(own_id)) and int(number[1]) in self._prompts:
            return int(number[1])
        texts = (line[name] for name in _TEXTS if line.get(name))
        return next((found for text in texts if (found := self._by_text.get(_digest(text), -1)) >= 0), -1)

    def is_prompt(self, item: int, line: Mapping[str, str]) -> bool:
        """As `asked_as_we_do`."""
        prompt = line.get("prompt", "")
        return _digest(prompt) in self._prompts[item] if prompt else bool(self._by_id)


def _add_all(keys: _Keys, task: Task) -> None:
    for item in task.items(range(task.size())):
        keys.add(item)


def _found(rows: ImportedRows, keys: _Keys) -> Found:
    answers: dict[int, int] = {}
    prompts: dict[int, int] = {}
    ours = True
    counts = job_pb2.ImportCounts(answers=len(rows.items))
    for answer, prompt, row in zip(rows.items, rows.prompts, rows.rows, strict=True):
        line = _line(row)
        item = keys.find(line)
        if item < 0:
            counts.unmatched_example = counts.unmatched_example or _named(line)
            counts.unmatched += 1
        elif item in answers:
            counts.repeated += 1
        else:
            answers[item] = answer
            prompts[item] = prompt
            ours = ours and keys.is_prompt(item, line)
    return Found(dict(sorted(answers.items())), "" if ours else _hash_of(prompts), counts)


def _hash_of(prompts: Mapping[int, int]) -> str:
    """Of answers without prompts one hash, whichever items they are to: nothing speaks against comparing them."""
    told = sorted(prompts.items()) if any(number != prompts_number("", ()) for number in prompts.values()) else []
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:_HASH_DIGITS]


def _texts(item: Item) -> Iterator[str]:
    """Texts by which a line may name the item, beside its prompt: its question, or all texts of its row."""
    yield _question(item)
    if item.fields:
        yield "\n".join(item.fields.values())


def _prompts(item: Item) -> Iterator[str]:
    yield prompt_text(item)
    yield "\n\n".join(message.content for message in item.messages)


def _question(item: Item) -> str:
    if item.fields:
        return next(iter(item.fields.values()))
    return item.messages[-1].content if item.messages else ""


def _named(line: Mapping[str, str]) -> str:
    named = next((f"{name} “{short(line[name])}”" for name in ("id", *_TEXTS) if line.get(name)), "nothing of its item")
    return named[:_EXAMPLE_CHARACTERS]


def _line(row: str) -> dict[str, str]:
    try:
        line = json.loads(row) if row else {}
    except (ValueError, RecursionError):
        return {}
    return {name: value for name, value in line.items() if isinstance(value, str)} if isinstance(line, dict) else {}


def _digest(text: str) -> bytes:
    return hashlib.sha256(plain(text).encode("utf-8", "replace")).digest()[:16]
