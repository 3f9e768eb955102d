"""A page of matched rows, with what is counted over all of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from services.errors import InvalidRequestError
from services.results import paging
from services.results.items import reads
from services.results.items.annotate import preference_of
from services.results.items.filters import metadata_value
from services.results.paired.binary import mcnemar
from services.results.side_by_side.matching import Matched, Total
from services.results.side_by_side.word_diff import word_diff
from services.results.statistics.intervals import score_interval
from services.results.storage.database import Connection, query
from services.words import refusals
from services.words.enums import SIDE_BY_SIDE_FILTERS
from touchstone.v1 import job_pb2
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.results_service_pb2 import ListSideBySideRequest as Request
from touchstone.v1.results_service_pb2 import Preference

_KEY = ("task", "item", "repeat", "name")
_PLACED = (*_KEY, "number", "opened", "before_page", "first_job", "agree")
_SAID = ("choice", "preferred", "blind", "author", "judged_at")
_COUNTS = ("all", "final", "agree", "all_right", "all_wrong", "judged", "not_judged", "chosen")
_FIGURES = (
    *("only_right", "only_wrong", "latency", "input", "output", "input_untold", "output_untold"),
    *("cost", "unpriced"),
)
"""Of each job, as `_figures` selects them."""

_Row = tuple[paging.Key, pb.SideBySideRow]
_Placed = Mapping[str, Any]
"""A row as page.sql gives it: its columns by name, `places` a list."""

_MOST_WHOLE = 1024 * 1024
"""Bytes of whole items in an answer, without their diffs."""
_OF_ONE = (Request.FILTER_ONLY_RIGHT, Request.FILTER_ONLY_WRONG)
JUDGED, NOT_JUDGED = "(choice IS NOT NULL)", "(all_final AND choice IS NULL)"
_AFTER = """($after_item::BIGINT IS NULL OR (task, item, repeat, name)
    > ($after_task::VARCHAR, $after_item::BIGINT, $after_repeat::BIGINT, $after_name::VARCHAR))"""
_AFTER_IN_ORDER = """($after_item::BIGINT IS NULL OR numbered.number > (
    SELECT min(number) FROM numbered WHERE (task, item, repeat, name)
    = ($after_task::VARCHAR, $after_item::BIGINT, $after_repeat::BIGINT, $after_name::VARCHAR)))"""
_AROUND = """(numbered.number BETWEEN before_page AND before_page + $size + 1
    OR numbered.number = before_page - $size + 1)"""


class MovedError(Exception):
    """Rows of `items` no longer have the numbers that they had."""


class Page:
    """What a request asks for. Raises InvalidRequestError for an invalid filter or page."""

    def __init__(self, request: pb.ListSideBySideRequest, jobs: Sequence[job_pb2.Job]) -> None:
        self._jobs = jobs
        self._request = request
        self._opens = request.HasField("open")
        if self._opens and request.page_token:
            raise InvalidRequestError("Set open or page_token, not both.", "open")
        if self._opens and request.without_rows:
            raise InvalidRequestError("Set open or without_rows, not both.", "without_rows")
        if self._opens and request.open.job_id not in request.job_ids:
            raise InvalidRequestError("open.job_id must be one of job_ids.", "open.job_id")
        self._size = paging.page_size(request.page_size, default=50, most=100)
        self._filter = paging.page_filter(request)
        after = paging.decode_token(request.page_token, self._filter, (str, int, int, str)) or 4 * (None,)
        self._after = {f"after_{name}": value for name, value in zip(_KEY, after, strict=True)}

    def read(self, connection: Connection, matched: Matched) -> pb.ListSideBySideResponse:
        """Raises MovedError."""
        connection.register("matched", matched.rows)
        found = self._found(connection, matched)
        tasks = _tasks(connection, len(self._jobs)) if self._request.with_tasks else []
        connection.unregister("matched")
        width = len(_PLACED) + len(_SAID) + len(self._jobs)
        counts = dict(zip(_COUNTS, found[0][width:], strict=False))
        figures = found[0][width + len(_COUNTS) :]
        names = (*_PLACED, *_SAID)
        placed = [
            dict(zip(names, row, strict=False)) | {"places": row[len(names) : width]}
            for row in found
            if row[0] is not None
        ]
        answer = pb.ListSideBySideResponse(
            total_size=counts["chosen"],
            count_all=counts["all"],
            count_agree=counts["agree"],
            count_all_right=counts["all_right"],
            count_all_wrong=counts["all_wrong"],
            count_judged=counts["judged"],
            count_not_judged=counts["not_judged"],
            runs=[
                _run(job, counts["final"], total, figures[len(_FIGURES) * number : len(_FIGURES) * (number + 1)])
                for number, (job, total) in enumerate(zip(self._jobs, matched.totals, strict=True))
            ],
            tasks=tasks,
            preferences=_preferences(connection, self._request.job_ids),
        )
        if self._opens:
            self._fill_around(answer, connection, placed, matched)
            return answer
        rows, answer.next_page_token = paging.fill_weighed(
            self._rows(connection, placed, matched),
            self._size,
            self._filter,
            lambda row: row[0],
            lambda row: row[1].ByteSize(),
        )
        answer.rows.extend(row for _, row in rows)
        return answer

    def _found(self, connection: Connection, matched: Matched) -> list[tuple[Any, ...]]:
        numbers, request = range(len(self._jobs)), self._request
        first = " ".join(f"WHEN place_{number} IS NOT NULL THEN {number}" for number in numbers)
        same = "custom_id = name" if matched.by_custom_id else " AND ".join(f"mine.{n} = matched.{n}" for n in _KEY[:3])
        value, values, order = "NULL", "", ""
        ordering: dict[str, str] = {}
        if request.order_field:
            value_of, ordering = metadata_value(request.order_field)
            place = f"coalesce({', '.join(f'place_{number}' for number in numbers)})"
            value, way = "held.value", "DESC" if request.descending else "ASC"
            values = (
                f"LEFT JOIN (SELECT rowid AS place, {value_of} AS value FROM items WHERE rowid IN "
                f"(SELECT {place} FROM matched)) AS held ON held.place = {place}"
            )
            order = f"TRY_CAST(value AS DOUBLE) {way} NULLS LAST, value {way} NULLS LAST,"
        page = _AROUND if self._opens else _AFTER_IN_ORDER if order else _AFTER
        rest = " SELECT figures.* FROM figures" if request.without_rows else query("side_by_side/page")
        text = (query("side_by_side/figures") + rest).format(
            first=f"CASE {first} END",
            value=value,
            values=values,
            same_row=same,
            all_right=all_right(len(self._jobs)),
            all_wrong=all_wrong(len(self._jobs)),
            judged=JUDGED,
            not_judged=NOT_JUDGED,
            chosen=sql(request),
            figures=", ".join(_figures(number, len(self._jobs)) for number in numbers),
            order=order,
            places=", ".join(f"place_{number}" for number in numbers),
            page=page,
        )
        opened = request.open
        asked = {"jobs": _jobs_key(request.job_ids), "judge": request.judge, "size": self._size}
        asked |= {"open_task": opened.task, "open_item": opened.item, "open_repeat": opened.repeat}
        asked |= {"open_job": list(request.job_ids).index(opened.job_id) if self._opens else 0}
        asked |= {"most": self._size + (3 if self._opens else 1)}
        after = {} if self._opens else self._after
        if request.without_rows:
            of_all = {name: asked[name] for name in ("jobs", "judge")} | ordering
            (figures,) = connection.execute(text, of_all).fetchall()
            return [(*[None] * (len(_PLACED) + len(_SAID) + len(self._jobs)), *figures)]
        return connection.execute(text, asked | ordering | after).fetchall()

    def _fill_around(
        self, answer: pb.ListSideBySideResponse, connection: Connection, placed: Sequence[_Placed], matched: Matched
    ) -> None:
        """The opened row, its page without responses, and the rows around both."""
        if not placed:
            return
        opened, before = placed[0]["opened"], placed[0]["before_page"]
        by_number = {row["number"]: row for row in placed}
        around = ("previous", opened - 1), ("next", opened + 1)
        pages = ("previous_page", before - self._size + 1), ("next_page", before + self._size + 1)
        for name, number in (*around, *pages):
            if number in by_number:
                getattr(answer, name).CopyFrom(self._place(by_number[number]))
        on_page = [row for row in placed if before < row["number"] <= before + self._size]
        answer.opened_number, answer.first_number = opened, before + 1
        answer.rows.extend(row for _, row in self._rows(connection, on_page, matched, answers=False))
        answer.opened.CopyFrom(self._opened(connection, by_number[opened], matched))

    def _opened(self, connection: Connection, row: _Placed, matched: Matched) -> pb.SideBySideRow:
        read = [
            None if place is None else reads.read_whole(connection, place, score)
            for place, score in zip(row["places"], matched.scores, strict=True)
        ]
        items = [one and one[0] for one in read]
        self._check(items, row["places"], row["name"], matched)
        made = _message(row, items, [one and one[1] for one in read] if self._request.with_diffs else ())
        made.whole = self._request.whole_opened and sum(one.ByteSize() for one in made.items) <= _MOST_WHOLE
        if not made.whole:
            for one in made.items:
                reads.cut(one)
        return made

    def _place(self, row: _Placed) -> pb.RowPlace:
        job_id = self._jobs[row["first_job"]].job_id
        return pb.RowPlace(job_id=job_id, task=row["task"], item=row["item"], repeat=row["repeat"])

    def _rows(
        self,
        connection: Connection,
        found: Sequence[_Placed],
        matched: Matched,
        *,
        answers: bool = True,
    ) -> Iterator[_Row]:
        """Each row with its key; without `answers` no responses and diffs. Diffs are made one by one: the page may be
        full before all are needed."""
        columns = list(zip(*(row["places"] for row in found), strict=True)) or [() for _ in self._jobs]
        held = [[place for place in column if place is not None] for column in columns]
        stored = [
            reads.read_excerpts(connection, places, score, answers=answers)
            for places, score in zip(held, matched.scores, strict=True)
        ]
        with_diffs = self._request.with_diffs and answers
        said: dict[int, str] = {}
        for places in held if with_diffs else ():
            said |= reads.read_answers(connection, places)
        for row in found:
            places = row["places"]
            items = [None if place is None else one.get(place) for one, place in zip(stored, places, strict=True)]
            self._check(items, places, row["name"], matched)
            yield [row[name] for name in _KEY], _message(row, items, [*map(said.get, places)] if with_diffs else ())

    def _check(
        self, items: Sequence[pb.StoredItem | None], places: Sequence[int | None], name: str, matched: Matched
    ) -> None:
        for job, one, place in zip(self._jobs, items, places, strict=True):
            if place is None:
                continue
            if one is None or one.job_id != job.job_id or matched.name_of(one) != name:
                raise MovedError


def _jobs_key(job_ids: Sequence[str]) -> str:
    """As the table of preferences has them."""
    return ",".join(sorted(job_ids))


def _preferences(connection: Connection, job_ids: Sequence[str]) -> pb.PreferenceCounts:
    rows = connection.execute(
        "SELECT (task, item, repeat), choice, preferred, author FROM present_preferences WHERE jobs = $jobs",
        {"jobs": _jobs_key(job_ids)},
    ).fetchall()
    by_row: defaultdict[Any, Counter[tuple[int, str]]] = defaultdict(Counter)
    for place, choice, preferred, _ in rows:
        by_row[place][choice, preferred] += 1
    most: Counter[tuple[int, str]] = Counter()
    split = 0
    for said in by_row.values():
        first, *others = said.most_common(2)
        if others and others[0][1] == first[1]:
            split += 1
        else:
            most[first[0]] += 1
    preferred = [most[Preference.CHOICE_BETTER, job_id] for job_id in job_ids]
    counts = pb.PreferenceCounts(
        rows=len(by_row),
        judges=len({author for *_, author in rows}),
        ties=most[Preference.CHOICE_TIE, ""],
        all_bad=most[Preference.CHOICE_ALL_BAD, ""],
        split=split,
    )
    for number in preferred:
        one = counts.jobs.add(rows=number)
        if total := sum(preferred):
            one.share = number / total
            one.ci95_low, one.ci95_high = score_interval(one.share, total)
    if len(preferred) == 2 and sum(preferred):
        counts.p = float(mcnemar(*preferred))
    return counts


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


def _message(row: _Placed, items: Sequence[pb.StoredItem | None], answers: Sequence[str | None]) -> pb.SideBySideRow:
    """With diffs of the answers, where there are any."""
    made = pb.SideBySideRow(
        custom_id=next((one.result.custom_id for one in items if one is not None), ""),
        task=row["task"],
        item=row["item"],
        repeat=row["repeat"],
        items=[one or pb.StoredItem() for one in items],
        agree=row["agree"],
        diffs=_diffs(*answers) if answers else [],
    )
    if row["choice"] is not None:
        made.preference.CopyFrom(preference_of(*(row[name] for name in _SAID)))
    return made


def _diffs(first: str | None, *others: str | None) -> list[pb.WordDiff]:
    return [
        pb.WordDiff(),
        *(pb.WordDiff() if first is None or other is None else word_diff(first, other) for other in others),
    ]


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
        case Request.FILTER_JUDGED:
            return JUDGED
        case Request.FILTER_NOT_JUDGED:
            return NOT_JUDGED
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
