"""Item results as rows of the `items` table, both ways."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from touchstone.v1 import item_result_pb2, results_service_pb2

ERROR = item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR

SCHEMA = pa.schema(
    [
        ("job_id", pa.string()),
        ("task", pa.string()),
        ("item", pa.int32()),
        ("repeat", pa.int32()),
        ("attempt", pa.int32()),
        ("unit", pa.int32()),
        ("position", pa.int32()),
        ("outcome", pa.uint8()),
        ("prediction", pa.string()),
        ("reference", pa.string()),
        ("group", pa.string()),
        ("custom_id", pa.string()),
        ("item_hash", pa.string()),
        ("prompt_hash", pa.string()),
        ("prompt", pa.string()),
        ("response", pa.string()),
        ("reasoning", pa.string()),
        ("scorer_version", pa.string()),
        ("correct", pa.float64()),
        ("value", pa.float64()),
        ("target", pa.float64()),
        ("other_statistics", pa.string()),
        ("latency_ms", pa.float64()),
        ("input_tokens", pa.int32()),
        ("output_tokens", pa.int32()),
        ("finish_reason", pa.string()),
        ("calls", pa.int32()),
        ("error", pa.string()),
        ("extraction", pa.string()),
        ("served_model", pa.string()),
        ("evaluator", pa.string()),
    ]
)
KEY = ("job_id", "task", "item", "repeat")
_STATISTICS = ("correct", "value", "target")
_OWN = {"job_id", "task", "attempt", "unit", "evaluator", "other_statistics", *_STATISTICS}
_RESULT_FIELDS = tuple(name for name in SCHEMA.names if name not in _OWN)

COLUMNS = ", ".join(f'"{name}"' for name in SCHEMA.names)


def table(batches: Iterable[item_result_pb2.ItemResultBatch]) -> pa.Table:
    """One row per item key, the one that would be left if the items were stored one after the other.

    Results without an outcome are not results and are left out: the seal then counts the item as missing.
    """
    kept: dict[tuple[str, str, int, int], tuple[item_result_pb2.ItemResultBatch, item_result_pb2.ItemResult]] = {}
    for batch in batches:
        for result in batch.items:
            if result.outcome == item_result_pb2.OUTCOME_UNSPECIFIED:
                continue
            key = (batch.job_id, batch.task, result.item, result.repeat)
            old = kept.get(key)
            if old is None or _replaces(batch.attempt, result, old[0].attempt, old[1]):
                kept[key] = (batch, result)
    rows = [_row(batch, result) for batch, result in kept.values()]
    columns = zip(*rows, strict=True) if rows else ([] for _ in SCHEMA)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def _replaces(attempt: int, new: item_result_pb2.ItemResult, old_attempt: int, old: item_result_pb2.ItemResult) -> bool:
    """The rule of queries/store_items.sql: only an error gives way, to a final outcome or a later attempt."""
    return old.outcome == ERROR and (new.outcome != ERROR or attempt > old_attempt)


def _row(batch: item_result_pb2.ItemResultBatch, result: item_result_pb2.ItemResult) -> tuple[Any, ...]:
    statistics = result.statistics
    others = {name: number for name, number in statistics.items() if name not in _STATISTICS}
    return (
        batch.job_id,
        batch.task,
        result.item,
        result.repeat,
        batch.attempt,
        batch.unit,
        result.position,
        result.outcome,
        result.prediction,
        result.reference,
        result.group,
        result.custom_id,
        result.item_hash,
        result.prompt_hash,
        result.prompt,
        result.response,
        result.reasoning,
        result.scorer_version,
        *(statistics.get(name) for name in _STATISTICS),
        json.dumps(others, sort_keys=True) if others else None,
        result.latency_ms,
        result.input_tokens,
        result.output_tokens,
        result.finish_reason,
        result.calls,
        result.error,
        result.extraction,
        result.served_model,
        batch.evaluator,
    )


def stored_item(values: Sequence[Any]) -> results_service_pb2.StoredItem:
    """The message for a row selected as COLUMNS."""
    row = dict(zip(SCHEMA.names, values, strict=True))
    result = item_result_pb2.ItemResult(**{name: row[name] for name in _RESULT_FIELDS})
    for name in _STATISTICS:
        if row[name] is not None:
            result.statistics[name] = row[name]
    for name, number in json.loads(row["other_statistics"] or "{}").items():
        result.statistics[name] = number
    return results_service_pb2.StoredItem(
        job_id=row["job_id"],
        task=row["task"],
        attempt=row["attempt"],
        result=result,
        evaluator=row["evaluator"],
    )
