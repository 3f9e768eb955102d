"""What people, and judges outside Touchstone, score answers under rubrics. Everything that was said is kept; of one
rater, the newest applies. A judge outside is another rater than the user that sends its scores."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

import pyarrow as pa

from services import json_values
from services.errors import BadLinesError, ConflictError, InvalidRequestError
from services.results import paging
from services.results.datasets import index
from services.results.runs import job_reads
from services.results.statistics.metric_values import Ints
from services.results.statistics.prediction_powered import labelling_order
from services.results.storage import archived_items, text_retention
from services.results.storage.database import Connection, query
from services.results.visibility import EVERYTHING, Visibility
from services.words import chat, refusals, rubrics
from touchstone.v1 import job_pb2
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.item_result_pb2 import OUTCOME_INFRASTRUCTURE_ERROR
from touchstone.v1.rubric_pb2 import Rubric

MOST_AT_ONCE, NOTE_LENGTH = 1_000, 2_000
_JUDGE = re.compile(rubrics.OUTSIDE_JUDGE)
_TEXT = 64 * 1024
_NAMED = 100
"""Wrong ratings that a refusal names."""
_SCHEMA = pa.schema(
    [
        ("number", pa.int32()),
        ("job_id", pa.string()),
        ("task", pa.string()),
        ("item", pa.int32()),
        ("repeat", pa.int32()),
        ("rubric", pa.string()),
        ("rater", pa.string()),
        ("scores", pa.string()),
        ("note", pa.string()),
        ("rated_at", pa.timestamp("us")),
        ("judge", pa.string()),
    ]
)
"""Of the table of ratings. DuckDB takes a table of Arrow at once, and rows one after the other."""
Place = tuple[str, int, int]
"""Task, item and repeat of an answer."""
_SEED = 0


def rate(
    connection: Connection, request: pb.RateAnswersRequest, rater: str, now: datetime, visible: Visibility = EVERYTHING
) -> pb.RateAnswersResponse:
    """Stores the ratings that do not apply yet; all or none. Without ratings, it stores the rubric alone.

    Raises InvalidRequestError for the rubric, BadLinesError with each wrong rating's place from 1, NotFoundError for
    the job, and ConflictError for one that judges.
    """
    judge = _judge(request.judge)
    if len(request.ratings) > MOST_AT_ONCE:
        raise InvalidRequestError(
            f"ratings must hold at most {MOST_AT_ONCE:,} ratings; it holds {len(request.ratings):,}.", "ratings"
        )
    job = _rated_job(connection, request.job_id, visible)
    rubric = _rubric(connection, job, request)
    answered = _answered(connection, job.job_id, [_place(rating) for rating in request.ratings])
    said: dict[Place, tuple[str, str]] = {}
    wrong: list[tuple[int, str]] = []
    # Few scores are different ones.
    scores_of = cache(partial(_scores, rubric))
    for number, rating in enumerate(request.ratings, start=1):
        place = _place(rating)
        try:
            if place in said:
                raise ValueError("rates an answer that an earlier one rates")
            if place not in answered:
                raise ValueError(f"rates item {place[1]} of task {place[0]!r}, to which there is no answer")
            said[place] = (scores_of(rating.scores), _note(rating.note))
        except ValueError as error:
            wrong.append((number, f"The rating {error}."))
    if wrong:
        raise BadLinesError(
            f"{refusals.counted(len(wrong), 'rating')} of {len(request.ratings):,} cannot be stored, so none is.",
            wrong[:_NAMED],
            len(wrong),
        )
    return _store(connection, job.job_id, rubric, (rater, judge), now, said)


def _store(
    connection: Connection,
    job_id: str,
    rubric: Rubric,
    rater: tuple[str, str],
    now: datetime,
    said: dict[Place, tuple[str, str]],
) -> pb.RateAnswersResponse:
    """`rater` is a user, and the judge outside that the user speaks for."""
    digest, (user, judge) = rubrics.digest(rubric), rater
    where = {"job_id": job_id, "rubric": digest, "rater": user, "judge": judge}
    holds = {
        (task, item, repeat): (scores, note)
        for task, item, repeat, scores, note in connection.execute(
            "SELECT task, item, repeat, scores, note FROM present_ratings "
            "WHERE job_id = $job_id AND rubric = $rubric AND rater = $rater AND judge = $judge",
            where,
        ).fetchall()
    }
    changed = {place: one for place, one in said.items() if holds.get(place, ("", "")) != one}
    if changed or not said:
        connection.execute(
            "INSERT INTO rubrics SELECT coalesce(max(number), 0) + 1, $rubric, $written, $now FROM rubrics "
            "HAVING NOT EXISTS (SELECT 1 FROM rubrics WHERE digest = $rubric)",
            {"rubric": digest, "written": rubrics.written(rubric), "now": now},
        )
    if changed:
        ((last,),) = connection.execute("SELECT coalesce(max(number), 0) FROM ratings").fetchall()
        rows = [
            (last + number, job_id, *place, digest, user, scores, note, now, judge)
            for number, (place, (scores, note)) in enumerate(changed.items(), start=1)
        ]
        columns = [pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), _SCHEMA.types, strict=True)]
        connection.register("ratings_batch", pa.Table.from_arrays(columns, schema=_SCHEMA))
        connection.execute("INSERT INTO ratings FROM ratings_batch")
        connection.unregister("ratings_batch")
    return pb.RateAnswersResponse(stored=len(changed), unchanged=len(said) - len(changed))


def list_unrated(
    connection: Connection, request: pb.ListUnratedRequest, rater: str, visible: Visibility = EVERYTHING
) -> pb.ListUnratedResponse:
    """Raises InvalidRequestError, NotFoundError, and ConflictError for a job that judges or whose texts are no longer
    stored."""
    judge = _judge(request.judge)
    job = _rated_job(connection, request.job_id, visible)
    rubric = _rubric(connection, job, request)
    archived_items.require(connection, job.job_id)
    if text_retention.dropped_at(connection, job.job_id):
        raise ConflictError(f"The texts of job {job.job_id} are no longer stored. Run it again to rate its answers.")
    size = paging.page_size(request.page_size, 50, 500)
    filter_ = paging.page_filter(request)
    (after,) = paging.decode_token(request.page_token, filter_, (int,)) or [-1]
    places = in_order(connection, job.job_id)
    rated = _rated_by(connection, job.job_id, rubrics.digest(rubric), rater, judge)
    left = [number for number, place in enumerate(places) if place not in rated]
    wanted = [number for number in left if number > int(after)][: size + 1]
    texts = _texts(connection, job.job_id, [places[number] for number in wanted])
    answers = [(number, texts[places[number]]) for number in wanted]
    page, token = paging.fill_weighed(answers, size, filter_, lambda row: [row[0]], lambda row: row[1].ByteSize())
    found = pb.ListUnratedResponse(next_page_token=token, rubric=rubric)
    found.rated, found.unrated = len(places) - len(left), len(left)
    found.answers.extend(answer for _, answer in page)
    if job.spec.experiment_name:
        for one in found.answers:
            # It would tell raters the prompt.
            one.custom_id = ""
    return found


def in_order(connection: Connection, job_id: str) -> list[Place]:
    """The places of a job's answers in the order in which people rate them: a random one, the same for everybody."""
    archived_items.require(connection, job_id)
    places: list[Place] = connection.execute(
        "SELECT task, item, repeat FROM items WHERE job_id = $job_id AND outcome <> $error ORDER BY ALL",
        {"job_id": job_id, "error": int(OUTCOME_INFRASTRUCTURE_ERROR)},
    ).fetchall()
    return [places[number] for number in drawn_order(job_id, places).tolist()]


