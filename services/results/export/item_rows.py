"""Exported items: whole texts, statistics, and everything that metrics are computed from.

Chosen items come from the database in order, in chunks of bounded size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from services.results.export.tables import Kind, Row, Table, Value
from services.results.items import filters, reads
from services.results.items.filters import Chosen
from services.results.storage import item_rows
from services.results.storage.database import Connection, known_usd, query
from services.results.visibility import Visibility
from services.words.enums import OUTCOMES, VERDICTS
from touchstone.v1 import results_service_pb2
from touchstone.v1.results_service_pb2 import Annotation

CHUNK_BYTES = 1_000_000
CHUNK_ROWS = 2000


@dataclass(frozen=True, slots=True)
class Found:
    """An item: the requested values, its score and its annotation; None for what is missing."""

    values: list[Any]
    score: float | None
    annotation: Annotation | None


def read_chunks(connection: Connection, chosen: Chosen, expressions: Sequence[str]) -> Iterator[list[Found]]:
    """`expressions` are SQL over a row of `items`. Places and sizes are read first, so that texts can be read in chunks
    of CHUNK_ROWS at most, and of CHUNK_BYTES unless one row has more."""
    found = connection.execute(chosen.sql + query("export/chosen_places"), chosen.parameters).fetchnumpy()
    places, sizes = np.asarray(found["place"]), np.asarray(found["bytes"])
    columns = ", ".join(f"{sql} AS column_{place}" for place, sql in enumerate(expressions))
    text = (
        f"SELECT rowid, task, item, repeat, {chosen.score.sql}, {columns} FROM items "
        "WHERE rowid IN (SELECT unnest($places::BIGINT[]))"
    )
    for start, stop in pairwise(_cuts(sizes)):
        chunk = places[start:stop].tolist()
        rows = connection.execute(text, {"places": chunk} | chosen.score.parameters).fetchall()
        held = reads.held(connection, [chosen.job.job_id], [row[2] for row in rows])
        by_place = {
            place: Found(values, score, held.get((chosen.job.job_id, task, item, repeat)))
            for place, task, item, repeat, score, *values in rows
        }
        yield [by_place[place] for place in chunk]


def _cuts(sizes: np.typing.NDArray[np.int64]) -> list[int]:
    """Where chunks begin and end."""
    cuts, used = [0], 0
    for row, size in enumerate(sizes.tolist()):
        if row > cuts[-1] and (used + size > CHUNK_BYTES or row - cuts[-1] >= CHUNK_ROWS):
            cuts.append(row)
            used = 0
        used += size
    return [*cuts, len(sizes)] if len(sizes) else []


@dataclass(frozen=True, slots=True)
class Field:
    """A column of the file and its SQL: rows are read as they are written, as there may be very many. `sql` is empty
    for a column that does not come from `items`."""

    name: str
    kind: Kind
    sql: str = ""


def _plain(kind: Kind, *names: str) -> list[Field]:
    return [Field(name, kind, f'"{name}"') for name in names]


def _finite(*names: str) -> list[Field]:
    return [Field(name, Kind.NUMBER, f'CASE WHEN isfinite("{name}") THEN "{name}" END') for name in names]


_CONTINUATIONS = """list_transform(continuations, lambda c: {
    'text': c."text",
    'loglikelihood': CASE WHEN isfinite(c.loglikelihood) THEN c.loglikelihood END,
    'tokens': c.tokens,
    'greedy': c.greedy
})"""
_STORED: tuple[Field, ...] = (
    *_plain(Kind.TEXT, "job_id", "task"),
    *_plain(Kind.WHOLE, "item", "repeat", "position", "attempt"),
    Field("outcome", Kind.TEXT, f"{list(OUTCOMES)}[outcome]"),
    *_finite("correct", "value", "target"),
    Field("statistics", Kind.OBJECT, "other_statistics"),
    *_plain(Kind.TEXT, "prediction", "reference", "group", "custom_id", "item_hash", "prompt_hash"),
    *_plain(Kind.TEXT, "prompt", "response", "reasoning"),
    Field("continuations", Kind.OBJECT, _CONTINUATIONS),
    *_plain(Kind.TEXT, "extraction", "error", "scorer_version", "finish_reason"),
    *_finite("latency_ms", "ttft_ms"),
    *_plain(Kind.WHOLE, "input_tokens", "output_tokens", "reasoning_tokens", "calls"),
    Field("cost_usd", Kind.NUMBER, known_usd("cost_usd")),
    *_plain(Kind.FLAG, "reused"),
    *_plain(Kind.TEXT, "parameters", "served_model"),
    Field("identity", Kind.TEXT, "coalesce(replace(identity::VARCHAR, '-', ''), '')"),
    *_plain(Kind.TEXT, "evaluator"),
    *(Field(name, Kind.OBJECT, f"nullif({name}, '')") for name in ("metadata", "messages")),
    *_plain(Kind.OBJECT, "tool_calls", "logprobs"),
)
COLUMNS_OF_ITEMS: tuple[Field, ...] = (
    *_STORED,
    Field("score", Kind.NUMBER),
    *(Field(name, Kind.TEXT) for name in ("verdict", "corrected_answer", "note")),
)
_JSON = ("statistics", "metadata", "messages", "tool_calls", "logprobs")
_PARSED = [place for place, field in enumerate(_STORED) if field.name in _JSON]


def items(connection: Connection, request: results_service_pb2.ListItemsRequest, visible: Visibility) -> Table:
    """The items that ListItems would list, in its order. Raises as `item_choice.choose`."""
    chosen = filters.choose(connection, request, visible)
    chunks = read_chunks(connection, chosen, [field.sql for field in _STORED])
    return Table([(field.name, field.kind) for field in COLUMNS_OF_ITEMS], (list(map(_row, chunk)) for chunk in chunks))


def _row(found: Found) -> Row:
    values, held = found.values, found.annotation
    for place in _PARSED:
        if values[place] is not None:
            values[place] = _parsed(values[place])
    if held is None:
        return [*values, found.score, "", "", ""]
    return [*values, found.score, VERDICTS.of(held.verdict), held.corrected_answer, held.note]


def _parsed(text: str) -> Value:
    """JSON that is too deep or too long for Python stays a text."""
    try:
        found: Value = item_rows.parsed_json(text)
    except ValueError:
        return text
    return found
