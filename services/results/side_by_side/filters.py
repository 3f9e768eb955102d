"""Which matched rows a filter of ListSideBySide chooses, as SQL over the columns of `matching.Matched`."""

from __future__ import annotations

from services.errors import InvalidRequestError
from touchstone.v1.results_service_pb2 import ListSideBySideRequest as Request

_OF_ONE = (Request.FILTER_ONLY_RIGHT, Request.FILTER_ONLY_WRONG)


def sql(request: Request) -> str:
    """All filters but the first ask for rows that all jobs have with a final outcome. Raises InvalidRequestError."""
    if request.filter not in Request.Filter.values():
        raise InvalidRequestError(
            f"filter is {request.filter}; it may be 0 to {max(Request.Filter.values())}.", "filter"
        )
    if request.filter in _OF_ONE and request.only_job_id not in request.job_ids:
        raise InvalidRequestError(
            "Set only_job_id to the one of the jobs that is right, or wrong, alone.", "only_job_id"
        )
    jobs = len(request.job_ids)
    match request.filter:
        case Request.FILTER_AGREE:
            return "agree"
        case Request.FILTER_DISAGREE:
            return "(all_final AND NOT agree)"
        case Request.FILTER_ALL_RIGHT:
            return all_right(jobs)
        case Request.FILTER_ALL_WRONG:
            return all_wrong(jobs)
        case Request.FILTER_ONLY_RIGHT:
            return only_right(list(request.job_ids).index(request.only_job_id))
        case Request.FILTER_ONLY_WRONG:
            return only_wrong(list(request.job_ids).index(request.only_job_id), jobs)
    return "true"


def all_right(jobs: int) -> str:
    return f"right_in = {_all(jobs)}"


def all_wrong(jobs: int) -> str:
    return f"wrong_in = {_all(jobs)}"


def only_right(number: int) -> str:
    """In the job of this number, from 0."""
    return f"(all_final AND right_in = {1 << number})"


def only_wrong(number: int, jobs: int) -> str:
    return f"(wrong_in = {1 << number} AND right_in = {_all(jobs) - (1 << number)})"


def _all(jobs: int) -> int:
    return (1 << jobs) - 1
