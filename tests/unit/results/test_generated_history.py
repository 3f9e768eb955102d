"""The generated database of the benchmarks holds what the service would have stored."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from benchmarks import history
from services.results.boards.leaderboard import leaderboard
from services.results.boards.overview import overview
from services.results.items import reads
from services.results.runs import job_reads
from services.results.storage.database import Connection
from services.results.storage.migrations import open_file
from touchstone.v1 import results_service_pb2 as pb

JOBS = 1_000
NOW = datetime(2026, 11, 20, 12, 0)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("history") / "touchstone.duckdb"
    history.write(path, jobs=JOBS, items=0, now=NOW)
    return path


@pytest.fixture
def reader(generated: Path) -> Connection:
    return open_file(generated)


@pytest.mark.stack
def test_a_generated_history_reads_as_a_stored_one(reader: Connection, generated: Path) -> None:
    page = job_reads.list_jobs(reader, pb.ResultsServiceListJobsRequest(with_scores=True, page_size=100))
    assert page.total_size == JOBS
    created = [job.created_at.ToDatetime() for job in page.jobs]
    assert created == sorted(created, reverse=True)
    after = job_reads.list_jobs(
        reader, pb.ResultsServiceListJobsRequest(with_scores=True, page_size=100, page_token=page.next_page_token)
    )
    assert not {job.job_id for job in page.jobs} & {job.job_id for job in after.jobs}
    for job, scores in zip(page.jobs, page.scores, strict=True):
        assert [metric.metric for metric in scores.averages][:2] == ["score", "accuracy"]
        assert job_reads.get_job(reader, job.job_id) == job
    figures = overview(reader, pb.GetOverviewRequest(), NOW)
    assert figures.total_jobs == JOBS
    assert 150 < figures.models <= 198
    assert figures.completed_jobs + figures.failed_jobs + figures.cancelled_jobs == JOBS
    board = leaderboard(reader, pb.GetLeaderboardRequest(suite="glue", metric="accuracy"))
    assert [entry.rank for entry in board.entries][:10] == list(range(1, 11))
    assert board.entries[0].tasks[0].task == "cola"
    reader.close()
    first, second = history.newest_runs(generated)
    opened = open_file(generated)
    for job_id in (first, second):
        items = reads.list_items(opened, pb.ListItemsRequest(job_id=job_id, page_size=1))
        assert items.count_all == 14_042 == sum(plan.items for plan in job_reads.get_job(opened, job_id).plan)
    opened.close()
