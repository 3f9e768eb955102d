"""A page of matched rows, with what is counted over all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from services.errors import InvalidRequestError
from services.results import paging
from services.results.items import reads
from services.results.side_by_side.matching import Matched, Total
from services.results.side_by_side.word_diff import word_diff
from services.results.storage.database import Connection, query
from services.results.storage.item_rows import CALLS
from services.words import refusals
from services.words.enums import SIDE_BY_SIDE_FILTERS
from touchstone.v1 import job_pb2
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.results_service_pb2 import ListSideBySideRequest as Request

_KEY = ("task", "item", "repeat", "name")
_COUNTS = ("all", "final", "agree", "all_right", "all_wrong", "chosen")
_FIGURES = (
    *("only_right", "only_wrong", "latency", "input", "output", "input_untold", "output_untold"),
    *("cost", "unpriced"),
)
"""Of each job, as `_figures` selects them."""

_Row = tuple[paging.Key, pb.SideBySideRow]

_OF_ONE = (Request.FILTER_ONLY_RIGHT, Request.FILTER_ONLY_WRONG)


class MovedError(Exception):
    """Rows of `items` no longer have the numbers that they had."""


class Page:
    """What a request asks for. Raises InvalidRequestError for an invalid filter or page."""

    def __init__(self, request: pb.ListSideBySideRequest, jobs: Sequence[job_pb2.Job]) -> None:
        self._jobs = jobs
        self._with_diffs = request.with_diffs
        self._with_tasks = request.with_tasks
        self._size = paging.page_size(request.page_size, default=50, most=100)
        self._filter = paging.page_filter(request)
        after = paging.decode_token(request.page_token, self._filter, (str, int, int, str)) or 4 * (None,)
        self._after = {f"after_{name}": value for name, value in zip(_KEY, after, strict=True)}
        numbers = range(len(jobs))
        self._sql = query("side_by_side/page").format(
            chosen=sql(request),
            all_right=all_right(len(jobs)),
            all_wrong=all_wrong(len(jobs)),
            places=", ".join(f"place_{number}" for number in numbers),
            figures=", ".join(_figures(number, len(jobs)) for number in numbers),
        )

    def read(self, connection: Connection, matched: Matched) -> pb.ListSideBySideResponse:
        """Raises MovedError."""
        connection.register("matched", matched.rows)
        found = connection.execute(self._sql, self._after | {"size": self._size + 1}).fetchall()
        tasks = _tasks(connection, len(self._jobs)) if self._with_tasks else []
        connection.unregister("matched")
        width = len(_KEY) + 1 + len(self._jobs)
        counts = dict(zip(_COUNTS, found[0][width:], strict=False))
        figures = found[0][width + len(_COUNTS) :]
        places = [row[:width] for row in found if row[0] is not None]
        rows, token = paging.fill_weighed(
            self._rows(connection, places, matched),
            self._size,
            self._filter,
            lambda row: row[0],
            lambda row: row[1].ByteSize(),
        )
        return pb.ListSideBySideResponse(
            rows=[row for _, row in rows],
            next_page_token=token,
            total_size=counts["chosen"],
            count_all=counts["all"],
            count_agree=counts["agree"],
            count_all_right=counts["all_right"],
            count_all_wrong=counts["all_wrong"],
            runs=[
                _run(job, counts["final"], total, figures[len(_FIGURES) * number : len(_FIGURES) * (number + 1)])
                for number, (job, total) in enumerate(zip(self._jobs, matched.totals, strict=True))
            ],
            tasks=tasks,
        )

    def _rows(self, connection: Connection, found: Sequence[Sequence[Any]], matched: Matched) -> Iterator[_Row]:
        """Each row with its key. Diffs are made one by one: the page may be full before all are needed."""
        columns = list(zip(*(row[len(_KEY) + 1 :] for row in found), strict=True)) or [() for _ in self._jobs]
        stored = [
            reads.read_excerpts(connection, [place for place in column if place is not None], score)
            for column, score in zip(columns, matched.scores, strict=True)
        ]
        responses = _responses(connection, columns) if self._with_diffs else {}
        for row in found:
            task, item, repeat, name, agree, *places = row
            items = [None if place is None else one.get(place) for one, place in zip(stored, places, strict=True)]
            self._check(items, places, name, matched)
            yield (
                [task, item, repeat, name],
                pb.SideBySideRow(
                    custom_id=next((one.result.custom_id for one in items if one is not None), ""),
                    task=task,
                    item=item,
                    repeat=repeat,
                    items=[one or pb.StoredItem() for one in items],
                    agree=agree,
                    diffs=_diffs([responses.get(place) for place in places]) if self._with_diffs else [],
                ),
            )

    def _check(
        self, items: Sequence[pb.StoredItem | None], places: Sequence[int | None], name: str, matched: Matched
    ) -> None:
        for job, one, place in zip(self._jobs, items, places, strict=True):
            if place is None:
                continue
            if one is None or one.job_id != job.job_id or matched.name_of(one) != name:
                raise MovedError


def _figures(number: int, jobs: int) -> str:
    return f"""
        count(*) FILTER ({only_right(number)}),
        count(*) FILTER ({only_wrong(number, jobs)}),
        avg(latency_{number}) FILTER (all_final),
        sum(input_{number}) FILTER (all_final)::BIGINT,
        sum(output_{number}) FILTER (all_final)::BIGINT,
        count(*) FILTER (all_final AND input_{number} IS NULL),
        count(*) FILTER (all_final AND output_{number} IS NULL),
        fsum(cost_{number}) FILTER (all_final),
        count(*) FILTER (all_final AND cost_{number} IS NULL)"""


def _tasks(connection: Connection, jobs: int) -> list[pb.SideBySideTask]:
    columns = [all_right(jobs), all_wrong(jobs), *map(only_right, range(jobs))]
    counts = ", ".join(f"count(*) FILTER ({column})" for column in columns)
    rows = connection.execute(f"SELECT task, {counts} FROM matched WHERE fits GROUP BY task ORDER BY task").fetchall()
    return [
        pb.SideBySideTask(task=task, all_right=right, all_wrong=wrong, only_right=only)
        for task, right, wrong, *only in rows
        if right or wrong or any(only)
    ]


def _run(job: job_pb2.Job, rows: int, total: Total, values: Sequence[Any]) -> pb.SideBySideRun:
    score = total.score
    figures = dict(zip(_FIGURES, values, strict=True))
    return pb.SideBySideRun(
        job=job,
        rows=rows,
        mean_score=score.mean if score.HasField("mean") else None,
        score_ci95_low=score.ci95_low if score.HasField("ci95_low") else None,
        score_ci95_high=score.ci95_high if score.HasField("ci95_high") else None,
        further_metrics=total.further,
        only_right=figures["only_right"],
        only_wrong=figures["only_wrong"],
        mean_latency_ms=figures["latency"] or 0.0,
        input_tokens=figures["input"] or 0,
        output_tokens=figures["output"] or 0,
        input_untold=figures["input_untold"],
        output_untold=figures["output_untold"],
        cost_usd=None if figures["unpriced"] else figures["cost"],
    )


def _diffs(responses: Sequence[str | None]) -> list[pb.WordDiff]:
    first, *others = responses
    return [
        pb.WordDiff(),
        *(pb.WordDiff() if first is None or other is None else word_diff(first, other) for other in others),
    ]


def _responses(connection: Connection, columns: Sequence[Sequence[int | None]]) -> Mapping[int | None, str]:
    places = [place for column in columns for place in column if place is not None]
    rows = connection.execute(
        f"SELECT rowid, concat_ws(chr(10), nullif(response, ''), {CALLS}) FROM items "
        "WHERE rowid IN (SELECT unnest($places::BIGINT[]))",
        {"places": places},
    ).fetchall()
    return dict(rows)


def sql(request: Request) -> str:
    """All filters but the first ask for rows that all jobs have with a final outcome. Raises InvalidRequestError."""
    if request.filter not in Request.Filter.values():
        raise InvalidRequestError(refusals.not_valid(request.filter, "filter", SIDE_BY_SIDE_FILTERS), "filter")
    if request.filter in _OF_ONE and request.only_job_id not in request.job_ids:
        raise InvalidRequestError("Set only_job_id to the job that alone is right, or wrong.", "only_job_id")
    jobs = len(request.job_ids)
    match request.filter:
        case Request.FILTER_AGREE:
            return "agree"
        case Request.FILTER_DISAGREE:
            return "(all_final AND NOT agree)"
        case Request.FILTER_ALL_RIGHT:
            return all_right(jobs)
        case Request.FILTER_ALL_WRONG:
            return all_wrong(jobs)
        case Request.FILTER_ONLY_RIGHT:
            return only_right(list(request.job_ids).index(request.only_job_id))
        case Request.FILTER_ONLY_WRONG:
            return only_wrong(list(request.job_ids).index(request.only_job_id), jobs)
    return "true"


def all_right(jobs: int) -> str:
    return f"right_in = {_all(jobs)}"


def all_wrong(jobs: int) -> str:
    return f"wrong_in = {_all(jobs)}"


def only_right(number: int) -> str:
    """In the job of this number, from 0."""
    return f"(all_final AND right_in = {1 << number})"


def only_wrong(number: int, jobs: int) -> str:
    return f"(wrong_in = {1 << number} AND right_in = {_all(jobs) - (1 << number)})"


def _all(jobs: int) -> int:
    return (1 << jobs) - 1
