"""Any task of an installed lm_eval (0.4.13) by its name, as "lm_eval:hellaswag": an optional open suite.

For operators who install the extra and switch it on. It takes only names of tasks and groups that lm_eval ships: a path
would let a job run its own code. lm_eval is imported when a task is first asked for, which takes some seconds.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from services.errors import InvalidRequestError
from services.evaluator.lm_eval import library
from services.evaluator.lm_eval.configuration import Configuration
from services.evaluator.lm_eval.task import LmEvalTask
from touchstone.v1 import suite_pb2

SUITE = "lm_eval"
_EXTRA = "touchstone[lm_eval]"


class LmEvalSuite:
    """Implements `OpenSuite`. `data_dir` is the mirror's root or None, as for other suites."""

    def __init__(self, data_dir: Path | None) -> None:
        """Raises InvalidRequestError where lm_eval is not installed."""
        try:
            self._version = version("lm_eval")
        except PackageNotFoundError as error:
            raise InvalidRequestError(
                f"TOUCHSTONE_LM_EVAL is set, but lm_eval is not installed. Install {_EXTRA}, or unset it."
            ) from error
        self._data_dir = data_dir
        self._lock = threading.Lock()

    def announced(self) -> suite_pb2.Suite:
        return suite_pb2.Suite(
            suite=SUITE,
            title=f"lm_eval {self._version}",
            description=f"Any task or group of lm_eval by its name, such as {SUITE}:hellaswag.",
            open=True,
        )

    def tasks(self, name: str) -> list[str]:
        return list(dict.fromkeys(self._members(name)))

    def weighting(self, name: str) -> suite_pb2.Weighting:
        entry = self._entry(name)
        return group_weighting(entry.cfg) if entry.kind is library.kinds().GROUP else suite_pb2.WEIGHTING_TASKS

    def task(self, name: str, mode: suite_pb2.Mode, shots: int) -> LmEvalTask:
        entry = self._entry(name)
        if entry.yaml_path is None or entry.kind is not library.kinds().TASK:
            raise _refused(name, "it is not declared in YAML")
        configuration = Configuration.read(name, entry.yaml_path, entry.cfg)
        return LmEvalTask(configuration, self._data_dir, mode, shots, self._version)

    def _members(self, name: str) -> Iterator[str]:
        entry, kinds = self._entry(name), library.kinds()
        match entry.kind:
            case kinds.TAG:
                yield from sorted(entry.tags)
            case kinds.GROUP:
                for member in entry.cfg["task"]:
                    yield from self._members(_member_name(name, member))
            case _:
                yield name

    def _entry(self, name: str) -> Any:
        found = self._index.get(name)
        if found is None:
            raise InvalidRequestError(
                f"lm_eval {self._version} has no task {name!r}. `lm-eval ls tasks` lists those it has.", "suite"
            )
        return found

    @property
    def _index(self) -> Mapping[str, Any]:
        with self._lock:
            return self._read_index

    @cached_property
    def _read_index(self) -> Mapping[str, Any]:
        return library.index()


def group_weighting(group: Mapping[str, Any]) -> suite_pb2.Weighting:
    """A group's own `weight_by_size`, which lm_eval applies to all tasks inside, whatever groups are in between.

    Shipped groups have one rule for all of their metrics. In a group without a score in lm_eval, all tasks count
    equally.
    """
    found = group.get("aggregate_metric_list") or []
    rules = [found] if isinstance(found, Mapping) else found
    by_size = bool(rules) and bool(rules[0].get("weight_by_size", True))
    return suite_pb2.WEIGHTING_ITEMS if by_size else suite_pb2.WEIGHTING_TASKS


def _member_name(group: str, member: str | Mapping[str, Any]) -> str:
    if isinstance(member, str):
        return member
    # An alias is for lm_eval's own tables. Any other override makes it a different task from what its name says.
    if set(member) <= {"task", "task_alias"} and isinstance(member.get("task"), str):
        return str(member["task"])
    raise InvalidRequestError(
        f"The lm_eval group {group} changes the settings of its tasks, so it cannot be run. Name a task.",
        "suite",
    )


def _refused(name: str, why: str) -> InvalidRequestError:
    return InvalidRequestError(f"lm_eval's task {name} cannot be run here: {why}.", "suite")
