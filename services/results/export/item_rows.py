"""Exported items: whole texts, statistics, and everything that metrics are computed from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from services.results import item_choice
from services.results.database import Connection, query
from services.results.export.columns import Kind, Row, Table
from services.results.visibility import Visibility
from touchstone.v1 import results_service_pb2

CHUNK_BYTES = 1_000_000
CHUNK_ROWS = 2000


@dataclass(frozen=True, slots=True)
class Field:
    """A column of the file and what it is in SQL: rows come as they are written, as there may be very many."""

    name: str
    kind: Kind
    sql: str


def _plain(kind: Kind, *names: str) -> list[Field]:
    return [Field(name, kind, f'"{name}"') for name in names]


def _finite(*names: str) -> list[Field]:
    return [Field(name, Kind.NUMBER, f'CASE WHEN isfinite("{name}") THEN "{name}" END') for name in names]


_OUTCOMES = "['answered', 'unparsed', 'output_truncated', 'refused', 'input_truncated', 'infrastructure_error']"
_CONTINUATIONS = """list_transform(continuations, lambda c: {
    'text': c."text",
    'loglikelihood': CASE WHEN isfinite(c.loglikelihood) THEN c.loglikelihood END,
    'tokens': c.tokens,
    'greedy': c.greedy
})"""
COLUMNS_OF_ITEMS: tuple[Field, ...] = (
    *_plain(Kind.TEXT, "job_id", "task"),
    *_plain(Kind.WHOLE, "item", "repeat", "position", "attempt"),
    Field("outcome", Kind.TEXT, f"{_OUTCOMES}[outcome]"),
    *_finite("correct", "value", "target"),
    Field("statistics", Kind.OBJECT, "other_statistics"),
    *_plain(Kind.TEXT, "prediction", "reference", "group", "custom_id", "item_hash", "prompt_hash"),
    *_plain(Kind.TEXT, "prompt", "response", "reasoning"),
    Field("continuations", Kind.OBJECT, _CONTINUATIONS),
    *_plain(Kind.TEXT, "extraction", "error", "scorer_version", "finish_reason"),
    *_finite("latency_ms", "ttft_ms"),
    *_plain(Kind.WHOLE, "input_tokens", "output_tokens", "reasoning_tokens", "calls"),
    *_finite("cost_usd"),
    *_plain(Kind.FLAG, "reused"),
    *_plain(Kind.TEXT, "parameters", "served_model"),
    Field("identity", Kind.TEXT, "coalesce(replace(identity::VARCHAR, '-', ''), '')"),
    *_plain(Kind.TEXT, "evaluator"),
)
_STATISTICS = [field.name for field in COLUMNS_OF_ITEMS].index("statistics")


def items(connection: Connection, request: results_service_pb2.ListItemsRequest, visible: Visibility) -> Table:
    """The items that ListItems would list, in its order. Raises as `item_choice.choose`."""
    chosen, where = item_choice.choose(connection, request, visible)
    return Table([(field.name, field.kind) for field in COLUMNS_OF_ITEMS], _read(connection, chosen, where))


def _read(connection: Connection, chosen: str, where: dict[str, Any]) -> Iterator[list[Row]]:
    """Places and sizes first, so that texts can be read in chunks of bounded size."""
    found = connection.execute(chosen + query("chosen_places"), where).fetchnumpy()
    places, sizes = np.asarray(found["place"]), np.asarray(found["bytes"])
    columns = ", ".join(f'{field.sql} AS "{field.name}"' for field in COLUMNS_OF_ITEMS)
    text = f"SELECT rowid, {columns} FROM items WHERE rowid IN (SELECT unnest($places::BIGINT[]))"
    for start, stop in pairwise(_cuts(sizes)):
        chunk = places[start:stop].tolist()
        rows = {place: values for place, *values in connection.execute(text, {"places": chunk}).fetchall()}
        for values in rows.values():
            if values[_STATISTICS] is not None:
                values[_STATISTICS] = json.loads(values[_STATISTICS])
        yield [rows[place] for place in chunk]


def _cuts(sizes: np.typing.NDArray[np.int64]) -> list[int]:
    """Where chunks begin and end: CHUNK_ROWS at most, and CHUNK_BYTES unless one row has more."""
    cuts, used = [0], 0
    for row, size in enumerate(sizes.tolist()):
        if row > cuts[-1] and (used + size > CHUNK_BYTES or row - cuts[-1] >= CHUNK_ROWS):
            cuts.append(row)
            used = 0
        used += size
    return [*cuts, len(sizes)] if len(sizes) else []
