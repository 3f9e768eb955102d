"""2,000 rows of our own in GLUE's schema, and what the model of these tests answers to each."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from services.evaluator.catalogue import Catalogue
from touchstone.v1 import suite_pb2

TASKS = {"cola": 700, "sst2": 800, "rte": 500}
POISON = ("sst2", 300)
"""Task and item that the patch `poison` makes deadly."""


@dataclass(frozen=True, slots=True)
class Question:
    """One item: its place, its prompt (unlike every other), and the answer, `right` in about three of four."""

    task: str
    item: int
    prompt: str
    answer: str
    right: bool


def questions(data_dir: Path) -> list[Question]:
    """Every item of the mirror's tasks."""
    catalogue = Catalogue(data_dir)
    found: list[Question] = []
    for name in TASKS:
        task = catalogue.task("glue", name, suite_pb2.MODE_GENERATE)
        for item in task.items(range(task.size())):
            prompt = "\n\n".join(message.content for message in item.messages)
            right = hashlib.sha256(prompt.encode()).digest()[0] % 4 > 0
            label = item.reference if right else next(each for each in task.labels if each != item.reference)
            found.append(Question(name, item.index, prompt, task.answer(label), right))
    return found
