"""Exported metrics."""

from __future__ import annotations

from services.results.intake import writes
from services.results.runs import job_reads
from services.results.storage.database import Connection
from tests.unit.results.builders import answer, batch, event, job, plan
from tests.unit.results.export.files import full, metrics_of, rows
from touchstone.v1.results_service_pb2 import ExportRequest as Ask


def test_metrics_are_those_of_the_result_to_the_last_digit(connection: Connection) -> None:
    full(connection)
    result = job_reads.get_job_result(connection, "j")
    found = rows(connection, metrics_of("j"))
    expected = [metric for task in result.tasks for metric in task.metrics]
    for row, metric in zip(found, expected, strict=False):
        assert (row["metric"], row["mean"], row["n"]) == (metric.metric, metric.mean, metric.n)
        assert (row["stderr"], row["ci95_low"], row["method"]) == (metric.stderr, metric.ci95_low, metric.method)
    averages = [row for row in found if not row["task"]]
    assert averages[0]["metric"] == "score"
    assert averages[0]["mean"] == result.suite_score.mean
    scores = {row["averaged"]: row["mean"] for row in averages if row["metric"] == "score"}
    assert scores == {average.rule: average.metric.mean for average in result.averages}
    assert averages[0]["averaged"] == "macro"
    assert scores["micro"] != scores["macro"]
    tables = found[0]
    assert (tables["unparsed_share"], tables["output_truncated_share"], tables["answered_share"]) == (0.05, 0.05, 0.9)
    assert (tables["dataset"], tables["model_digest"], tables["configuration"]) == ("acme/rows", "sha256:abc", "conf")


def test_a_running_jobs_metrics_are_those_of_now(connection: Connection) -> None:
    writes.store_events(connection, [event("0001", job("j", plan("t", 4)))])
    writes.store_items(connection, [batch("j", "t", [answer(0), answer(1, "no")])])
    (row,) = rows(connection, metrics_of("j"))
    assert (row["sealed"], row["mean"], row["items"], row["items_planned"]) == (False, 0.5, 2, 4)
    assert rows(connection, Ask(kind=Ask.KIND_METRICS)) == []
