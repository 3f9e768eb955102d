"""The published record: which outputs there are, and what their authors say of them (its README tells the source)."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("TOUCHSTONE_RECORDS_DIR", "")).resolve() / "texts"
ABSENT = "There is no published record. TOUCHSTONE_RECORDS_DIR must name its folder."
TASKS = ("gsm8k", "math_l5", "crux")
NOT_REPRODUCED = ("gsm8k", "yi-large-preview")
"""The record's README: its authors' rule gives 82.41 where they published 82.64."""
_PUBLISHED_AS = {
    "Llama-3.1-405B-Inst-fp8": "Llama-3.1-405B-Inst-fp8@together",
    "Llama-3.1-405B-Instruct-Turbo": "Llama-3.1-405B-Inst-fp8@together",
    "Meta-Llama-3.1-405B-Instruct@hyperbolic": "Llama-3.1-405B-Inst@hyperbolic",
}


@dataclass(frozen=True, slots=True)
class Record:
    """One model's outputs on one task, with the accuracy and the share without an answer that were published, in
    percent."""

    task: str
    model: str
    file: Path
    accuracy: float
    no_answer: float

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """`id`, `output` (a list, of which the first counts) and the right `answer`."""
        return _lines(self.file)


def is_there() -> bool:
    return FOLDER.is_dir()


def records() -> list[Record]:
    """All of them, by task and model."""
    return [record for task in TASKS for record in sorted(_of(task), key=lambda record: record.model)]


def questions(task: str) -> list[Mapping[str, Any]]:
    """In the order of the published split: `id`, the question's text as `question`, and the right `answer`."""
    return [
        {"id": str(row["id"]), "question": row.get("question") or row["problem"], "answer": row["answer"]}
        for row in _lines(FOLDER / task / "questions.jsonl.gz")
    ]


def write_gsm8k(folder: Path) -> Path:
    """A mirror of the suite gsm8k with the record's questions; returns its folder."""
    split = folder / "openai/gsm8k/main/test.jsonl"
    split.parent.mkdir(parents=True, exist_ok=True)
    # The record has "# 18" where the data has a solution with "#### 18" at its end.
    rows = ({"question": row["question"], "answer": f"###{row['answer']}"} for row in questions("gsm8k"))
    split.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def _of(task: str) -> Iterator[Record]:
    for file in (FOLDER / task).glob("*.jsonl.gz"):
        name = file.name.removesuffix(".jsonl.gz").replace("_at_", "@")
        if name != "questions":
            model = _PUBLISHED_AS.get(name, name)
            said = _figures()[task][model]
            yield Record(task, model, file, float(said["acc"]), float(said["no_answer"]))


@cache
def _figures() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    figures: Mapping[str, Mapping[str, Mapping[str, str]]] = json.loads((FOLDER / "published.json").read_text())
    return figures


def _lines(file: Path) -> Iterator[Mapping[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
