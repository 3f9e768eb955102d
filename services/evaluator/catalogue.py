"""The suites, and what a job over one of them runs: which tasks, which items, from which data."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from services.errors import InvalidRequestError
from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.layers import Layer
from services.evaluator.data.reader import DataMissingError, Reader
from services.evaluator.datasets.rows import sample
from services.evaluator.items.metrics import repeated
from services.evaluator.items.task import Task
from services.evaluator.suites import ListedSuite, OpenSuite, TaskDeclaration, shipped
from services.words import references, refusals
from services.words.job_options import MOST_REPEATS
from touchstone.v1 import job_pb2, suite_pb2

T = TypeVar("T")


class TaskNotFoundError(InvalidRequestError):
    """No such suite, or no such task in it; the message lists the existing ones."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The items of a task that a job runs: row numbers in increasing order, and the hash over their hashes."""

    indexes: Sequence[int]
    item_set: str


class Catalogue:
    """The suites over one mirror directory (None: the Hub). Safe to use from several threads.

    Tasks and selections are kept, so that a process reads each split once. A job names the tasks of `open_suites`.
    `plugged` are the suites of plug-ins.
    """

    def __init__(
        self,
        data_dir: Path | None = None,
        open_suites: Sequence[OpenSuite] = (),
        plugged: Mapping[str, ListedSuite] = MappingProxyType({}),
    ) -> None:
        self._reader = Reader(data_dir)
        self._listed: dict[str, ListedSuite] = {**shipped(), **plugged}
        self._open = {suite.announced().suite: suite for suite in open_suites}
        self._tasks: dict[tuple[str, str, suite_pb2.Mode, int, Layer | None], Task] = {}
        self._lock = threading.Lock()
        self._selection = lru_cache(maxsize=64)(_selection)
        self._clusters = lru_cache(maxsize=64)(_clusters)

    def suites(self) -> list[suite_pb2.Suite]:
        """Every suite with its tasks; reads no data."""
        listed = [suite.announced() for suite in self._listed.values()]
        return [*listed, *(suite.announced() for suite in self._open.values())]

    def executor(self, suite: str) -> Executor | None:
        """The threads in which a plug-in's suite is planned and read, so that it keeps none from others; None for what
        is built in, and for an unknown suite."""
        return self._listed[suite].executor if suite in self._listed else None

    def has(self, suite: str) -> bool:
        """Whether the name is one of a suite, or of a task of an open suite."""
        return suite in self._listed or suite.partition(":")[0] in self._open

    def plugin(self, suite: str) -> str:
        """The package of a plug-in's suite, with its version; empty for others."""
        return self._listed[suite].plugin if suite in self._listed else ""

    async def apart(self, suite: str, call: Callable[..., T], *arguments: object) -> T:
        """What a call gives that reads the suite's data, in a thread: of its package if it is a plug-in's."""
        return await asyncio.get_running_loop().run_in_executor(self.executor(suite), partial(call, *arguments))

    def task_of(self, spec: job_pb2.JobSpec, name: str) -> Task:
        """A task of the job's suite as the job asks for it. Raises as `task`."""
        work = spec.suite
        return self.task(work.suite, name, spec.mode, work.shots, Layer.asked(spec.reading))

    def task(
        self,
        suite: str,
        name: str,
        mode: suite_pb2.Mode = suite_pb2.MODE_GENERATE,
        shots: int = 0,
        reading: Layer | None = None,
    ) -> Task:
        """The task, the same object at each call. Reads no data yet. `reading` is by default the task's own.

        Raises TaskNotFoundError; InvalidRequestError where it does not run in this mode or with this number of
        examples.
        """
        mode = mode or suite_pb2.MODE_GENERATE
        key = (suite, name, mode, shots, reading)
        with self._lock:
            if key not in self._tasks:
                self._tasks[key] = self._made(suite, name, mode, shots, reading)
            return self._tasks[key]

    def selection(self, task: Task, limit: int, seed: int) -> Selection:
        """What `select` takes, with its item-set hash. Reads the data; blocking."""
        return self._selection(task, limit, seed)

    def chosen(self, task: Task, rows: Sequence[int]) -> Selection:
        """The rows of these numbers, in increasing order, as far as the data has them. Reads the data; blocking."""
        return _hashed(task, [row for row in rows if row < task.size()])

    def plan(
        self,
        work: job_pb2.SuiteWork,
        mode: suite_pb2.Mode,
        unit_size: int,
        rows: Mapping[str, Sequence[int]] | None = None,
        reading: Layer | None = None,
        clustered: bool = False,
    ) -> list[job_pb2.TaskPlan]:
        """The tasks of a job with their items counted and hashed. Reads the data; blocking. `rows` are, by task, the
        numbers of the rows to take instead of those that a limit selects. `reading` is by default each task's own.
        `clustered`: plans also say which items share a passage.

        Left out, where other tasks remain: tasks that do not run in this mode or with this number of examples, and
        tasks marked optional whose data is absent. The job then is a subset. Raises TaskNotFoundError,
        InvalidRequestError (limit, shots, repeats, mode), DataError.
        """
        mode = mode or suite_pb2.MODE_GENERATE
        _check(work, mode)
        plans: list[job_pb2.TaskPlan] = []
        weighting = self._weighting(work.suite)
        left_out: InvalidRequestError | DataMissingError | None = None
        for name, optional in self._planned(work, mode):
            if rows is not None and name not in rows:
                continue
            task = self.task(work.suite, name, mode, work.shots, reading)
            try:
                selection = (
                    self.selection(task, work.limit, work.seed) if rows is None else self.chosen(task, rows[name])
                )
                plans.append(_task_plan(task, selection, work, unit_size, weighting))
                if clustered and task.grouped:
                    plans[-1].clusters.extend(self._clusters(task, work.limit, work.seed))
            except DataMissingError as error:
                if not optional:
                    raise
                left_out = error
        if left_out is not None and not plans:
            raise left_out
        return plans

    def _planned(self, work: job_pb2.SuiteWork, mode: suite_pb2.Mode) -> list[tuple[str, bool]]:
        """Names of the job's tasks in the suite's order, and whether each is optional."""
        if opened := self._open_suite(work.suite):
            return [(name, False) for name in opened.tasks(work.suite.partition(":")[2])]
        suite = self._suite(work.suite)
        wanted = [_definition(suite, name) for name in work.tasks] or suite.definitions
        fit = [found for found in wanted if mode in found.modes and work.shots <= found.most_shots]
        # If none is left, the first one says why.
        chosen = {definition.task for definition in fit or wanted}
        return [(found.task, found.optional) for found in suite.definitions if found.task in chosen]

    def _weighting(self, suite: str) -> suite_pb2.Weighting:
        if opened := self._open_suite(suite):
            return opened.weighting(suite.partition(":")[2])
        return self._suite(suite).weighting

    def _made(self, suite: str, name: str, mode: suite_pb2.Mode, shots: int, reading: Layer | None) -> Task:
        if opened := self._open_suite(suite):
            return opened.task(name, mode, shots)
        return _definition(self._suite(suite), name).task_on(self._reader, mode, shots, reading)

    def _open_suite(self, suite: str) -> OpenSuite | None:
        """The open suite of a name such as "lm_eval:hellaswag"."""
        opened, _, task = suite.partition(":")
        return self._open.get(opened) if task else None

    def _suite(self, suite: str) -> ListedSuite:
        if suite in self._listed:
            return self._listed[suite]
        if suite in self._open:
            raise TaskNotFoundError(f"Name a task of {suite}, as in {suite}:<task>.", "suite")
        known = [*self._listed, *(f"{name}:<task>" for name in self._open)]
        raise TaskNotFoundError(f"{refusals.not_found('Suite', suite)}. Suites: {', '.join(known)}.", "suite")


