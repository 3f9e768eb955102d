"""The shipped suites: every module of `tasks` that declares SUITE, TITLE, DESCRIPTION and TASKS is one. One of several
tasks declares its WEIGHTING, too; without it, tasks count alike."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass

from services.evaluator import tasks
from services.evaluator.tasks.definition import Definition
from touchstone.v1 import suite_pb2

_FIRST = ("demo", "glue", "superglue", "mmlu", "medical")
"""What pages show first; the others follow by name."""


@dataclass(frozen=True, slots=True)
class ShippedSuite:
    """A suite as its file declares it."""

    name: str
    title: str
    description: str
    definitions: tuple[Definition, ...]
    weighting: suite_pb2.Weighting

    def announced(self) -> suite_pb2.Suite:
        """What is known without its data."""
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
