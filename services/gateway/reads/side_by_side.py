"""The question behind rows side by side."""

from __future__ import annotations

from services import rpc
from services.gateway.backend import Backend
from touchstone.v1 import results_service_pb2

LEAST_JOBS, MOST_JOBS = 2, 4
_TIMEOUT_S = 20.0
OF_ONE_JOB = ("only_right", "only_wrong")
"""Filters that are about one of the jobs."""


async def ask(
    backend: Backend, request: results_service_pb2.ListSideBySideRequest, caller: rpc.Identity
) -> results_service_pb2.ListSideBySideResponse:
    """Raises InvalidRequestError for jobs that have no row in common, NotFoundError for an unknown one."""
    return await backend.ask(backend.results.ListSideBySide, request, caller, timeout_s=_TIMEOUT_S)
