"""Which item each answer of a file belongs to. The lines themselves say so: by an id, or by the item's text."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from services.evaluator.datasets import rows as dataset_rows
from services.evaluator.datasets.task import AnyTask, DatasetTask
from services.evaluator.imports import item_texts
from services.evaluator.imports.matching import plain, prompts_number, short
from services.evaluator.imports.store import ImportedRows, ImportStore
from services.evaluator.items.task import Item, Task
from touchstone.v1 import job_pb2

_NUMBER = re.compile(r"(?:^|[^0-9A-Za-z.])(\d{1,9})$")
"""A row number: alone, or at the end after a sign that is not part of a number or word, as in "gsm8k-main-test-#17"."""
_EXAMPLE_CHARACTERS = 200
_NONE, _AMBIGUOUS = -1, -2
_HASH_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Found:
    """`answers`: row number of each item that has an answer, in increasing order → the answer's number.

    `prompt_hash` is the hash of the lines' prompts; empty if they are the prompts that we send.
    """

    answers: Mapping[int, int]
    prompt_hash: str
    counts: job_pb2.ImportCounts


async def find(store: ImportStore, import_id: str, name: str, task: AnyTask) -> Found:
    """Looks at all items of the task. Raises as reading them does, and NotFoundError without the import.

    It keeps what identifies the lines' items, and the items that a line identifies.
    """
    lines: list[_Line] = []
    async for page in store.pages(import_id, name):
        lines += await asyncio.to_thread(_lines, page)
    keys = _Keys(lines)
    if isinstance(task, DatasetTask):
        async for numbered in task.batches():
            await asyncio.to_thread(keys.add_all, [dataset_rows.item(n, row, (), None) for n, row in numbered])
    else:
        await asyncio.get_running_loop().run_in_executor(task.executor, _add_task, keys, task)
    return await asyncio.to_thread(_found, lines, keys)


@dataclass(frozen=True, slots=True)
class _Line:
    """What a line says about its item: its own id, the row number in it or -1, and digests of its texts. `prompts` is
    the number of its prompt, `named` the line's name in sentences."""

    answer: int
    id: str
    number: int
    texts: tuple[bytes, ...]
    prompt: bytes
    prompts: int
    named: str


class _Keys:
    """Items by what identifies them: their own ids in a dataset, row numbers in a suite, and their texts."""

    def __init__(self, lines: Sequence[_Line]) -> None:
        self._ids = {line.id for line in lines}
        self._numbers = {line.number for line in lines}
        self._texts = {text for line in lines for text in line.texts}
        self._by_id: dict[str, int] = {}
        self._by_text: dict[bytes, int] = {}
        self._prompts: dict[int, frozenset[bytes]] = {}
        self._has_ids = False

    def add_all(self, items: Iterable[Item]) -> None:
        for item in items:
            self._add(item)

    def _add(self, item: Item) -> None:
        prompts = frozenset(map(_digest, item_texts.prompts(item))) if self._texts else frozenset()
        texts = self._texts & {*prompts, *map(_digest, item_texts.texts(item))} if self._texts else frozenset()
        self._has_ids = bool(item.custom_id)
        if item.custom_id in self._ids if item.custom_id else item.index in self._numbers:
            self._by_id[item.custom_id or str(item.index)] = item.index
        elif not texts:
            return
        self._prompts[item.index] = prompts
        for text in texts:
            self._by_text[text] = _AMBIGUOUS if text in self._by_text else item.index

    def find(self, line: _Line) -> int:
        """The item's number, or one below 0."""
        found = self._by_id.get(line.id if self._has_ids else str(line.number), _NONE)
        texts = (self._by_text.get(text, _NONE) for text in line.texts)
        return found if found >= 0 else next((item for item in texts if item >= 0), _NONE)

    def is_prompt(self, item: int, line: _Line) -> bool:
        """As `item_texts.asked_as_we_do`."""
        return line.prompt in self._prompts[item] if line.prompt else self._has_ids


def _lines(page: ImportedRows) -> list[_Line]:
    return [_line(*each) for each in zip(page.items, page.prompts, page.rows, strict=True)]


def _line(answer: int, prompts: int, text: str) -> _Line:
    row = item_texts.of_line(text)
    number = _NUMBER.search(row.get("id", ""))
    return _Line(
        answer=answer,
        id=row.get("id", ""),
        number=int(number[1]) if number else _NONE,
        texts=tuple(_digest(row[name]) for name in item_texts.TEXTS if row.get(name)),
        prompt=_digest(row["prompt"]) if row.get("prompt") else b"",
        prompts=prompts,
        named=_named(row),
    )


def _add_task(keys: _Keys, task: Task) -> None:
    keys.add_all(task.items(range(task.size())))


def _found(lines: Sequence[_Line], keys: _Keys) -> Found:
    answers: dict[int, int] = {}
    prompts: dict[int, int] = {}
    ours = True
    counts = job_pb2.ImportCounts(answers=len(lines))
    for line in lines:
        item = keys.find(line)
        if item < 0:
            counts.unmatched_example = counts.unmatched_example or line.named
            counts.unmatched += 1
        elif item in answers:
            counts.repeated += 1
        else:
            answers[item] = line.answer
            prompts[item] = line.prompts
            ours = ours and keys.is_prompt(item, line)
    return Found(dict(sorted(answers.items())), "" if ours else _hash_of(prompts), counts)


def _hash_of(prompts: Mapping[int, int]) -> str:
    """One hash for answers without prompts, whichever items they answer: nothing rules out a comparison."""
    told = sorted(prompts.items()) if any(number != prompts_number("", ()) for number in prompts.values()) else []
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:_HASH_DIGITS]


def _named(row: Mapping[str, str]) -> str:
    names = ("id", *item_texts.TEXTS)
    named = next((f"{name} “{short(row[name])}”" for name in names if row.get(name)), "nothing that names its item")
    return named[:_EXAMPLE_CHARACTERS]


def _digest(text: str) -> bytes:
    return hashlib.sha256(plain(text).encode("utf-8", "replace")).digest()[:16]
