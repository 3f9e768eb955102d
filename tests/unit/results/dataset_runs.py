"""Runs over an uploaded dataset, with only what differs spelled out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from services.results.intake import writes
from services.results.storage.database import Connection
from tests.unit.results.builders import ANSWERED, ERROR, answer, batch, event, job, seal
from touchstone.v1 import item_result_pb2, job_pb2, suite_pb2
from touchstone.v1.content_pb2 import ToolCall

DATASET = "ds_" + "0" * 32
EXACT = suite_pb2.MetricSpec(metric="exact_match", rule=suite_pb2.MetricSpec.RULE_MEAN, statistic="correct")
TOKEN_F1 = suite_pb2.MetricSpec(metric="token_f1", rule=suite_pb2.MetricSpec.RULE_MEAN, statistic="token_f1")
TASK = "rows"


def row(
    item: int,
    score: float | None = None,
    metric: suite_pb2.MetricSpec = EXACT,
    outcome: int = ANSWERED,
    metadata: Mapping[str, object] | None = None,
    **fields: object,
) -> item_result_pb2.ItemResult:
    """An answer to a row; without a score the row has no reference. `metadata` may be anything that JSON knows."""
    usual: dict[str, object] = {
        "custom_id": f"candidate-{item}",
        "response": f"response {item}",
        "prompt": f"user:\nquestion {item}",
        "item_hash": f"hash {item}",
        "metadata": "" if metadata is None else json.dumps(metadata),
        "statistics": {} if score is None or outcome == ERROR else {metric.statistic: score},
    }
    reference = "" if score is None else "right"
    return answer(item, f"said {item}" if score is not None else "", reference, outcome, **(usual | fields))


def calling(item: int, *arguments: str, **fields: object) -> item_result_pb2.ItemResult:
    """An answer that is calls of the tool `weather` and no text."""
    calls = [
        ToolCall(id=f"call_{item}_{number}", name="weather", arguments=one) for number, one in enumerate(arguments)
    ]
    return row(item, **({"response": "", "finish_reason": "tool_calls", "tool_calls": calls} | fields))  # type: ignore[arg-type]


def dataset_job(
    job_id: str, items: int, *metrics: suite_pb2.MetricSpec, scorer: str = "exact_match", **fields: object
) -> job_pb2.Job:
    """`fields` are those of builders.job."""
    plan = job_pb2.TaskPlan(
        task=TASK, title="batch.jsonl", items=items, published_items=items, metrics=metrics, unit_size=10, version="1"
    )
    plan.data.dataset, plan.data.revision, plan.item_set = DATASET, "digest", f"{items} rows by {scorer}"
    plan.scorer_version, plan.prompt_hash = "1", "rows"
    fields.setdefault("item_set", plan.item_set)
    made = job(job_id, plan, **fields)  # type: ignore[arg-type]
    made.spec.dataset.dataset_id, made.spec.dataset.name, made.spec.dataset.digest = DATASET, "batch.jsonl", "digest"
    made.spec.dataset.scoring.scorer = scorer
    return made


def stored(
    connection: Connection,
    job_id: str,
    rows: Sequence[item_result_pb2.ItemResult],
    *metrics: suite_pb2.MetricSpec,
    planned: int = 0,
    **fields: object,
) -> job_pb2.Job:
    """A running job with these answers."""
    made = dataset_job(job_id, planned or len(rows), *metrics, **fields)  # type: ignore[arg-type]
    writes.store_events(connection, [event(f"0-{job_id}", made)])
    writes.store_items(connection, [batch(job_id, TASK, rows)])
    return made


def completed(
    connection: Connection,
    job_id: str,
    rows: Sequence[item_result_pb2.ItemResult],
    *metrics: suite_pb2.MetricSpec,
    minute: int = 0,
    **fields: object,
) -> job_pb2.Job:
    """The same, sealed and completed."""
    made = stored(connection, job_id, rows, *metrics, minute=minute, **fields)  # type: ignore[arg-type]
    seal(connection, made, minute)
    made.state = job_pb2.Job.STATE_COMPLETED
    made.finished_at.CopyFrom(made.created_at)
    writes.store_events(connection, [event(f"1-{job_id}", made, "completed")])
    return made
