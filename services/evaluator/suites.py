"""The shipped suites, and suites whose tasks a job names.

Every module of `tasks` that declares SUITE, TITLE, DESCRIPTION and TASKS is a shipped suite. A suite of several tasks
also declares its WEIGHTING; without it, tasks count equally.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from services.evaluator import tasks
from services.evaluator.items.task import Task
from services.evaluator.tasks.kinds.definition import Definition
from touchstone.v1 import suite_pb2

_FIRST = ("demo", "glue", "superglue", "mmlu", "medical")
"""The suites that pages show first; the others follow by name."""


@dataclass(frozen=True, slots=True)
class ShippedSuite:
    """A suite as its file declares it."""

    name: str
    title: str
    description: str
    definitions: tuple[Definition, ...]
    weighting: suite_pb2.Weighting

    def announced(self) -> suite_pb2.Suite:
        """What is known without reading its data."""
        return suite_pb2.Suite(
            suite=self.name,
            title=self.title,
            description=self.description,
            tasks=[definition.info() for definition in self.definitions],
            weighting=self.weighting,
        )


def shipped() -> dict[str, ShippedSuite]:
    """Every suite by name."""
    found: list[ShippedSuite] = []
    for info in pkgutil.iter_modules(tasks.__path__):
        module = importlib.import_module(f"{tasks.__name__}.{info.name}")
        if hasattr(module, "TASKS"):
            declared: Sequence[Definition] = module.TASKS
            weighting = getattr(module, "WEIGHTING", suite_pb2.WEIGHTING_TASKS)
            found.append(ShippedSuite(module.SUITE, module.TITLE, module.DESCRIPTION, tuple(declared), weighting))
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
