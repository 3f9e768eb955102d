"""Rows of several jobs matched with each other, and whether the jobs gave the same answer to a row.

Predictions say whether answers agree. Where none was read from any answer, responses do, white space apart: most
differ in their first words, so that whole texts are seldom cleaned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from services.results.items.filters import condition
from services.results.items.scores import Score, score_of
from services.results.side_by_side.scores import scores as scores_in_common
from services.results.storage.database import Connection, query
from touchstone.v1 import job_pb2, metric_pb2
from touchstone.v1.results_service_pb2 import ListSideBySideRequest, StoredItem

_WHITE = ("' '", "chr(10)", "chr(9)", "chr(13)")
_BEGINNING, _COMPARED = 64, 12
"""Characters looked at first, and how many without white space tell texts apart."""


@dataclass(frozen=True, slots=True)
class Matched:
    """A row for each row that some job has, with the columns of `rows`: task, item, repeat and name, by which they are
    in order and apart; agree, all_final, right_in and wrong_in, where bit n is the n-th job; fits, for query and
    conditions; and of the n-th job place_n, passage_n, score_n, latency_n, input_n, output_n and cost_n, the place
    being the number of the row in `items`, NULL without one.

    `scores` are what items count, by job, and `totals` what the jobs score; `common` tells whether all jobs have some
    row.
    """

    rows: pa.Table
    by_custom_id: bool
    scores: Sequence[Score]
    totals: Sequence[metric_pb2.Metric]
    common: bool

    def name_of(self, item: StoredItem) -> str:
        return item.result.custom_id if self.by_custom_id else item.result.item_hash


def match(connection: Connection, request: ListSideBySideRequest, jobs: Sequence[job_pb2.Job]) -> Matched:
    """By custom id where all rows have one that no other has, else by task, item and repeat of the same content.

    Raises InvalidRequestError for bad conditions.
    """
    asked = {"jobs": [job.job_id for job in jobs]}
    keys = connection.execute(query("side_by_side/keys"), asked).fetchall()
    by_custom_id = bool(keys) and all(told for _, told, _ in keys)
    # Responses are long: they are read only where something hangs on them.
    response = "response" if any(unread for *_, unread in keys) else "''"
    key = "custom_id AS name" if by_custom_id else "item_hash AS name"
    parameters: dict[str, Any] = {"task": request.task}
    scores, parts = [], []
    for number, job in enumerate(jobs):
        score = score_of(job.plan, f"job_{number}")
        fits = condition(request.query, request.conditions, score, f"job_id = $job_{number}")
        text = query("side_by_side/items").format(
            key=key, score=score.sql, response=response, condition=fits.sql, job=f"job_{number}"
        )
        parts.append(f"r{number} AS ({text})")
        parameters |= {f"job_{number}": job.job_id} | score.parameters | fits.parameters
        scores.append(score)
    numbers = range(len(jobs))
    using = "name" if by_custom_id else "task, item, repeat, name"
    joined = "r0 " + " ".join(f"FULL JOIN r{number} USING ({using})" for number in numbers[1:])
    columns = [
        *(f"coalesce({_each('{r}.' + name, numbers)}) AS {name}" for name in ("task", "item", "repeat", "name")),
        f"coalesce({_each('{r}.final', numbers, ' AND ')}, false) AS all_final",
        f"all_final AND {sql(len(jobs))} AS agree",
        *(
            " + ".join(f"CASE WHEN r{number}.is_{verdict} THEN {1 << number} ELSE 0 END" for number in numbers)
            + f" AS {verdict}_in"
            for verdict in ("right", "wrong")
        ),
        f"coalesce({_each('{r}.fits', numbers, ' OR ')}, false) AS fits",
        *(f"r{n}.{name} AS {column}_{n}" for n in numbers for column, name in _OF_JOB.items()),
    ]
    text = f"WITH {', '.join(parts)} SELECT {', '.join(columns)} FROM {joined}"
    rows = connection.sql(text, params=parameters).to_arrow_table()
    everywhere = reduce(pc.and_, (pc.is_valid(rows[f"place_{number}"]) for number in numbers))
    totals = scores_in_common(connection, rows, jobs)
    return Matched(rows, by_custom_id, scores, totals, bool(pc.any(everywhere).as_py()))


_OF_JOB = {
    "place": "place",
    "passage": "passage",
    "score": "score",
    "latency": "latency_ms",
    "input": "input_tokens",
    "output": "output_tokens",
    "cost": "cost_usd",
}


def _each(text: str, numbers: Sequence[int], between: str = ", ") -> str:
    return between.join(text.format(r=f"r{number}") for number in numbers)


def sql(jobs: int) -> str:
    """True, or false; NULL where a job has no such row."""
    return "(" + " AND ".join(_alike("r0", f"r{number}") for number in range(1, jobs)) + ")"


def _alike(one: str, other: str) -> str:
    beginnings = [_black(f"left({row}.response, {_BEGINNING})") for row in (one, other)]
    parted = (
        f"left({beginnings[0]}, {_COMPARED}) <> left({beginnings[1]}, {_COMPARED}) "
        f"AND length({beginnings[0]}) >= {_COMPARED} AND length({beginnings[1]}) >= {_COMPARED}"
    )
    return (
        f"CASE WHEN {one}.prediction <> {other}.prediction THEN false WHEN {one}.prediction <> '' THEN true "
        f"WHEN {one}.response = {other}.response THEN true WHEN {parted} THEN false "
        f"ELSE {_black(f'{one}.response')} = {_black(f'{other}.response')} END"
    )


def _black(text: str) -> str:
    for white in _WHITE:
        text = f"replace({text}, {white}, '')"
    return text
