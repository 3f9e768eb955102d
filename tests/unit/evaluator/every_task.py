"""Every task of every shipped suite over rows of our own, in each mode and with and without examples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from services.evaluator.catalogue import Catalogue
from services.evaluator.data.reader import Source
from services.evaluator.items.task import Continuation, Item, Response, Task
from services.evaluator.suites import shipped
from tests import suite_rows
from tests.unit.evaluator import glue_rows
from touchstone.v1 import suite_pb2

SUITES = tuple(shipped())
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


def saying(task: Task, item: Item, label: str) -> Response:
    """The response of a model that is sure of this answer."""
    if task.mode == suite_pb2.MODE_GENERATE:
        return Response(task.answer(label))
    place = (item.labels or task.labels).index(label)
    scored = (Continuation(text, -0.1 if number == place else -1e4, 1) for number, text in enumerate(item.choices))
    return Response("", continuations=tuple(scored))


def wrong(task: Task, item: Item) -> str:
    """An answer that is not right; of another form than the right one where the task has no labels."""
    right = {answer.casefold() for answer in (item.reference, *item.answers)}
    for label in item.labels or task.labels:
        if label.casefold() not in right:
            return label
    return str(float(item.reference) + 1) if item.reference.lstrip("-").isdigit() else "nothing of the kind"
