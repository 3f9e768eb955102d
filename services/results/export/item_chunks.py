"""Chosen items from the database as exports write them: in order, in chunks of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from services.results.items import annotations as item_annotations
from services.results.items.filters import Chosen
from services.results.storage.database import Connection, query
from touchstone.v1.results_service_pb2 import Annotation

CHUNK_BYTES = 1_000_000
CHUNK_ROWS = 2000


@dataclass(frozen=True, slots=True)
class Found:
    """An item: the values asked for, and what it counts and is thought of; None for what there is not."""

    values: list[Any]
    score: float | None
    annotation: Annotation | None


def read(connection: Connection, chosen: Chosen, expressions: Sequence[str]) -> Iterator[list[Found]]:
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
        held = item_annotations.held(connection, [chosen.job.job_id], [row[2] for row in rows])
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