def select(task: Task, limit: int, seed: int) -> Sequence[int]:
    """Row numbers in increasing order: all where `limit` is 0, else a sample of at most `limit`, as `sample` says."""
    return sample(task.info.task, task.size(), limit, seed)


def _selection(task: Task, limit: int, seed: int) -> Selection:
    return _hashed(task, select(task, limit, seed))


def _clusters(task: Task, limit: int, seed: int) -> Sequence[int]:
    """By selected item, the number of its group; empty if each item is by itself. Renders all of them."""
    return references.numbered(item.group for item in task.items(select(task, limit, seed)))


def _hashed(task: Task, indexes: Sequence[int]) -> Selection:
    digest = hashlib.sha256()
    for item_hash in task.hashes(indexes):
        digest.update(item_hash.encode())
    return Selection(indexes, digest.hexdigest())


def _task_plan(
    task: Task, selection: Selection, work: job_pb2.SuiteWork, unit_size: int, weighting: suite_pb2.Weighting
) -> job_pb2.TaskPlan:
    data = suite_pb2.DataSource()
    data.CopyFrom(task.info.data)
    data.revision = task.revision()
    repeats = max(1, work.repeats)
    has_right = task.scale is None
    return job_pb2.TaskPlan(
        task=task.info.task,
        title=task.info.title,
        version=task.version,
        scorer_version=task.scorer_version,
        items=len(selection.indexes),
        published_items=task.info.published_items,
        data=data,
        item_set=selection.item_set,
        metrics=[*task.metrics, *(repeated(repeats) if repeats > 1 and has_right else ())],
        unit_size=unit_size,
        score_group=task.info.score_group,
        prompt_hash=task.prompt_hash(),
        repeats=repeats,
        category=task.info.category,
        beside=task.info.beside,
        reading=layers.reading_of(task.reading),
        weighting=weighting,
        plugin=task.plugin,
    )


def _definition(suite: ListedSuite, name: str) -> TaskDeclaration:
    for definition in suite.definitions:
        if definition.task == name:
            return definition
    known = ", ".join(definition.task for definition in suite.definitions)
    raise TaskNotFoundError(f"Suite {suite.name} has no task {name!r}. Tasks: {known}.", "suite.tasks")


def _check(work: job_pb2.SuiteWork, mode: suite_pb2.Mode) -> None:
    if work.limit < 0:
        raise InvalidRequestError(refusals.at_least("limit", 0, zero="all items"), "suite.limit")
    if work.shots < 0:
        raise InvalidRequestError(refusals.at_least("shots", 0), "suite.shots")
    if not 0 <= work.repeats <= MOST_REPEATS:
        raise InvalidRequestError(refusals.between("repeats", 0, MOST_REPEATS), "suite.repeats")
    if work.repeats > 1 and mode == suite_pb2.MODE_LOGLIKELIHOOD:
        raise InvalidRequestError("Log-likelihoods are the same each time. Set repeats to 0 or 1.", "suite.repeats")
