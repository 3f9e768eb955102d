"""What people score answers under rubrics. Everything that was said is kept; of one rater, the newest applies."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from services import json_values
from services.errors import BadLinesError, ConflictError, InvalidRequestError
from services.results import paging
from services.results.runs import job_reads
from services.results.storage import text_retention
from services.results.storage.database import Connection, query
from services.results.visibility import EVERYTHING, Visibility
from services.words import chat, refusals, rubrics
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.item_result_pb2 import OUTCOME_INFRASTRUCTURE_ERROR
from touchstone.v1.rubric_pb2 import Rubric

MOST_AT_ONCE, NOTE_LENGTH = 1_000, 2_000
_TEXT = 64 * 1024
_NAMED = 100
"""Wrong ratings that a refusal names."""
_Place = tuple[str, int, int]


def rate(
    connection: Connection, request: pb.RateAnswersRequest, rater: str, now: datetime, visible: Visibility = EVERYTHING
) -> pb.RateAnswersResponse:
    """Stores the ratings that do not apply yet; all or none.

    Raises InvalidRequestError for the rubric, BadLinesError with each wrong rating's place from 1, and NotFoundError
    for the job.
    """
    rubric = _checked(request.rubric)
    if not 1 <= len(request.ratings) <= MOST_AT_ONCE:
        raise InvalidRequestError(
            f"ratings must hold between 1 and {MOST_AT_ONCE:,} ratings; it holds {len(request.ratings):,}.", "ratings"
        )
    job = job_reads.get_job(connection, request.job_id, visible)
    answered = _answered(connection, job.job_id, [_place(rating) for rating in request.ratings])
    said: dict[_Place, tuple[str, str]] = {}
    wrong: list[tuple[int, str]] = []
    for number, rating in enumerate(request.ratings, start=1):
        place = _place(rating)
        try:
            if place in said:
                raise ValueError("rates an answer that an earlier one rates")
            if place not in answered:
                raise ValueError(f"rates item {place[1]} of task {place[0]!r}, to which there is no answer")
            said[place] = (_scores(rubric, rating.scores), _note(rating.note))
        except ValueError as error:
            wrong.append((number, f"The rating {error}."))
    if wrong:
        raise BadLinesError(
            f"{refusals.counted(len(wrong), 'rating')} of {len(request.ratings):,} cannot be stored, so none is.",
            wrong[:_NAMED],
            len(wrong),
        )
    return _store(connection, job.job_id, rubric, rater, now, said)


def _store(
    connection: Connection, job_id: str, rubric: Rubric, rater: str, now: datetime, said: dict[_Place, tuple[str, str]]
) -> pb.RateAnswersResponse:
    digest = rubrics.digest(rubric)
    where = {"job_id": job_id, "rubric": digest, "rater": rater}
    holds = {
        (task, item, repeat): (scores, note)
        for task, item, repeat, scores, note in connection.execute(
            "SELECT task, item, repeat, scores, note FROM present_ratings "
            "WHERE job_id = $job_id AND rubric = $rubric AND rater = $rater",
            where,
        ).fetchall()
    }
    changed = {place: one for place, one in said.items() if holds.get(place, ("", "")) != one}
    if changed:
        connection.execute(
            "INSERT INTO rubrics SELECT coalesce(max(number), 0) + 1, $rubric, $written, $now FROM rubrics "
            "HAVING NOT EXISTS (SELECT 1 FROM rubrics WHERE digest = $rubric)",
            {"rubric": digest, "written": rubrics.written(rubric), "now": now},
        )
        ((last,),) = connection.execute("SELECT coalesce(max(number), 0) FROM ratings").fetchall()
        connection.executemany(
            "INSERT INTO ratings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                [last + number, job_id, *place, digest, rater, scores, note, now]
                for number, (place, (scores, note)) in enumerate(changed.items(), start=1)
            ],
        )
    return pb.RateAnswersResponse(stored=len(changed), unchanged=len(said) - len(changed))


def list_unrated(
    connection: Connection, request: pb.ListUnratedRequest, rater: str, visible: Visibility = EVERYTHING
) -> pb.ListUnratedResponse:
    """Raises InvalidRequestError, NotFoundError, and ConflictError for a job whose texts are no longer stored."""
    rubric = _checked(request.rubric)
    job = job_reads.get_job(connection, request.job_id, visible)
    if text_retention.dropped_at(connection, job.job_id):
        raise ConflictError(f"The texts of job {job.job_id} are no longer stored. Run it again to rate its answers.")
    size = paging.page_size(request.page_size, 50, 500)
    filter_ = paging.page_filter(request)
    after = paging.decode_token(request.page_token, filter_, (str, int, int)) or ["", -1, -1]
    where: dict[str, Any] = {
        "job_id": job.job_id,
        "rubric": rubrics.digest(rubric),
        "rater": rater,
        "error": int(OUTCOME_INFRASTRUCTURE_ERROR),
    }
    ((rated, unrated),) = connection.execute(query("judging/rated_counts"), where).fetchall()
    place = dict(zip(("task", "item", "repeat"), after, strict=True))
    rows = connection.execute(query("judging/unrated"), where | place | {"most": size + 1}).fetchall()
    answers = [_answer(row) for row in rows]
    page, token = paging.fill_page(answers, size, filter_, lambda one: [one.task, one.item, one.repeat])
    return pb.ListUnratedResponse(answers=page, next_page_token=token, rated=rated, unrated=unrated)


def list_ratings(
    connection: Connection, request: pb.ListRatingsRequest, visible: Visibility = EVERYTHING
) -> pb.ListRatingsResponse:
    """Raises InvalidRequestError, NotFoundError."""
    job = job_reads.get_job(connection, request.job_id, visible)
    size = paging.page_size(request.page_size, 500, 1_000)
    filter_ = paging.page_filter(request)
    after = paging.decode_token(request.page_token, filter_, (str, int, int, str, str)) or ["", -1, -1, "", ""]
    names = ("task", "item", "repeat", "after_rubric", "after_rater")
    where = {"job_id": job.job_id, "rubric": request.rubric_digest, "rater": request.rater, "most": size + 1}
    rows = connection.execute(query("judging/ratings"), where | dict(zip(names, after, strict=True))).fetchall()
    page, token = paging.fill_page([_rating(row) for row in rows], size, filter_, _key)
    found = pb.ListRatingsResponse(ratings=page, next_page_token=token)
    digests = sorted({one.rubric_digest for one in page})
    for (text,) in connection.execute(
        "SELECT rubric FROM rubrics WHERE digest IN (SELECT unnest($digests::VARCHAR[])) ORDER BY number",
        {"digests": digests},
    ).fetchall():
        found.rubrics.append(rubrics.parse(text))
    return found


def _checked(rubric: Rubric) -> Rubric:
    """Raises InvalidRequestError."""
    try:
        return rubrics.parse(rubrics.written(rubric))
    except ValueError as error:
        raise InvalidRequestError(f"The rubric {error}.", "rubric") from error


def _scores(rubric: Rubric, text: str) -> str:
    if not text:
        return ""
    try:
        given = json_values.parsed(text)
    except ValueError as error:
        raise ValueError(f"has scores of which the text {error}") from error
    if not isinstance(given, dict):
        raise ValueError("has scores that are not a JSON object")
    names = {criterion.name for criterion in rubric.criteria}
    if unknown := sorted(given.keys() - names):
        raise ValueError(f"scores {unknown[0]!r}, which is not a criterion of {rubric.version}")
    return json_values.written(rubrics.scores(rubric, given))


def _note(text: str) -> str:
    if len(text) > NOTE_LENGTH:
        raise ValueError(f"has a note of {len(text):,} characters; at most {NOTE_LENGTH:,} are allowed")
    if "\0" in text:
        raise ValueError("has a note with a NUL character; remove it")
    return text


def _answered(connection: Connection, job_id: str, places: Sequence[_Place]) -> set[_Place]:
    """Those of the places that have an answer."""
    tasks, items, repeats = (list(part) for part in zip(*places, strict=True))
    rows = connection.execute(
        "SELECT task, item, repeat FROM items JOIN (SELECT unnest($tasks::VARCHAR[]) AS task, "
        "unnest($items::INTEGER[]) AS item, unnest($repeats::INTEGER[]) AS repeat) USING (task, item, repeat) "
        "WHERE job_id = $job_id AND outcome <> $error",
        {
            "job_id": job_id,
            "tasks": tasks,
            "items": items,
            "repeats": repeats,
            "error": int(OUTCOME_INFRASTRUCTURE_ERROR),
        },
    ).fetchall()
    return set(rows)


def _place(rating: pb.Rating) -> _Place:
    return rating.task, rating.item, rating.repeat


def _answer(row: tuple[Any, ...]) -> pb.AnswerToRate:
    task, item, repeat, custom_id, prompt, reference, response, tool_calls = row
    answer = chat.answer_text(response, chat.read_calls(tool_calls)) if tool_calls else response
    texts = dict(zip(("prompt", "reference", "answer"), map(_cut, (prompt, reference, answer)), strict=True))
    return pb.AnswerToRate(task=task, item=item, repeat=repeat, custom_id=custom_id, **texts)


def _cut(text: str) -> str:
    data = text.encode()
    return text if len(data) <= _TEXT else data[: _TEXT - 3].decode(errors="ignore") + "…"


def _rating(row: tuple[Any, ...]) -> pb.Rating:
    task, item, repeat, digest, rater, scores, note, rated_at = row
    found = pb.Rating(task=task, item=item, repeat=repeat, scores=scores, note=note, rater=rater, rubric_digest=digest)
    found.rated_at.FromDatetime(rated_at.replace(tzinfo=UTC))
    return found


def _key(rating: pb.Rating) -> paging.Key:
    return [rating.task, rating.item, rating.repeat, rating.rubric_digest, rating.rater]
