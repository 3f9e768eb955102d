"""Comparisons for tests, as the service makes them."""

from __future__ import annotations

from services.results.comparison.compare import compare
from services.results.storage.database import Connection
from services.results.visibility import EVERYTHING, Visibility
from touchstone.v1 import comparison_pb2


def compared(
    connection: Connection, *subjects: str, suite: str = "glue", visible: Visibility = EVERYTHING, **fields: object
) -> comparison_pb2.CompareResponse:
    """On a connection of its own, as the service does."""
    request = comparison_pb2.CompareRequest(subjects=subjects, suite=suite, **fields)  # type: ignore[arg-type]
    with connection.cursor() as cursor:
        return compare(cursor, request, visible)


def difference(
    response: comparison_pb2.CompareResponse, task: str = "", metric: str = "", pair: tuple[str, str] | None = None
) -> comparison_pb2.Difference:
    """The only one of a task, of the suite without one."""
    (found,) = [
        one
        for one in response.differences
        if one.task == task and (not metric or one.metric == metric) and (pair is None or {one.a, one.b} == set(pair))
    ]
    return found
