"""Reads refuse a negative project, item or repeat, as REST does: nothing has one, so an empty answer would hide a
mistake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from services.errors import InvalidRequestError
from services.results.boards import leaderboard, overview
from services.results.comparison.compare import compare
from services.results.datasets.index import list_datasets
from services.results.digests.reads import get_digest
from services.results.export.exports import export
from services.results.judging.reads import list_judges
from services.results.runs import configurations, job_reads
from services.results.storage.database import Connection
from tests.unit.results.builders import START, job, plan, run
from touchstone.v1 import comparison_pb2, dataset_service_pb2
from touchstone.v1 import results_service_pb2 as pb

_JOBS = pb.ResultsServiceListJobsRequest(project_id=-1)
_ASKS: dict[str, Callable[[Connection], Any]] = {
    "jobs": lambda c: job_reads.list_jobs(c, _JOBS),
    "leaderboard": lambda c: leaderboard.leaderboard(c, pb.GetLeaderboardRequest(suite="glue", project_id=-1)),
    "comparison": lambda c: compare(c, comparison_pb2.CompareRequest(subjects=["a", "b"], project_id=-1)),
    "overview": lambda c: overview.overview(c, pb.GetOverviewRequest(project_id=-1), START),
    "trends": lambda c: overview.list_trends(c, pb.ListTrendsRequest(suite="glue", project_id=-1), START),
    "configurations": lambda c: configurations.list_configurations(c, pb.ListConfigurationsRequest(project_id=-1)),
    "digest": lambda c: get_digest(c, pb.GetDigestRequest(project_id=-1)),
    "datasets": lambda c: list_datasets(c, dataset_service_pb2.ListDatasetsRequest(project_id=-1)),
    "export of jobs": lambda c: list(
        export(c, pb.ExportRequest(kind=pb.ExportRequest.KIND_JOBS, format=pb.ExportRequest.FORMAT_JSON, jobs=_JOBS))
    ),
}


@pytest.mark.parametrize("ask", _ASKS.values(), ids=_ASKS)
def test_a_negative_project_is_refused(connection: Connection, ask: Callable[[Connection], Any]) -> None:
    for name in ("a", "b"):
        run(connection, job(name, plan("one", 4)), 2, 2)
    with pytest.raises(InvalidRequestError, match="project_id must be 0 or more") as refused:
        ask(connection)
    assert refused.value.field == "project_id"


@pytest.mark.parametrize("field", ["item", "repeat"])
def test_judgements_of_a_negative_item_are_refused(connection: Connection, field: str) -> None:
    run(connection, job("a", plan("one", 4)), 2, 2)
    with pytest.raises(InvalidRequestError, match=f"{field} must be 0 or more"):
        list_judges(connection, pb.ListJudgesRequest(job_id="a", task="one", **{field: -1}))
