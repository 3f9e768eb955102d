"""Answers by a schema."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.errors import InvalidRequestError
from services.evaluator.answers.scorers.choosing import canonical, scorer
from services.evaluator.answers.scorers.scorer import Reply
from services.evaluator.data.reader import DataError
from services.evaluator.items.task import Response
from tests.dataset_store import row
from tests.unit.evaluator.answers.scorers.scored import by_field, correct
from tests.unit.evaluator.datasets.tasks import all_items, task_of
from touchstone.v1.scoring_pb2 import Scoring

SCHEMA = {"type": "object", "properties": {"gas": {"type": "string"}, "n": {"type": "integer"}}, "required": ["gas"]}
BY_SCHEMA = Scoring(scorer="json_schema")


@pytest.mark.parametrize(
    ("response", "is_valid"),
    [
        ('{"gas": "neon"}', 1),
        ('```json\n{"gas": "neon", "n": 10.0}\n```', 1),
        ('It is {"gas": "neon"}.', 1),
        ('{"gas": 5}', 0),
        ('{"n": 1}', 0),
        ('{"gas": "neon", "n": 1e999}', 0),
        ("neon", 0),
        ("", 0),
    ],
)
def test_an_answer_is_valid_or_not(response: str, is_valid: int) -> None:
    assert correct("json_schema", response, SCHEMA) == is_valid


def test_each_property_is_judged() -> None:
    assert by_field(BY_SCHEMA, Reply('{"gas": 5, "n": 1}'), SCHEMA) == {"gas": 0, "n": 1}
    assert by_field(BY_SCHEMA, Reply("[]"), SCHEMA) == {"gas": 0, "n": 0}
    assert by_field(BY_SCHEMA, Reply("no"), SCHEMA) == {"gas": 0, "n": 0}


def asked(schema: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}


async def test_the_schema_is_the_jobs_else_the_rows_else_its_reference() -> None:
    number = {"type": "integer"}
    rows = [
        row(1, extra=asked(SCHEMA)),
        row(2, extra=asked(SCHEMA), reference={"gas": "neon"}),
        row(3, reference=number),
        row(4),
        row(5, extra={"response_format": {"type": "json_object"}}),
    ]
    own = await all_items(task_of(rows, BY_SCHEMA))
    assert [[json.loads(answer) for answer in item.answers] for item in own] == [[SCHEMA], [SCHEMA], [number], [], []]
    task = task_of(rows, Scoring(scorer="json_schema", schema=json.dumps(number)))
    assert [[json.loads(answer) for answer in item.answers] for item in await all_items(task)] == [[number]] * 5
    (item, *_) = own
    scored = task_of(rows, BY_SCHEMA).score(item, Response('{"gas": "neon"}'))
    assert scored.statistics == {"correct": 1, "field:gas": 1, "field:n": 1}


async def test_a_schema_that_cannot_be_used_is_named_with_its_row() -> None:
    for bad, what in (
        (row(1, extra=asked({"$ref": "http://127.0.0.1:9/"})), "schema"),
        (row(1, reference=5), "reference"),
    ):
        with pytest.raises(DataError, match=rf"Row 1 of .* has a {what} that "):
            await all_items(task_of([bad], BY_SCHEMA))
    with pytest.raises(InvalidRequestError, match="The schema is not JSON") as refused:
        scorer(Scoring(scorer="json_schema", schema="{"))
    assert refused.value.field == "dataset.scoring.schema"


def test_runs_by_other_schemas_are_other_runs() -> None:
    made = {
        canonical(Scoring(scorer="json_schema", schema=schema))
        for schema in ("", '{"type":"null"}', '{"type":"object"}')
    }
    assert len(made) == 3
    assert canonical(Scoring(scorer="json", schema="{}")) == canonical(Scoring(scorer="json"))
