"""The index of datasets, and the runs over them as the view `benchmarks` shows them."""

from __future__ import annotations

from datetime import datetime, timedelta
from hashlib import sha256

import pytest

from services.errors import InvalidRequestError, NotFoundError
from services.results.boards.leaderboard import UnknownSuiteError, leaderboard
from services.results.datasets import index
from services.results.intake import writes
from services.results.storage.database import Connection
from services.results.visibility import Visibility
from tests.unit.results.builders import ERROR, START, batch, event
from tests.unit.results.dataset_runs import DATASET, EXACT, dataset_job, row, stored
from touchstone.v1 import dataset_pb2, job_pb2, results_service_pb2
from touchstone.v1 import dataset_service_pb2 as pb

NOW = datetime(2026, 11, 20, 9, 0)


def digest(name: str) -> str:
    return sha256(name.encode()).hexdigest()


def add(connection: Connection, number: int, *shards: str, **fields: object) -> dataset_pb2.Dataset:
    usual = {"name": f"rows {number}.jsonl", "owner": "ann", "rows": 10, "digest": digest(str(number))}
    dataset = dataset_pb2.Dataset(dataset_id=f"ds_{number:032x}", **(usual | fields))  # type: ignore[arg-type]
    dataset.uploaded_at.FromDatetime(START + timedelta(seconds=number // 2))
    manifest = dataset_pb2.DatasetManifest(dataset=dataset)
    for shard in shards:
        manifest.shards.add(digest=digest(shard), rows=1)
    index.add(connection, manifest, NOW)
    return dataset


def names(connection: Connection, visible: str = "", **filters: object) -> list[str]:
    """Of every page, one dataset a page."""
    found: list[str] = []
    request = pb.ListDatasetsRequest(page_size=1, **filters)  # type: ignore[arg-type]
    while True:
        page = index.list_datasets(connection, request, Visibility(visible))
        found += [dataset.name for dataset in page.datasets]
        if not page.next_page_token:
            assert page.total_size == len(found)
            return found
        request.page_token = page.next_page_token


def test_a_dataset_that_nothing_has_run_over_has_an_empty_board(connection: Connection) -> None:
    made = add(connection, 1, owner="ann")
    asked = results_service_pb2.GetLeaderboardRequest(suite=made.dataset_id)
    assert not leaderboard(connection, asked).entries
    with pytest.raises(UnknownSuiteError):
        leaderboard(connection, asked, visible=Visibility("bob"))


def test_lists_are_newest_first_and_filters_join(connection: Connection) -> None:
    add(connection, 1, project_id=7, is_file=True)
    add(connection, 2, owner="bob", project_id=7)
    add(connection, 3, name="CANDIDATES.csv")
    assert names(connection) == ["CANDIDATES.csv", "rows 2.jsonl", "rows 1.jsonl"]
    assert names(connection, owner="ann") == ["CANDIDATES.csv", "rows 1.jsonl"]
    assert names(connection, project_id=7, query="ROWS") == ["rows 2.jsonl", "rows 1.jsonl"]
    assert names(connection, query="dates") == ["CANDIDATES.csv"]
    assert names(connection, files=True) == ["rows 1.jsonl"]
    assert names(connection, visible="bob") == ["rows 2.jsonl"]
    assert names(connection, visible="bob", owner="ann") == []


def test_a_page_token_fits_no_other_filter(connection: Connection) -> None:
    for number in (1, 2):
        add(connection, number)
    token = index.list_datasets(connection, pb.ListDatasetsRequest(page_size=1)).next_page_token
    with pytest.raises(InvalidRequestError):
        index.list_datasets(connection, pb.ListDatasetsRequest(page_size=1, page_token=token, owner="ann"))


def test_a_deleted_dataset_keeps_its_row_and_name_and_is_found_no_more(connection: Connection) -> None:
    dataset = add(connection, 1, "a")
    assert index.get(connection, dataset.dataset_id) == dataset
    index.mark_deleted(connection, dataset.dataset_id, NOW)
    index.mark_deleted(connection, dataset.dataset_id, NOW + timedelta(days=1))
    with pytest.raises(NotFoundError):
        index.get(connection, dataset.dataset_id)
    assert names(connection) == []
    assert index.listed(connection) == set()
    rows = connection.execute("SELECT id, name, file_path, count, uploaded_at, created_at, deleted_at FROM datasets")
    uploaded = dataset.uploaded_at.ToDatetime()
    path = f"manifest/{dataset.dataset_id}"
    assert rows.fetchall() == [(dataset.dataset_id, "rows 1.jsonl", path, 10, uploaded, NOW, NOW)]


def test_a_dataset_is_listed_once(connection: Connection) -> None:
    dataset = add(connection, 1, "a", "b")
    add(connection, 1, "a", "b")
    assert connection.execute("SELECT count(*) FROM dataset_shards").fetchall() == [(2,)]
    assert index.listed(connection) == {dataset.dataset_id}


def test_a_dataset_that_was_lost_and_restored_is_listed_again_and_has_its_shards(connection: Connection) -> None:
    dataset = add(connection, 1, "a", "b")
    index.mark_deleted(connection, dataset.dataset_id, NOW)
    add(connection, 1, "a", "b")
    assert index.get(connection, dataset.dataset_id) == dataset
    assert index.listed(connection) == {dataset.dataset_id}
    assert index.without_dataset(connection, [digest("a"), digest("b")]) == set()


def test_a_shard_is_free_once_no_dataset_has_it(connection: Connection) -> None:
    first = add(connection, 1, "a", "b", "a")
    add(connection, 2, "b", "c")
    every = [digest(name) for name in "abcd"]
    assert index.without_dataset(connection, every) == {digest("d")}
    index.mark_deleted(connection, first.dataset_id, NOW)
    assert index.without_dataset(connection, every) == {digest("a"), digest("d")}
    assert index.without_dataset(connection, []) == set()


def test_jobs_over_a_dataset_are_live_or_finished(connection: Connection) -> None:
    made = job_pb2.Job
    states = (
        *(made.STATE_PENDING, made.STATE_FINALIZING),
        *(made.STATE_COMPLETED, made.STATE_FAILED, made.STATE_CANCELLED),
    )
    for number, state in enumerate(states):
        writes.store_events(connection, [event(f"{number:04d}", dataset_job(f"job-{number}", 10, EXACT, state=state))])
    other = f"ds_{1:032x}"
    assert index.jobs_over(connection, [other, DATASET]) == [index.Jobs(), index.Jobs(live=2, finished=3)]
    assert index.jobs_over(connection, []) == []
    add(connection, 0)
    add(connection, 1)
    page = index.list_datasets(connection, pb.ListDatasetsRequest())
    assert [(one.dataset_id, count) for one, count in zip(page.datasets, page.finished_jobs, strict=True)] == [
        (other, 0),
        (DATASET, 3),
    ]


def test_the_view_of_benchmarks_shows_runs_over_datasets_alone(connection: Connection) -> None:
    running = dataset_job("00000000-0000-0000-0000-00000000000a", 8, EXACT)
    pending = dataset_job("00000000-0000-0000-0000-00000000000b", 8, EXACT, state=job_pb2.Job.STATE_PENDING)
    del pending.plan[:]
    pending.ClearField("started_at")
    suite = dataset_job("00000000-0000-0000-0000-00000000000c", 8, EXACT)
    suite.spec.suite.suite = "glue"
    for number, made in enumerate((running, pending, suite)):
        writes.store_events(connection, [event(f"{number:04d}", made)])
    stored_rows = [row(n, 1.0) for n in range(2)] + [row(2, outcome=ERROR)]
    writes.store_items(connection, [batch(running.job_id, "rows", stored_rows)])
    view = "SELECT * EXCLUDE (throughput, eta_seconds) FROM benchmarks ORDER BY id"
    started = running.started_at.ToDatetime()
    created = running.created_at.ToDatetime()
    rest = (None, None, None, None, created)
    assert connection.execute(view).fetchall() == [
        ("bm_" + "0" * 31 + "a", "m1", DATASET, "running", 37, 3, 8, started, *rest),
        ("bm_" + "0" * 31 + "b", "m1", DATASET, "pending", 0, 0, 0, None, *rest),
    ]


def test_the_view_of_benchmarks_has_the_figures_of_a_finished_run(connection: Connection) -> None:
    made = stored(connection, "00000000-0000-0000-0000-00000000000a", [row(n, 1.0) for n in range(4)], EXACT)
    done = job_pb2.Job()
    done.CopyFrom(made)
    done.state = job_pb2.Job.STATE_COMPLETED
    done.finished_at.FromSeconds(done.started_at.seconds + 6)
    writes.store_events(connection, [event(f"1-{made.job_id}", done, "completed")])
    columns = "status, progress, completed, total, throughput, eta_seconds, total_time_seconds, completed_at"
    found = connection.execute(f"SELECT {columns} FROM benchmarks").fetchall()
    assert found == [("completed", 100, 4, 4, 2.0, 0, 6.0, done.finished_at.ToDatetime())]


def test_rows_of_an_experiment_are_found_by_its_name_alone(connection: Connection) -> None:
    made = add(connection, 1, experiment=dataset_pb2.ExperimentSource(name="tips"))
    add(connection, 2)
    assert names(connection) == ["rows 2.jsonl"]
    assert index.of_experiment(connection, "tips") == made
    assert index.of_experiment(connection, "") is index.of_experiment(connection, "tip") is None
    index.mark_deleted(connection, made.dataset_id, NOW)
    assert index.of_experiment(connection, "tips") is None
