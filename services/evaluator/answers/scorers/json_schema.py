"""The scorer `json_schema`: whether an answer is JSON that satisfies a schema. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from services import further_fields, json_schemas, json_values
from services.evaluator.answers.reading.layers import Extraction
from services.evaluator.answers.scorers.json_fields import read_json
from services.evaluator.answers.scorers.scorer import Read, Reply, Scorer, by_field, mean
from touchstone.v1.dataset_pb2 import DatasetRow


def json_schema(read: Read | None, schema: str) -> Scorer:
    """Whether the JSON in an answer, found as for `json`, is valid.

    The schema is `schema`, else that of the row's own `response_format`, else the row's reference. It is the right
    answer of its row, so that rows with a schema are scored. Raises ValueError for a `schema` that cannot be used, with
    a clause that continues after it.
    """
    if schema:
        json_schemas.compiled(schema)

    def found(reply: Reply) -> Extraction:
        return read_json(reply, read)

    def right(value: Any) -> str:
        text = json_schemas.written(value)
        json_schemas.compiled(text)
        return text

    def own(row: DatasetRow) -> Any:
        if schema:
            return schema
        asks = "json_schema" in row.sampling.extra_json
        return json_schemas.of_request(further_fields.fields(row.sampling)) if asks else json_values.NOTHING

    def judge(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
        known = json_schemas.compiled(answers[0])
        try:
            judged = known.judge(json_values.parsed(answer))
        except ValueError:
            return unread(answers)
        fields = by_field((name, float(is_right)) for name, is_right in judged.properties)
        return {"correct": float(judged.valid), **fields}

    def unread(answers: Sequence[str]) -> Mapping[str, float]:
        missed = by_field((name, 0.0) for name in json_schemas.compiled(answers[0]).properties)
        return {"correct": 0.0, **missed}

    return Scorer(
        "json_schema",
        "json_schema-2",
        (mean("schema_valid", "correct"),),
        ("correct",),
        right,
        found,
        judge,
        several=lambda value: [value],
        unread=unread,
        own=own,
    )
