"""The rows that both programs are given: real ones where a mirror is at hand, and rows written for the purpose."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from services.evaluator.tasks.kinds.definition import Definition
from tests import real_rows, rows, suite_rows
from tests.suite_rows import Row

_TRAIN_ROWS = 12
# Real and written rows of a split: MMLU has many, and MMLU-Pro's fourteen subjects share one. The real ones are among
# the first _AMONG.
_COUNTS = {"cais/mmlu": (3, 2), "TIGER-Lab/MMLU-Pro": (0, 56)}
_AMONG = 60
_USUAL = (8, 6)


def write_mirror(root: Path, tasks: Iterable[Definition]) -> Path:
    """Writes the splits of these tasks and returns the mirror's root."""
    for task in tasks:
        for split in (task.split, task.train_split):
            _write(root, task.source.dataset, task.source.config, split, split == task.train_split)
    return root


def read_rows(file: Path, most: int | None = None) -> list[Row]:
    with file.open(newline="\n") as lines:
        return [json.loads(line) for line in islice(lines, most)]


def write_rows(file: Path, rows: list[Row]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def _shortest(rows: list[Row], count: int) -> list[Row]:
    """The shortest of the rows in their order: a model is asked for every token of them, over and over."""
    chosen = sorted(range(len(rows)), key=lambda index: len(json.dumps(rows[index])))[:count]
    return [rows[index] for index in sorted(chosen)]


def _write(root: Path, dataset: str, config: str, split: str, trains: bool) -> None:
    place = f"{dataset}/{config}/{split}.jsonl"
    real, written = _COUNTS.get(dataset, _USUAL)
    if trains:
        real, written = min(real, _TRAIN_ROWS), max(written, _TRAIN_ROWS)
    mirror = real_rows.folder()
    found = _shortest(read_rows(mirror / place, _AMONG), real) if mirror and (mirror / place).exists() else []
    if dataset == rows.DATASET:
        rows.write_split(root, config, split, written)
        found += read_rows(root / place)
    else:
        found += suite_rows.rows(dataset, config, split, written)
    write_rows(root / place, found)
