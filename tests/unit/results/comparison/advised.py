"""Recommendations on stored runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from services.results.storage.database import Connection
from tests.unit.results.comparisons import compared
from tests.unit.results.finished import finished, right_or_wrong, task
from touchstone.v1 import comparison_pb2

Patterns = Mapping[str, Sequence[str]]
"""By model, one pattern a task."""


def advice(connection: Connection, runs: Patterns, prefix: str = "j", **fields: Any) -> comparison_pb2.CompareResponse:
    for model, patterns in runs.items():
        tasks = [task(f"t{n}", right_or_wrong(pattern)) for n, pattern in enumerate(patterns)]
        finished(connection, f"{prefix}-{model}", *tasks, model=model)
    return compared(connection, *(f"{prefix}-{model}" for model in runs), **fields)
