"""The shipped suites, and what a job over one of them comes to: which tasks, which items, from which data."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from services.errors import InvalidRequestError
from services.evaluator.data import DataMissingError, Reader
from services.evaluator.tasks import demo, glue
from services.evaluator.tasks.base import Task
from services.evaluator.tasks.text import Classification, Regression
from touchstone.v1 import job_pb2, suite_pb2

_SUITES: dict[str, ModuleType] = {suite.SUITE: suite for suite in (demo, glue)}


class TaskNotFoundError(InvalidRequestError):
    """No such suite, or no such task in it; the message lists those there are."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The items of a task that a job runs: row numbers in increasing order, and the hash over their hashes."""

    indexes: Sequence[int]
    item_set: str


class Catalogue:
    """The suites over one mirror directory (None: the Hub). Safe to use from several threads.

    Tasks and selections are kept, so that a process reads each split once.
    """

    def __init__(self, data_dir: Path | None = None) -> None:
        self._reader = Reader(data_dir)
        self._tasks: dict[tuple[str, str, suite_pb2.Mode], Task] = {}
        self._lock = threading.Lock()
        self._selection = lru_cache(maxsize=64)(_selection)

    def suites(self) -> list[suite_pb2.Suite]:
        """Every suite with its tasks; reads no data."""
        return [
            suite_pb2.Suite(
                suite=suite.SUITE,
                title=suite.TITLE,
                description=suite.DESCRIPTION,
                tasks=[definition.info() for definition in suite.TASKS],
            )
            for suite in _SUITES.values()
        ]

    def task(self, suite: str, name: str, mode: suite_pb2.Mode = suite_pb2.MODE_GENERATE) -> Task:
        """The task, the same object at each call. Reads no data yet.

        Raises TaskNotFoundError; InvalidRequestError where it does not run in this mode.
        """
        mode = mode or suite_pb2.MODE_GENERATE
        definition = _definitions(suite, [name])[0]
        with self._lock:
            key = (suite, name, mode)
            if key not in self._tasks:
                self._tasks[key] = definition.task_on(self._reader, mode)
            return self._tasks[key]

    def selection(self, task: Task, limit: int, seed: int) -> Selection:
        """What `select` takes, with its item-set hash. Reads the data; blocking."""
        return self._selection(task, limit, seed)

    def plan(self, work: job_pb2.SuiteWork, mode: suite_pb2.Mode, unit_size: int) -> list[job_pb2.TaskPlan]:
        """The tasks of a job with their items counted and hashed. Reads the data; blocking.

        A task marked optional is left out where its data is absent and other tasks remain; the job then is a subset.
        Raises TaskNotFoundError, InvalidRequestError (limit, shots, repeats), DataError.
        """
        _check(work)
        plans: list[job_pb2.TaskPlan] = []
        absent: DataMissingError | None = None
        for definition in _definitions(work.suite, work.tasks):
            task = self.task(work.suite, definition.task, mode)
            if work.shots > task.info.max_shots:
                raise InvalidRequestError(
                    f"Task {definition.task} takes at most {task.info.max_shots} few-shot examples; "
                    f"{work.shots} were asked for.",
                    "suite.shots",
                )
            try:
                selection = self.selection(task, work.limit, work.seed)
            except DataMissingError as error:
                if not definition.optional:
                    raise
                absent = error
            else:
                plans.append(_task_plan(task, selection, unit_size))
        if absent is not None and not plans:
            raise absent
        return plans


def select(task: Task, limit: int, seed: int) -> Sequence[int]:
    """Row numbers in increasing order: all where `limit` is 0, else a sample of at most `limit`.

    The sample is fixed by seed, task and row number, and nested: 100 rows are among the 200 of the same seed.
    """
    size = task.size()
    if not 0 < limit < size:
        return range(size)
    name = task.info.task
    ranked = sorted(range(size), key=lambda index: hashlib.sha256(f"{seed}:{name}:{index}".encode()).digest())
    return sorted(ranked[:limit])


def _selection(task: Task, limit: int, seed: int) -> Selection:
    indexes = select(task, limit, seed)
    digest = hashlib.sha256()
    for item in task.items(indexes):
        digest.update(item.hash.encode())
    return Selection(indexes, digest.hexdigest())


def _task_plan(task: Task, selection: Selection, unit_size: int) -> job_pb2.TaskPlan:
    data = suite_pb2.DataSource()
    data.CopyFrom(task.info.data)
    data.revision = task.revision()
    return job_pb2.TaskPlan(
        task=task.info.task,
        title=task.info.title,
        version=task.version,
        scorer_version=task.scorer_version,
        items=len(selection.indexes),
        published_items=task.info.published_items,
        data=data,
        item_set=selection.item_set,
        metrics=task.info.metrics,
        unit_size=unit_size,
        score_group=task.info.score_group,
        prompt_hash=task.prompt_hash(),
    )


def _definitions(suite: str, names: Sequence[str]) -> list[Classification | Regression]:
    """The suite's definitions in its own order: those named, or all."""
    if suite not in _SUITES:
        raise TaskNotFoundError(f"There is no suite {suite!r}. Suites: {', '.join(_SUITES)}.", "suite")
    tasks: tuple[Classification | Regression, ...] = _SUITES[suite].TASKS
    known = [definition.task for definition in tasks]
    for name in names:
        if name not in known:
            raise TaskNotFoundError(f"Suite {suite} has no task {name!r}. Tasks: {', '.join(known)}.", "suite.tasks")
    return [definition for definition in tasks if not names or definition.task in names]


def _check(work: job_pb2.SuiteWork) -> None:
    if work.limit < 0:
        raise InvalidRequestError(f"The limit is {work.limit}; it may be 0 (all items) or more.", "suite.limit")
    if work.shots < 0:
        raise InvalidRequestError(f"The number of few-shot examples is {work.shots}; it may be 0.", "suite.shots")
    if work.repeats not in (0, 1):
        raise InvalidRequestError(f"{work.repeats} answers per item were asked for; one is possible.", "suite.repeats")
