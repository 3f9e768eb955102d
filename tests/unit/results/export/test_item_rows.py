"""Exported items."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Iterator

import pyarrow.parquet as pq
import pytest

from services.errors import NotFoundError
from services.results.export.exports import export
from services.results.intake import writes
from services.results.storage.database import Connection
from tests.recompute import Answers
from tests.unit.results.builders import ERROR, answer, batch, event, job, plan
from tests.unit.results.export.files import CSV, JSONL, PARQUET, full, items_of, metrics_of, rows, whole
from tests.unit.results.exported import exported_item
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1 import suite_pb2


def test_items_are_chosen_as_by_their_list(connection: Connection) -> None:
    writes.store_events(connection, [event("0001", job("j", plan("t", 4)))])
    writes.store_events(connection, [event("0002", job("k", plan("t", 4)))])
    made = [answer(3, "no"), answer(1), answer(2, outcome=ERROR), answer(0, "no", response="needle")]
    writes.store_items(connection, [batch("j", "t", made), batch("k", "t", [answer(3), answer(1, "no")])])

    def numbers(**fields: object) -> list[int]:
        return [row["item"] for row in rows(connection, items_of("j", **fields))]

    assert numbers() == [0, 1, 2, 3]
    assert numbers(filter=pb.ListItemsRequest.FILTER_FAILURES) == [0, 3]
    assert numbers(query="NEEDLE") == [0]
    with pytest.raises(NotFoundError, match="has no task 'u'"):
        numbers(task="u")
    assert numbers(filter=pb.ListItemsRequest.FILTER_REGRESSED, baseline_job_id="k") == [3]
    assert numbers(page_size=1) == [0, 1, 2, 3]


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


def test_long_texts_come_whole_in_pieces(connection: Connection) -> None:
    writes.store_events(connection, [event("0001", job("j", plan("t", 20)))])
    texts = [chr(97 + i) * 250_000 for i in range(20)]
    writes.store_items(connection, [batch("j", "t", [answer(i, response=t) for i, t in enumerate(texts)])])
    for format_ in (CSV, JSONL, PARQUET):
        request = items_of("j")
        request.format = format_
        data = whole(connection, request)
        if format_ == PARQUET:
            assert pq.read_table(io.BytesIO(data)).column("response").to_pylist() == texts
        else:
            assert all(text.encode() in data for text in texts)
    assert isinstance(export(connection, request), Iterator)
