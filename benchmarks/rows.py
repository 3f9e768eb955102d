"""Data that the benchmarks write themselves: mirrors of shipped tasks with as many rows as wanted."""

from __future__ import annotations

import json
import random
from pathlib import Path

from services.evaluator.catalogue import Catalogue
from services.evaluator.tasks import mmlu
from touchstone.v1 import suite_pb2

SUITE, TASK = "glue", "sst2"

_WORDS = (
    *("film", "story", "cast", "pace", "score", "scene", "humour", "plot", "voice", "ending", "camera", "light"),
    *("stays", "turns", "feels", "grows", "remains", "seems", "and", "but", "while", "although", "never", "always"),
    *("warm", "dull", "sharp", "tender", "clumsy", "bright", "hollow", "patient", "loud", "quiet", "the", "a"),
)


def write_sentiment(root: Path, count: int) -> Path:
    """A mirror with `count` validation rows of SST-2, no two alike; returns its root."""
    _write(root / "nyu-mll" / "glue" / TASK, "train", 64)
    _write(root / "nyu-mll" / "glue" / TASK, "validation", count)
    return root


def write_mmlu(root: Path, count: int) -> Path:
    """A mirror with `count` test rows over all subjects of MMLU, about as long as the real ones; returns its root."""
    subjects = [definition.task for definition in mmlu.TASKS]
    for number, subject in enumerate(subjects):
        folder = root / "cais" / "mmlu" / subject
        folder.mkdir(parents=True)
        rows = count // len(subjects) + (number < count % len(subjects))
        for split, size in (("dev", 5), ("test", rows)):
            chance = random.Random(f"{subject}/{split}")
            lines = (json.dumps(_question(chance, subject, row)) for row in range(size))
            (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    return root


def _question(chance: random.Random, subject: str, row: int) -> dict[str, object]:
    choices = [" ".join(chance.choices(_WORDS, k=8)) for _ in range(4)]
    question = f"{' '.join(chance.choices(_WORDS, k=50))} ({subject}, {row})?"
    return {"question": question, "subject": subject, "choices": choices, "answer": row % 4}


def prompts(root: Path) -> list[str]:
    """The prompts that a job over the mirror sends, in order."""
    task = Catalogue(root).task(SUITE, TASK, suite_pb2.MODE_GENERATE)
    return ["\n\n".join(message.content for message in item.messages) for item in task.items(range(task.size()))]


def _write(folder: Path, split: str, count: int) -> None:
    chance = random.Random(split)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{split}.jsonl").open("w") as file:
        for number in range(count):
            sentence = f"{' '.join(chance.choices(_WORDS, k=18))} ({number})"
            file.write(json.dumps({"sentence": sentence, "label": number % 2, "idx": number}) + "\n")
