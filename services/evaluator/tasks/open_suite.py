"""A suite whose tasks are named by the job, as "<suite>:<task>", and looked up when they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from services.evaluator.tasks.base import Task
from touchstone.v1 import suite_pb2


class OpenSuite(Protocol):
    """Implemented by the adapter of an evaluation library. Safe to use from several threads."""

    def announced(self) -> suite_pb2.Suite:
        """The suite with `open` set and without tasks; reads no data."""
        ...

    def tasks(self, name: str) -> Sequence[str]:
        """Names of the tasks that a name stands for: of itself, or of a group's members.

        Raises InvalidRequestError (field "suite") for an unknown name.
        """
        ...

    def weighting(self, name: str) -> suite_pb2.Weighting:
        """What counts alike in the score of the tasks that a name stands for. Raises as `tasks`."""
        ...

    def task(self, name: str, mode: suite_pb2.Mode, shots: int) -> Task:
        """The task, whose data is read when it is first asked for.

        Raises InvalidRequestError for an unknown name, and where it does not run in this mode or with so many
        examples. Errors of its data are DataError.
        """
        ...