def drawn_order(job_id: str, places: Sequence[Place]) -> Ints:
    """The order (places,) of these places of a job, as their numbers. That of any two of them depends on no others."""
    return labelling_order([f"{job_id} {task}/{item}/{repeat}" for task, item, repeat in places], _SEED)


def _rated_by(connection: Connection, job_id: str, digest: str, rater: str, judge: str) -> set[Place]:
    rows = connection.execute(
        "SELECT task, item, repeat FROM present_ratings "
        "WHERE job_id = $job_id AND rubric = $rubric AND rater = $rater AND judge = $judge",
        {"job_id": job_id, "rubric": digest, "rater": rater, "judge": judge},
    ).fetchall()
    return set(rows)


def _texts(connection: Connection, job_id: str, places: Sequence[Place]) -> dict[Place, pb.AnswerToRate]:
    columns = "task, item, repeat, custom_id, prompt, reference, response, tool_calls"
    return {row[:3]: _answer(row) for row in _read(connection, job_id, places, columns)}


def _answered(connection: Connection, job_id: str, places: Sequence[Place]) -> set[Place]:
    """Those of the places that have an answer."""
    return set(_read(connection, job_id, places, "task, item, repeat"))


def _read(connection: Connection, job_id: str, places: Sequence[Place], columns: str) -> list[Any]:
    archived_items.require(connection, job_id)
    wanted = {name: [place[number] for place in places] for number, name in enumerate(("tasks", "items", "repeats"))}
    return connection.execute(query("judging/answers").format(columns=columns), {"job_id": job_id, **wanted}).fetchall()


