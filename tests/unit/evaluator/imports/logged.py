"""Logs, planned and scored."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from services.errors import NotFoundError
from services.evaluator.imports import matching
from services.evaluator.imports.store import ImportedRows
from services.evaluator.item_result import prompt_text
from services.evaluator.items.task import Task
from services.evaluator.stored import rescorer
from services.evaluator.units.unit_loader import Loaded
from touchstone.v1 import item_result_pb2, results_service_pb2, suite_pb2
from touchstone.v1.results_service_pb2 import ImportedAnswer, ImportedRun

LOGLIKELIHOOD = suite_pb2.MODE_LOGLIKELIHOOD
IMPORT = "6d7e0f4e-3f4c-4f0e-9d55-0a4f5a4d6f10"


class Store:
    """Imported answers in memory, of one task."""

    def __init__(
        self, task: str, given: Sequence[ImportedAnswer], mode: suite_pb2.Mode, hashes: Mapping[str, str]
    ) -> None:
        self._task, self._given = task, given
        self._run = ImportedRun(
            tool="lm_eval", tool_version="0.4.13", model="m", suite="glue", mode=mode, digest="d", prompt_hashes=hashes
        )

    async def run(self, import_id: str) -> results_service_pb2.GetImportResponse:
        rows = await self.rows(import_id, self._task)
        task = results_service_pb2.ImportedTask(task=self._task, items=len(rows.items), repeats=1)
        return results_service_pb2.GetImportResponse(run=self._run, owner="ann", tasks=[task])

    async def rows(self, import_id: str, task: str) -> ImportedRows:
        if import_id != IMPORT:
            raise NotFoundError("gone")
        first = [answer for answer in self._given if answer.repeat == 0]
        return ImportedRows([answer.item for answer in first], [number(answer) for answer in first])

    def pages(self, import_id: str, task: str) -> AsyncIterator[ImportedRows]:
        raise NotImplementedError

    async def answers(self, import_id: str, task: str, items: Sequence[int], repeat: int) -> list[ImportedAnswer]:
        if import_id != IMPORT:
            raise NotFoundError("gone")
        return [answer for answer in self._given if answer.item in items and answer.repeat == repeat]


def number(answer: ImportedAnswer) -> int:
    return matching.prompts_number(answer.prompt, [c.text for c in answer.continuations])


def logged(task: Task, indexes: Sequence[int], best: int = 0) -> list[ImportedAnswer]:
    """As a tool logs them that asks as we do; the choice number `best` is the likeliest."""
    return [
        ImportedAnswer(
            task=task.info.task,
            item=item.index,
            row=json.dumps({**item.fields, "idx": item.index}),
            prompt=item.context or prompt_text(item),
            continuations=[
                item_result_pb2.Continuation(text=choice, loglikelihood=-1.0 if place == best else -9.0)
                for place, choice in enumerate(item.choices)
            ],
            response=f"Answer: {item.reference}" if item.messages else "",
        )
        for item in task.items(indexes)
    ]


async def results(
    task: Task, given: Sequence[ImportedAnswer], indexes: Sequence[int]
) -> list[item_result_pb2.ItemResult]:
    loaded = Loaded(task, [(place, 0, item) for place, item in enumerate(task.items(indexes))])
    found = await rescorer.results(Store("rte", given, task.mode, {}), IMPORT, "rte", loaded)
    return [found[place] for place in range(len(indexes))]


def answer(row: Any = None, prompt: str = "") -> ImportedAnswer:
    return ImportedAnswer(row=row if isinstance(row, str) else json.dumps(row) if row else "", prompt=prompt)
