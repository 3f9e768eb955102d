"""Scores of compared runs on the items in common."""

from __future__ import annotations

from services.results.storage.database import Connection
from tests.unit.results.comparison.compared import answers, score_of
from tests.unit.results.comparisons import compared
from tests.unit.results.finished import finished, task
from touchstone.v1 import metric_pb2


def test_whole_runs_show_the_figures_of_their_seals(connection: Connection) -> None:
    jobs = []
    for seed, job_id in enumerate("ab"):
        jobs.append(finished(connection, job_id, task("x", answers(seed, 40, 1, True), "f1", "accuracy"), model=job_id))
    response = compared(connection, "a", "b", metrics=["score", "f1"])
    for made in jobs:
        blob = connection.execute("SELECT result FROM seals WHERE job_id = ?", [made.job_id]).fetchall()[0][0]
        sealed = metric_pb2.JobResult.FromString(blob)
        assert score_of(response, made.job_id) == sealed.suite_score
        run = next(run for run in response.runs if run.job_id == made.job_id)
        assert list(run.tasks) == list(sealed.tasks)
    assert response.items == 40
    assert not response.subset


def test_a_run_whose_items_are_all_common_shows_the_figures_of_its_seal(connection: Connection) -> None:
    small = finished(connection, "small", task("x", answers(1, 40, 1, False), "f1"), model="small")
    finished(connection, "large", task("x", answers(2, 60, 1, False), "f1"), model="large")
    blob = connection.execute("SELECT result FROM seals WHERE job_id = ?", [small.job_id]).fetchall()[0][0]
    sealed = metric_pb2.JobResult.FromString(blob)
    response = compared(connection, "small", "large", metrics=["score", "f1"])
    assert response.items == 40
    assert score_of(response, "small") == sealed.suite_score
    assert list(next(run for run in response.runs if run.job_id == "small").tasks) == list(sealed.tasks)
    assert score_of(response, "large").n == 40