def list_ratings(
    connection: Connection, request: pb.ListRatingsRequest, visible: Visibility = EVERYTHING
) -> pb.ListRatingsResponse:
    """Raises InvalidRequestError, NotFoundError."""
    job = job_reads.get_job(connection, request.job_id, visible)
    size = paging.page_size(request.page_size, 500, 1_000)
    filter_ = paging.page_filter(request)
    after = paging.decode_token(request.page_token, filter_, (str, int, int, str, str, str)) or ["", -1, -1, *[""] * 3]
    names = ("task", "item", "repeat", "after_rubric", "after_rater", "after_judge")
    where = {"job_id": job.job_id, "rubric": request.rubric_digest, "rater": request.rater, "most": size + 1}
    rows = connection.execute(query("judging/ratings"), where | dict(zip(names, after, strict=True))).fetchall()
    page, token = paging.fill_page([_rating(row) for row in rows], size, filter_, _key)
    found = pb.ListRatingsResponse(ratings=page, next_page_token=token)
    digests = sorted({*(one.rubric_digest for one in page), request.rubric_digest})
    for (text,) in connection.execute(
        "SELECT rubric FROM rubrics WHERE digest IN (SELECT unnest($digests::VARCHAR[])) ORDER BY number",
        {"digests": digests},
    ).fetchall():
        found.rubrics.append(rubrics.parse(text))
    return found


def _judge(name: str) -> str:
    """Raises InvalidRequestError."""
    if name and not _JUDGE.fullmatch(name):
        raise InvalidRequestError(f"judge must be {rubrics.OUTSIDE_JUDGE_RULE}.", "judge")
    return name


def _rated_job(connection: Connection, job_id: str, visible: Visibility) -> job_pb2.Job:
    """Raises NotFoundError, and ConflictError for a job that judges."""
    job = job_reads.get_job(connection, job_id, visible)
    if job.spec.HasField("judging"):
        raise ConflictError(f"Job {job_id} judges answers itself. Rate the answers of job {job.spec.judging.job_id}.")
    return job


def _rubric(connection: Connection, job: job_pb2.Job, request: pb.RateAnswersRequest | pb.ListUnratedRequest) -> Rubric:
    """The one that was given, or that of the job's experiment. Raises InvalidRequestError."""
    if not request.HasField("rubric"):
        made = index.of_experiment(connection, job.spec.experiment_name) if job.spec.experiment_name else None
        if made is None:
            raise InvalidRequestError(f"Job {job.job_id} belongs to no experiment. Set rubric.", "rubric")
        return rubrics.of_value(json.loads(made.experiment.definition)["rubric"])
    try:
        return rubrics.parse(rubrics.written(request.rubric))
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


def _place(rating: pb.Rating) -> Place:
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
    task, item, repeat, digest, rater, judge, scores, note, rated_at = row
    found = pb.Rating(task=task, item=item, repeat=repeat, scores=scores, note=note, rubric_digest=digest)
    found.rater, found.judge = rater, judge
    found.rated_at.FromDatetime(rated_at.replace(tzinfo=UTC))
    return found


def _key(rating: pb.Rating) -> paging.Key:
    return [rating.task, rating.item, rating.repeat, rating.rubric_digest, rating.rater, rating.judge]
