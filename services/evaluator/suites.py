"""The shipped suites, suites of plug-ins, and suites whose tasks a job names.

Every module of `tasks` that declares SUITE, TITLE, DESCRIPTION and TASKS is a shipped suite. A suite of several tasks
also declares its WEIGHTING; without it, tasks count equally.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from services.errors import InvalidRequestError, sendable
from services.evaluator import tasks
from services.evaluator.answers.reading.layers import Layer
from services.evaluator.data.reader import Reader
from services.evaluator.items.task import Task
from services.evaluator.tasks.kinds.definition import Definition
from touchstone.v1 import suite_pb2

_FIRST = ("demo", "glue", "superglue", "mmlu", "medical")
"""The suites that pages show first; the others follow by name."""
_TEXTS = {
    "SUITE": "the name that requests use",
    "TITLE": "the name that pages show",
    "DESCRIPTION": "a sentence on what the suite measures",
}
_WEIGHTINGS = (suite_pb2.WEIGHTING_ITEMS, suite_pb2.WEIGHTING_TASKS)


@dataclass(frozen=True, slots=True)
class ShippedSuite:
    """A suite as its file declares it."""

    name: str
    title: str
    description: str
    definitions: tuple[Definition, ...]
    weighting: suite_pb2.Weighting
    plugin: ClassVar[str] = ""
    executor: ClassVar[Executor | None] = None

    def announced(self) -> suite_pb2.Suite:
        """What is known without reading its data."""
        return suite_pb2.Suite(
            suite=self.name,
            title=self.title,
            description=self.description,
            tasks=[definition.info() for definition in self.definitions],
            weighting=self.weighting,
        )


class TaskDeclaration(Protocol):
    """What planning asks of a suite's task before its data is read: as `Definition` has it."""

    @property
    def task(self) -> str: ...
    @property
    def optional(self) -> bool: ...
    @property
    def modes(self) -> Sequence[suite_pb2.Mode]: ...
    @property
    def most_shots(self) -> int: ...

    def info(self) -> suite_pb2.TaskInfo: ...

    def task_on(self, reader: Reader, mode: suite_pb2.Mode, shots: int = 0, reading: Layer | None = None) -> Task: ...


class ListedSuite(Protocol):
    """A suite that lists its tasks, built in or of a plug-in."""

    @property
    def name(self) -> str: ...
    @property
    def definitions(self) -> Sequence[TaskDeclaration]: ...
    @property
    def weighting(self) -> suite_pb2.Weighting: ...
    @property
    def executor(self) -> Executor | None: ...
    @property
    def plugin(self) -> str: ...

    def announced(self) -> suite_pb2.Suite: ...


def declared(module: object, name: str = "") -> ShippedSuite:
    """The suite that a module declares; `name` is what its entry point calls it. Raises InvalidRequestError, whose
    message says everything that is missing or wrong, a sentence each."""
    problems = list(_problems(module, name))
    if problems:
        raise InvalidRequestError(" ".join(problems))
    weighting = getattr(module, "WEIGHTING", suite_pb2.WEIGHTING_TASKS)
    found: Any = module
    return ShippedSuite(found.SUITE, found.TITLE, found.DESCRIPTION, tuple(found.TASKS), weighting)


def _problems(module: object, name: str) -> Iterator[str]:
    for member, what in _TEXTS.items():
        value = getattr(module, member, None)
        if not isinstance(value, str) or not value.strip():
            yield f"{member} is missing: {what}."
        elif sendable(value) != value:
            yield f"{member} has half a character, which cannot be shown: {value!r:.80}."
    suite = getattr(module, "SUITE", "")
    if name and isinstance(suite, str) and suite and suite != name:
        yield f"SUITE is {suite!r}, but the entry point is named {name!r}. Use one name."
    definitions = getattr(module, "TASKS", None)
    if not isinstance(definitions, list | tuple) or not definitions:
        yield "TASKS is missing: a tuple of the suite's tasks, such as MultipleChoice(...)."
        return
    for number, each in enumerate(definitions, 1):
        if not isinstance(each, Definition):
            yield f"Entry {number} of TASKS is {type(each).__name__}, not a task such as MultipleChoice(...)."
        elif each.suite != suite:
            yield f"Task {each.task} names the suite {each.suite!r}, but SUITE is {suite!r}."
    counts = Counter(each.task for each in definitions if isinstance(each, Definition))
    yield from (f"Two tasks are named {task!r}." for task, count in counts.items() if count > 1)
    if getattr(module, "WEIGHTING", None) not in (None, *_WEIGHTINGS):
        yield "WEIGHTING must be Weighting.WEIGHTING_ITEMS or Weighting.WEIGHTING_TASKS."


def shipped() -> dict[str, ShippedSuite]:
    """Every suite by name."""
    found: list[ShippedSuite] = []
    for info in pkgutil.iter_modules(tasks.__path__):
        module = importlib.import_module(f"{tasks.__name__}.{info.name}")
        if hasattr(module, "TASKS"):
            found.append(declared(module))
    place = {name: number for number, name in enumerate(_FIRST)}
    found.sort(key=lambda suite: (place.get(suite.name, len(place)), suite.name))
    return {suite.name: suite for suite in found}


class OpenSuite(Protocol):
    """Implemented by the adapter of an evaluation library. Safe to use from several threads."""

    def announced(self) -> suite_pb2.Suite:
        """The suite with `open` set and without tasks; reads no data."""
        ...

    def tasks(self, name: str) -> Sequence[str]:
        """Names of the tasks that a name means: itself, or a group's members.

        Raises InvalidRequestError (field "suite") for an unknown name.
        """
        ...

    def weighting(self, name: str) -> suite_pb2.Weighting:
        """The weighting in the score of the tasks that a name means. Raises as `tasks`."""
        ...

    def task(self, name: str, mode: suite_pb2.Mode, shots: int) -> Task:
        """The task; its data is read when it is first needed.

        Raises InvalidRequestError for an unknown name, and where it does not run in this mode or with this number of
        examples. Errors of its data are DataError.
        """
        ...
