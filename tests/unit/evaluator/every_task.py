"""Every task of every shipped suite over rows of our own, in each mode and with and without examples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from services.evaluator.catalogue import Catalogue
from services.evaluator.data.reader import Source
from services.evaluator.items.task import Task
from services.evaluator.plugins.check import saying, wrong
from services.evaluator.suites import shipped
from tests import suite_rows
from tests.unit.evaluator import glue_rows
from touchstone.v1 import suite_pb2

__all__ = ["SHOTS", "SUITES", "name", "saying", "tasks", "write_mirror", "wrong"]

SUITES = [
    # Its 57 tasks take longer than those of all others, and differ only by their rows.
    pytest.param(suite, marks=[pytest.mark.stack] if suite == "mmlu" else [])
    for suite in shipped()
]
SHOTS = (0, 2)


def write_mirror(root: Path) -> Path:
    """A mirror with a few rows of each split that a shipped task reads."""
    glue_rows.write(root)
    splits = {found for suite in shipped().values() for task in suite.definitions for found in task.splits()}
    for source, split in sorted(splits, key=str):
        if source.dataset not in ("demo", "nyu-mll/glue"):
            # MMLU-Pro's rows belong to fourteen subjects in turn.
            suite_rows.write(root, source.dataset, source.config, split, 56 if _is_shared(source) else 12)
    return root


def _is_shared(source: Source) -> bool:
    return source.dataset == "TIGER-Lab/MMLU-Pro"


def tasks(catalogue: Catalogue, suite: str) -> Iterator[Task]:
    """The suite's tasks in each of their modes, with as many examples as `SHOTS` says and they take."""
    for definition in shipped()[suite].definitions:
        for mode in definition.modes:
            for shots in SHOTS:
                if shots <= definition.most_shots:
                    yield catalogue.task(suite, definition.task, mode, shots)


def name(task: Task) -> str:
    """For messages of failed assertions."""
    return f"{task.info.task}, {suite_pb2.Mode.Name(task.mode)}, {task.shots} shots"
