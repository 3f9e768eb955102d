"""Item results as rows of the `items` table, both ways."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from math import isfinite
from operator import attrgetter
from typing import Any

import pyarrow as pa

from services import numbers
from services.words import chat
from touchstone.v1 import item_result_pb2, results_service_pb2

ERROR = item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR

_CONTINUATION = pa.struct(
    [("text", pa.string()), ("loglikelihood", pa.float64()), ("tokens", pa.int32()), ("greedy", pa.bool_())]
)
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
        ("continuations", pa.list_(_CONTINUATION)),
        ("ttft_ms", pa.float64()),
        ("reused", pa.bool_()),
        ("parameters", pa.string()),
        ("identity", pa.string()),
        ("cost_usd", pa.float64()),
        ("reasoning_tokens", pa.int32()),
        ("metadata", pa.string()),
        ("messages", pa.string()),
        ("tool_calls", pa.string()),
        ("logprobs", pa.string()),
    ]
)
KEY = ("job_id", "task", "item", "repeat")
_STATISTICS = ("correct", "value", "target")
_BATCH_FIELDS = ("job_id", "task", "attempt", "unit", "evaluator")
_OWN = {
    *(*_BATCH_FIELDS, *_STATISTICS, "other_statistics"),
    *("input_tokens", "output_tokens", "continuations", "identity", "cost_usd", "tool_calls", "logprobs"),
    "parameters",
}
_PLAIN_FIELDS = tuple(name for name in SCHEMA.names if name not in _OWN)

COLUMNS = ", ".join(f'"{name}"' for name in SCHEMA.names)

CALLS = (
    "array_to_string(list_transform(json_extract(tool_calls, '$[*].function'), "
    "lambda c: concat(c ->> 'name', '(', c ->> 'arguments', ')')), chr(10))"
)
"""SQL: tool calls as a text, a line each; NULL without any."""
CALLS_BY_VALUE = """(
    SELECT string_agg(
        concat(one.name, chr(10), CASE
            WHEN json_valid(one.arguments) THEN (
                SELECT string_agg(
                    concat_ws(' ', fullkey, CASE
                        WHEN type = 'DOUBLE' THEN regexp_replace(atom::VARCHAR, '[.]0$', '')
                        ELSE coalesce(atom::VARCHAR, type)
                    END),
                    chr(10) ORDER BY fullkey
                )
                FROM json_tree(CASE WHEN json_valid(one.arguments) THEN one.arguments ELSE 'null' END)
            )
            ELSE one.arguments
        END),
        chr(10) ORDER BY one.place
    )
    FROM (
        SELECT call ->> 'name' AS name, call ->> 'arguments' AS arguments, place
        FROM (
            SELECT
                unnest(json_extract(tool_calls, '$[*].function')) AS call,
                generate_subscripts(json_extract(tool_calls, '$[*].function'), 1) AS place
        )
    ) AS one
)"""
"""SQL: a text that is the same for the same calls, whatever the order of names and the white space of their arguments;
NULL without any."""

# Made once: `json.dumps` with options makes an encoder for each value.
_written = json.JSONEncoder(ensure_ascii=False).encode
_sorted = json.JSONEncoder(sort_keys=True).encode

_Pair = tuple[item_result_pb2.ItemResultBatch, item_result_pb2.ItemResult]


def table(batches: Iterable[item_result_pb2.ItemResultBatch]) -> pa.Table:
    """One row per item key, the one that would be left if the items were stored one after the other.

    Results without an outcome are not results and are left out: the seal then counts the item as missing.
    """
    kept: dict[tuple[str, str, int, int], _Pair] = {}
    for batch in batches:
        job_id, task, attempt = batch.job_id, batch.task, batch.attempt
        for result in batch.items:
            if not result.outcome:
                continue
            key = (job_id, task, result.item, result.repeat)
            old = kept.get(key)
            if old is None or _replaces(attempt, result, old[0].attempt, old[1]):
                kept[key] = (batch, result)
    results = [result for _, result in kept.values()]
    columns: dict[str, Any] = _statistics(results)
    columns["continuations"] = _continuations(results)
    columns["identity"] = [result.identity for result in results]
    columns["cost_usd"] = [
        numbers.answer_usd(result.cost_usd) if result.HasField("cost_usd") else None for result in results
    ]
    columns["input_tokens"] = [None if result.input_untold else result.input_tokens for result in results]
    columns["output_tokens"] = [None if result.output_untold else result.output_tokens for result in results]
    columns["tool_calls"] = [
        _written(chat.calls(result.tool_calls)) if result.tool_calls else None for result in results
    ]
    columns["logprobs"] = [_written(chat.logprobs(result.logprobs)) if result.logprobs else None for result in results]
    columns["parameters"] = [_parameters(batch, result) for batch, result in kept.values()]
    for name in _BATCH_FIELDS:
        columns[name] = [getattr(batch, name) for batch, _ in kept.values()]
    for name in _PLAIN_FIELDS:
        columns[name] = list(map(attrgetter(name), results))
    arrays = [columns[f.name] for f in SCHEMA]
    return pa.table(
        [a if isinstance(a, pa.Array) else pa.array(a, f.type) for a, f in zip(arrays, SCHEMA, strict=True)],
        schema=SCHEMA,
    )


def _parameters(batch: item_result_pb2.ItemResultBatch, result: item_result_pb2.ItemResult) -> str:
    place = result.shared_parameters
    return batch.parameters[place - 1] if 0 < place <= len(batch.parameters) else result.parameters


def _replaces(attempt: int, new: item_result_pb2.ItemResult, old_attempt: int, old: item_result_pb2.ItemResult) -> bool:
    """The rule of queries/intake/store_items.sql: only an error gives way, to a final outcome or a later attempt."""
    return old.outcome == ERROR and (new.outcome != ERROR or attempt > old_attempt)


def _statistics(results: Sequence[item_result_pb2.ItemResult]) -> dict[str, list[Any]]:
    """Most answers have the statistics of another one: each combination is looked at once."""
    known: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    rows = []
    for result in results:
        statistics = result.statistics
        # Taken apart, as a message's map makes its pairs slowly. Another order only costs another look.
        key = (*statistics, *statistics.values())
        row = known.get(key)
        if row is None:
            row = known[key] = _columns(dict(statistics))
        rows.append(row)
    names = (*_STATISTICS, "other_statistics")
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def _columns(statistics: dict[str, float]) -> tuple[Any, ...]:
    """Statistics that have a column, and the others as JSON."""
    # To the database NaN is greater than any number: it would count as right. JSON has no NaN, and one would make every
    # other statistic of the job unreadable. Adding 0 makes 0 of -0, which is the same statistic.
    finite = {name: number + 0.0 for name, number in statistics.items() if isfinite(number)}
    own = [finite.pop(name, None) for name in _STATISTICS]
    # An answer without statistics counts in no metric. One whose numbers are all invalid counts as 0 in each.
    marked = statistics and not finite and all(number is None for number in own)
    return *own, _sorted(finite) if finite or marked else None


def _continuations(results: Sequence[item_result_pb2.ItemResult]) -> pa.Array:
    """Built column by column: rows of dictionaries would take several times as long."""
    every = [c for result in results for c in result.continuations]
    if not every:
        return pa.nulls(len(results), SCHEMA.field("continuations").type)
    ends, total = [0], 0
    for result in results:
        total += len(result.continuations)
        ends.append(total)
    fields = [pa.array(list(map(attrgetter(f.name), every)), f.type) for f in _CONTINUATION]
    empty = pa.array([not result.continuations for result in results])
    values = pa.StructArray.from_arrays(fields, fields=list(_CONTINUATION))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values, mask=empty)


def stored_item(values: Sequence[Any], score: float | None = None) -> results_service_pb2.StoredItem:
    """The message for a row selected as COLUMNS. `score` is StoredItem.score."""
    row = dict(zip(SCHEMA.names, values, strict=True))
    result = item_result_pb2.ItemResult(
        **{name: row[name] for name in _PLAIN_FIELDS},
        parameters=row["parameters"],
        continuations=[item_result_pb2.Continuation(**c) for c in row["continuations"] or ()],
        identity=row["identity"].hex if row["identity"] is not None else "",
        cost_usd=numbers.answer_usd(row["cost_usd"]),
        input_tokens=row["input_tokens"],
        output_tokens=row["output_tokens"],
        input_untold=row["input_tokens"] is None,
        output_untold=row["output_tokens"] is None,
    )
    for name in _STATISTICS:
        if row[name] is not None:
            result.statistics[name] = row[name]
    if row["other_statistics"]:
        for name, number in json.loads(row["other_statistics"]).items():
            result.statistics[name] = number
    if row["tool_calls"]:
        result.tool_calls.extend(chat.read_calls(row["tool_calls"]))
    if row["logprobs"]:
        result.logprobs.extend(chat.read_logprobs(row["logprobs"]))
    return results_service_pb2.StoredItem(
        job_id=row["job_id"],
        task=row["task"],
        attempt=row["attempt"],
        result=result,
        evaluator=row["evaluator"],
        score=score,
    )


def parsed_json(text: str) -> Any:
    """Numbers that are not finite, or that a float cannot hold, become null, as no file may contain them.

    Raises ValueError for what Python cannot read: invalid JSON, nesting beyond its stack, a number with thousands of
    digits.
    """
    try:
        return json.loads(text, parse_float=_number, parse_constant=_nothing)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def metadata_fields(text: str) -> dict[str, Any]:
    """The fields of metadata; empty where there are no metadata, or where Python cannot read them."""
    try:
        found = parsed_json(text) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _number(text: str) -> float | None:
    number = float(text)
    return number if isfinite(number) else None


def _nothing(_: str) -> None:
    return None
