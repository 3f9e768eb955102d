"""Exports: which rows, which columns, the same values in every format."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from services.errors import InvalidRequestError, NotFoundError
from services.results import duckdb_store, job_reads
from services.results.database import Connection
from services.results.export.exports import export
from services.results.export.file import PIECE_BYTES
from services.results.export.item_rows import COLUMNS_OF_ITEMS
from services.results.export.job_rows import COLUMNS_OF_JOBS, RECEIPT, WHO
from services.results.export.metric_rows import COLUMNS_OF_METRICS
from services.results.visibility import EVERYTHING, Visibility
from tests.recompute import Answers
from tests.unit.results.builders import CUT, ERROR, UNPARSED, answer, batch, event, job, plan, run, seal
from tests.unit.results.exported import exported_item
from touchstone.v1 import job_pb2, metric_pb2, suite_pb2
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.results_service_pb2 import ExportRequest as Ask

CSV, JSON, JSONL, PARQUET = Ask.FORMAT_CSV, Ask.FORMAT_JSON, Ask.FORMAT_JSONL, Ask.FORMAT_PARQUET
HOSTILE = ("=1+1", "+1", "-1", "@cmd", "\tx", "\rx", 'say "a, b"', "two\r\nlines", "ünïcødé ☃", "'quoted", "")


def whole(connection: Connection, request: Ask, visible: Visibility = EVERYTHING) -> bytes:
    pieces = [piece.data for piece in export(connection, request, visible)]
    assert all(len(piece) == PIECE_BYTES for piece in pieces[:-1])
    assert all(len(piece) <= PIECE_BYTES for piece in pieces)
    return b"".join(pieces)


def rows(connection: Connection, request: Ask, visible: Visibility = EVERYTHING) -> list[dict[str, Any]]:
    request.format = JSONL
    return [json.loads(line) for line in whole(connection, request, visible).splitlines()]


def items_of(job_id: str, **fields: object) -> Ask:
    return Ask(kind=Ask.KIND_ITEMS, items=pb.ListItemsRequest(job_id=job_id, **fields))  # type: ignore[arg-type]


def metrics_of(job_id: str) -> Ask:
    return Ask(kind=Ask.KIND_METRICS, items=pb.ListItemsRequest(job_id=job_id))


def text_items(connection: Connection) -> None:
    """Job "j" with one item per hostile text."""
    duckdb_store.store_events(connection, [event("0001", job("j", plan("t", len(HOSTILE))))])
    made = [answer(i, text, response=text, prompt=text) for i, text in enumerate(HOSTILE)]
    made[0].continuations.add(text="=A", loglikelihood=float("-inf"), tokens=2)
    made[1].statistics["overlap"] = 0.25
    made[2].cost_usd = 0.001
    duckdb_store.store_items(connection, [batch("j", "t", made)])


def test_every_format_has_the_same_columns_and_values(connection: Connection) -> None:
    text_items(connection)
    request = items_of("j")
    lines = rows(connection, request)
    request.format = JSON
    assert json.loads(whole(connection, request)) == lines
    request.format = PARQUET
    table = pq.read_table(io.BytesIO(whole(connection, request)))
    assert table.column_names == list(lines[0])
    for found, line in zip(table.to_pylist(), lines, strict=True):
        for name in ("statistics", "continuations"):
            found[name] = json.loads(found[name]) if found[name] is not None else None
        assert found == line
    request.format = CSV
    data = whole(connection, request).decode()
    head, *body = csv.reader(io.StringIO(data, newline=""))
    assert head == list(lines[0])
    for cells, line in zip(body, lines, strict=True):
        assert [_plain(cell) for cell in cells] == [_cell(value) for value in line.values()]


def _plain(cell: str) -> str:
    return cell[1:] if cell[:1] == "'" and cell[1:2] in ("=", "+", "-", "@", "\t", "\r") else cell


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)


def test_no_cell_of_a_csv_is_a_formula(connection: Connection) -> None:
    text_items(connection)
    request = items_of("j")
    request.format = CSV
    data = whole(connection, request)
    assert data.count(b"\r\n") > len(HOSTILE)
    found = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
    for text, row in zip(HOSTILE, found, strict=True):
        for name in ("prompt", "response", "prediction"):
            assert row[name] == (f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") and text else text)
    assert not any(cell[:1] in ("=", "+", "-", "@", "\t", "\r") for row in found for cell in row.values() if cell)
    assert found[0]["latency_ms"] == "10.0"


def test_without_rows_a_file_is_still_whole(connection: Connection) -> None:
    request = Ask(kind=Ask.KIND_JOBS, format=CSV)
    assert whole(connection, request).startswith(b"job_id,status,")
    request.format = JSON
    assert json.loads(whole(connection, request)) == []
    request.format = PARQUET
    assert pq.read_table(io.BytesIO(whole(connection, request))).num_rows == 0
    request.format = JSONL
    assert whole(connection, request) == b""


def test_items_are_chosen_as_by_their_list(connection: Connection) -> None:
    duckdb_store.store_events(connection, [event("0001", job("j", plan("t", 4)))])
    duckdb_store.store_events(connection, [event("0002", job("k", plan("t", 4)))])
    made = [answer(3, "no"), answer(1), answer(2, outcome=ERROR), answer(0, "no", response="needle")]
    duckdb_store.store_items(connection, [batch("j", "t", made), batch("k", "t", [answer(3), answer(1, "no")])])

    def numbers(**fields: object) -> list[int]:
        return [row["item"] for row in rows(connection, items_of("j", **fields))]

    assert numbers() == [0, 1, 2, 3]
    assert numbers(filter=pb.ListItemsRequest.FILTER_FAILURES) == [0, 3]
    assert numbers(query="NEEDLE") == [0]
    with pytest.raises(NotFoundError, match="has no task 'u'"):
        numbers(task="u")
    assert numbers(filter=pb.ListItemsRequest.FILTER_REGRESSED, baseline_job_id="k") == [3]
    assert numbers(page_size=1) == [0, 1, 2, 3]


def full(connection: Connection) -> job_pb2.Job:
    """A sealed job with every kind of metric: tables, passages, several answers, means, correlations."""
    spec = suite_pb2.MetricSpec
    grouped = plan("grouped", 12)
    grouped.metrics.add(metric="em", rule=spec.RULE_ALL, statistic="correct", over="question")
    grouped.metrics.add(metric="f1a", positive_label="yes")
    repeated = plan("repeated", 6, "macro_f1")
    repeated.repeats = 3
    repeated.metrics.add(metric="mean@3", rule=spec.RULE_MEAN, statistic="overlap")
    repeated.metrics.add(metric="pass@3", rule=spec.RULE_ANY, statistic="correct", beside=True)
    repeated.metrics.add(metric="maj@3", rule=spec.RULE_MAJORITY, statistic="correct", beside=True)
    tables = plan("tables", 20, "accuracy", "f1", "matthews_correlation")
    made = job("j", tables, grouped, repeated, plan("numbers", 15, "pearson", "spearman"), configuration="conf")
    made.receipt.model_digest = "sha256:abc"
    made.plan[0].data.dataset = "acme/rows"
    said = ["yes", "no", "yes", "yes", "no"]
    right = ["yes", "yes", "no", "yes"]
    one = [answer(i, said[i % 5], right[i % 4]) for i in range(18)]
    one += [answer(18, reference="no", outcome=UNPARSED), answer(19, outcome=CUT)]
    two = [answer(i, said[i % 5], right[i % 4], group=f"passage {i // 4}") for i in range(12)]
    for result in two:
        result.statistics["question"] = float(result.item // 2)
    three = [
        answer(i, said[(i + r) % 5], right[i % 4], repeat=r, position=3 * i + r) for i in range(6) for r in range(3)
    ]
    for result in three:
        result.statistics["overlap"] = ((result.item * 7 + result.repeat) % 10) / 10
    four = [answer(i, f"{i % 4}.5", statistics={"value": (i % 4) + 0.5, "target": float(i % 7)}) for i in range(15)]
    batches = zip(("tables", "grouped", "repeated", "numbers"), (one, two, three, four), strict=True)
    duckdb_store.store_items(connection, [batch("j", task, results) for task, results in batches])
    seal(connection, made)
    made.state = job_pb2.Job.STATE_COMPLETED
    duckdb_store.store_events(connection, [event("0009", made, "completed")])
    return made


def test_every_metric_can_be_computed_again_from_the_exported_items(connection: Connection) -> None:
    full(connection)
    items = defaultdict(list)
    for row in rows(connection, items_of("j")):
        items[row["task"]].append(exported_item(row))
    measured = [row for row in rows(connection, metrics_of("j")) if row["task"]]
    assert len(measured) == 3 + 3 + 4 + 2
    for row in measured:
        spec = suite_pb2.MetricSpec(
            rule=f"RULE_{(row['rule'] or 'unspecified').upper()}",
            **{name: row[name] for name in ("metric", "statistic", "over", "positive_label")},
        )
        assert Answers(items[row["task"]]).of(spec) == pytest.approx(row["mean"], abs=1e-9), row["metric"]


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


def test_a_job_has_one_row_with_its_averages(connection: Connection) -> None:
    full(connection)
    duckdb_store.store_events(connection, [event("0010", job("running", plan("t", 3), minute=1))])
    running, done = rows(connection, Ask(kind=Ask.KIND_JOBS))
    result = job_reads.get_job_result(connection, "j")
    assert (done["job_id"], done["status"], done["sealed"]) == ("j", "completed", True)
    assert (done["score"], done["score_stderr"]) == (result.suite_score.mean, result.suite_score.stderr)
    assert done["averages"]["accuracy"]["tasks"] == 2
    assert (done["items"], done["answered"], done["unparsed"]) == (53, 63, 1)
    assert done["created_at"] == "2026-11-20T08:00:00.000Z"
    assert (running["status"], running["sealed"], running["score"], running["averages"]) == ("running", False, None, {})


def test_jobs_and_metrics_are_chosen_as_by_the_list_of_jobs(connection: Connection) -> None:
    for minute, (name, suite) in enumerate((("a", "glue"), ("b", "mmlu"), ("c", "glue"))):
        run(connection, job(name, plan("t", 4), suite=suite, owner=f"user {name}", minute=minute), 3, 1, minute=minute)
    chosen = pb.ResultsServiceListJobsRequest(suite="glue", page_size=1)
    assert [r["job_id"] for r in rows(connection, Ask(kind=Ask.KIND_JOBS, jobs=chosen))] == ["c", "a"]
    found = rows(connection, Ask(kind=Ask.KIND_METRICS, jobs=chosen))
    assert [(r["job_id"], r["task"], r["metric"]) for r in found if r["job_id"] == "a"] == [
        ("a", "t", "accuracy"),
        ("a", "", "score"),
        ("a", "", "accuracy"),
    ]
    own = Visibility("user a")
    assert [r["job_id"] for r in rows(connection, Ask(kind=Ask.KIND_JOBS), own)] == ["a"]
    assert {r["job_id"] for r in rows(connection, Ask(kind=Ask.KIND_METRICS), own)} == {"a"}


def test_more_jobs_than_are_read_at_once_come_whole(connection: Connection) -> None:
    made = [event(f"{i:04d}", job(f"job {i:03d}", plan("t", 1), minute=i)) for i in range(120)]
    connection.begin()
    duckdb_store.store_events(connection, made)
    connection.commit()
    found = rows(connection, Ask(kind=Ask.KIND_JOBS))
    assert [row["job_id"] for row in found] == [f"job {i:03d}" for i in reversed(range(120))]


def test_a_running_jobs_metrics_are_those_of_now(connection: Connection) -> None:
    duckdb_store.store_events(connection, [event("0001", job("j", plan("t", 4)))])
    duckdb_store.store_items(connection, [batch("j", "t", [answer(0), answer(1, "no")])])
    (row,) = rows(connection, metrics_of("j"))
    assert (row["sealed"], row["mean"], row["items"], row["items_planned"]) == (False, 0.5, 2, 4)
    assert rows(connection, Ask(kind=Ask.KIND_METRICS)) == []


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (Ask(kind=Ask.KIND_JOBS), "format"),
        (Ask(format=CSV), "kind"),
        (Ask(kind=Ask.KIND_JOBS, format=9), "format"),  # type: ignore[arg-type]
        (Ask(kind=Ask.KIND_METRICS, format=CSV, items=pb.ListItemsRequest(job_id="j", task="t")), "items"),
    ],
)
def test_a_wrong_request_is_refused(connection: Connection, request_: Ask, field: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        list(export(connection, request_))
    assert refused.value.field == field


def test_items_and_metrics_of_unknown_and_hidden_jobs_are_not_found(connection: Connection) -> None:
    text_items(connection)
    for request in (items_of("nobody"), metrics_of("nobody"), items_of("j"), metrics_of("j")):
        request.format = CSV
        with pytest.raises(NotFoundError):
            list(export(connection, request, Visibility("bob")))


def test_long_texts_come_whole_in_pieces(connection: Connection) -> None:
    duckdb_store.store_events(connection, [event("0001", job("j", plan("t", 20)))])
    texts = [chr(97 + i) * 250_000 for i in range(20)]
    duckdb_store.store_items(connection, [batch("j", "t", [answer(i, response=t) for i, t in enumerate(texts)])])
    for format_ in (CSV, JSONL, PARQUET):
        request = items_of("j")
        request.format = format_
        data = whole(connection, request)
        if format_ == PARQUET:
            assert pq.read_table(io.BytesIO(data)).column("response").to_pylist() == texts
        else:
            assert all(text.encode() in data for text in texts)
    assert isinstance(export(connection, request), Iterator)


def test_a_marked_run_says_so(connection: Connection) -> None:
    full(connection)
    connection.execute("INSERT INTO marks VALUES (1, 'j', 2, 'wrong prompt', '', 'ann', now()::TIMESTAMP)")
    (row,) = rows(connection, Ask(kind=Ask.KIND_JOBS))
    assert (row["mark"], row["mark_reason"]) == ("invalidated", "wrong prompt")
    result = job_reads.get_job_result(connection, "j")
    assert isinstance(result, metric_pb2.JobResult)
    assert row["not_ranked_reason"] == result.not_ranked_reason


def test_every_column_is_documented_and_no_other() -> None:
    text = (
        (Path(__file__).parents[3] / "docs/api.md")
        .read_text(encoding="utf-8")
        .partition("### Exports")[2]
        .partition("\n### ")[0]
    )
    whose = {
        "jobs": [column.name for column in COLUMNS_OF_JOBS],
        "metrics": [column.name for column in COLUMNS_OF_METRICS],
        "items": [column.name for column in COLUMNS_OF_ITEMS],
    }
    around = next(line for line in text.splitlines() if line.startswith("Rows of jobs and of metrics"))
    shared = re.findall(r"`(\w+)`", around)[: len(WHO) + len(RECEIPT)]
    for kind, columns in whose.items():
        listed = next(line for line in text.splitlines() if line.startswith(f"| `{kind}` |")).split(" | ")[2]
        own = re.findall(r"`(\w+)`", listed.partition(". ")[0])
        first, last = ([], []) if kind == "items" else (shared[: len(WHO)], shared[len(WHO) :])
        assert columns == [*first, *own, *last]
