"""Question and answer pairs in the evaluator's exact words, for training the small model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from services.evaluator import demo
from services.evaluator.data.reader import Reader, Source
from services.evaluator.tasks.demo import TASKS
from services.evaluator.tasks.kinds.text import Classification
from touchstone.v1 import suite_pb2

TRAIN_ROWS = 16_000


def write(path: Path, mirror: Path, task: str = "sentiment", rows: int = TRAIN_ROWS) -> None:
    """Writes `rows` JSON lines {"prompt", "answer"} of a demo task; no text of its validation split is among them.

    `mirror` is a folder for the longer train split, which the task then reads as it would a user's own data.
    """
    definition = next(definition for definition in TASKS if definition.task == task)
    longer = replace(definition, source=Source("tiny-model", task))
    split = mirror / "tiny-model" / task / "train.jsonl"
    split.parent.mkdir(parents=True, exist_ok=True)
    split.write_text("".join(f"{json.dumps(row)}\n" for row in demo.rows(task, rows)["train"]))
    path.write_text("".join(f"{json.dumps(pair)}\n" for pair in _pairs(longer, mirror)))


def _pairs(definition: Classification, mirror: Path) -> Iterator[dict[str, str]]:
    task = definition.task_on(Reader(mirror), suite_pb2.MODE_GENERATE)
    for item in task.train():
        (message,) = item.messages
        yield {"prompt": message.content, "answer": task.answer(item.reference)}
