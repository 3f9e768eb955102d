"""Names of enum values in SQL: `outcome <> OUTCOME_REFUSED` is written out as the number that is stored."""

from __future__ import annotations

import re

from touchstone.v1 import item_result_pb2, job_pb2, results_service_pb2, suite_pb2

_NUMBERS: dict[str, int] = {
    name: number
    for enum in (item_result_pb2.Outcome, job_pb2.Job.State, results_service_pb2.RunMark, suite_pb2.Weighting)
    for name, number in enum.items()
}
_NAME = re.compile(r"\b(?:OUTCOME|STATE|RUN_MARK|WEIGHTING)_[A-Z_]+\b")


def with_numbers(sql: str) -> str:
    """The SQL with numbers for names. Raises KeyError for a name of these enums that the protos do not have."""
    return _NAME.sub(lambda found: str(_NUMBERS[found[0]]), sql)
