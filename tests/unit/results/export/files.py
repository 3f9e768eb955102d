"""Exports and the tables in them."""

from __future__ import annotations

import json
from typing import Any

from services.results.export.exports import export
from services.results.export.tables import PIECE_BYTES
from services.results.intake import writes
from services.results.storage.database import Connection
from services.results.visibility import EVERYTHING, Visibility
from tests.unit.results.builders import CUT, UNPARSED, answer, batch, event, job, plan, seal
from touchstone.v1 import job_pb2, suite_pb2
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
    writes.store_events(connection, [event("0001", job("j", plan("t", len(HOSTILE))))])
    made = [answer(i, text, response=text, prompt=text) for i, text in enumerate(HOSTILE)]
    made[0].continuations.add(text="=A", loglikelihood=float("-inf"), tokens=2)
    made[1].statistics["overlap"] = 0.25
    made[2].cost_usd = 0.001
    writes.store_items(connection, [batch("j", "t", made)])


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
    writes.store_items(connection, [batch("j", task, results) for task, results in batches])
    seal(connection, made)
    made.state = job_pb2.Job.STATE_COMPLETED
    writes.store_events(connection, [event("0009", made, "completed")])
    return made
