"""Tasks of suites over invented rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from services.evaluator.catalogue import Catalogue
from services.evaluator.items.task import Item, Task
from services.evaluator.suites import shipped
from tests import suite_rows
from touchstone.v1 import suite_pb2

GENERATE, LOGLIKELIHOOD = suite_pb2.MODE_GENERATE, suite_pb2.MODE_LOGLIKELIHOOD


def made(root: Path, name: str, mode: suite_pb2.Mode = GENERATE, shots: int = 0) -> Task:
    suite, _, task_name = name.partition("/")
    definition = next(found for found in shipped()[suite].definitions if found.task == task_name)
    for source, split in definition.splits():
        suite_rows.write(root, source.dataset, source.config, split, 56)
    return Catalogue(root).task(suite, task_name, mode, shots)


def items(task: Task) -> list[Item]:
    return list(task.items(range(task.size())))


def rows(name: str, count: int = 56) -> list[dict[str, Any]]:
    suite, _, task_name = name.partition("/")
    info = next(found for found in shipped()[suite].definitions if found.task == task_name).info()
    return suite_rows.rows(info.data.dataset, info.data.config, info.data.split, count)


def announced(name: str) -> suite_pb2.Suite:
    return next(suite for suite in Catalogue(None).suites() if suite.suite == name)
