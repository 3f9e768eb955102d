"""What people and judges outside Touchstone score answers: `/results/{job_id}/unrated` and `/ratings`."""

from __future__ import annotations

import json
from collections.abc import Iterator

from services.gateway.api.answers import members
from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.fields.checks import Check, Field, Problem, integer, list_of, record, text
from services.gateway.fields.judges import RUBRIC, rubric_of
from services.gateway.fields.query import Parameter
from services.gateway.fields.schema import COUNT, STRING, TIME, Schema, about, array, null, shape
from services.gateway.http.responses import JSONResponse
from services.gateway.reads import jobs
from services.words import rubrics
from services.words.fields import INT32_MAX
from touchstone.v1 import results_service_pb2
from touchstone.v1.rubric_pb2 import Rubric

MOST_RATINGS, MOST_UNRATED = 1_000, 500
_NUMBER = integer(0, INT32_MAX)
_SCORES: Schema = {"type": "object", "description": "The score of each criterion, by its name."}


def _is_object(value: object, path: str) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield path, f"{path} must be an object with a score for each criterion."


_RATED = {
    "task": Field(text(200), required=True, about="The answer's task."),
    "item": Field(_NUMBER, required=True, about="Its item."),
    "repeat": Field(_NUMBER, about="Its repeat. 0 if absent."),
    "scores": Field(
        Check(_SCORES, _is_object), about="The score of each criterion. Without it, the rating is taken back."
    ),
    "note": Field(text(2_000, least=0), about="A note."),
}
_RUBRIC = Field(RUBRIC, about="The rubric. If absent, that of the job's experiment.")
_JUDGE = Field(
    text(100, pattern=rubrics.OUTSIDE_JUDGE, means=rubrics.OUTSIDE_JUDGE_RULE),
    about="The name of a judge outside Touchstone that gives the scores. If absent, you do, as a person.",
)
RATE_BODY = record(
    {
        "rubric": _RUBRIC,
        "judge": _JUDGE,
        "ratings": Field(
            list_of(record(_RATED, name="RatingRequest"), MOST_RATINGS), required=True, about="The ratings."
        ),
    },
    name="RateRequest",
)
UNRATED_BODY = record(
    {
        "rubric": _RUBRIC,
        "judge": _JUDGE,
        "limit": Field(integer(1, MOST_UNRATED), about="The most answers. 50 if absent."),
        "page_token": Field(text(2_000), about="The `next_page_token` of the page before."),
    },
    name="UnratedRequest",
)
_ANSWER: Schema = shape(
    {
        "task": members.TASK,
        "item": members.ITEM,
        "repeat": members.REPEAT,
        "custom_id": about(STRING, "The row's own id. Empty for jobs of experiments: it would tell the prompt."),
        "prompt": about(STRING, "What was asked."),
        "reference": about(STRING, "The right answer, where there is one."),
        "answer": about(STRING, "The answer."),
    },
    name="AnswerToRate",
)
_PAGE: dict[str, Schema] = {"next_page_token": about(null(STRING), "Of the next page. null on the last one.")}
UNRATED: Schema = shape(
    {
        "answers": about(array(_ANSWER), "The answers, in an order drawn at random, the same for everybody."),
        "rated": about(COUNT, "The answers that you have rated under this rubric."),
        "unrated": about(COUNT, "The answers that you have not."),
        "rubric": about(RUBRIC.schema, "The rubric by which they are to be rated."),
        **_PAGE,
    },
    name="Unrated",
)
STORED: Schema = shape(
    {
        "stored": about(COUNT, "The ratings that were stored."),
        "unchanged": about(COUNT, "The ratings that applied before."),
    },
    name="RatingsStored",
)
_RATING: Schema = shape(
    {
        "task": members.TASK,
        "item": members.ITEM,
        "repeat": members.REPEAT,
        "scores": _SCORES,
        "note": about(STRING, "The note."),
        "rater": about(STRING, "Who rates."),
        "judge": about(null(STRING), "The judge outside Touchstone that gives the scores. null for a person."),
        "rated_at": about(null(TIME), "When."),
        "rubric_digest": about(STRING, "The SHA-256 of the rubric."),
    },
    name="Rating",
)
RATINGS: Schema = shape(
    {
        "ratings": about(array(_RATING), "The ratings that apply."),
        "rubrics": about(array(RUBRIC.schema), "The rubrics of these ratings."),
        **_PAGE,
    },
    name="Ratings",
)


async def unrated(call: Call) -> JSONResponse:
    """The answers of a job that you, or a judge outside, have not rated under a rubric, in order. 404 for an unknown
    id, 409 for a job that judges."""
    request = results_service_pb2.ListUnratedRequest(
        job_id=call.job_id,
        rubric=_rubric(call),
        judge=call.body.get("judge") or "",
        page_size=call.body.get("limit") or 0,
        page_token=call.body.get("page_token") or "",
    )
    found = await call.ask(call.ctx.backend.results.ListUnrated, request)
    answers = [{name: getattr(one, name) for name in _ANSWER["properties"]} for one in found.answers]
    more = {"rated": found.rated, "unrated": found.unrated, "rubric": json.loads(rubrics.written(found.rubric))}
    return JSONResponse({"answers": answers, **more, "next_page_token": found.next_page_token or None})


async def rate(call: Call) -> JSONResponse:
    """Stores your ratings of a job's answers: all, or none if one is wrong. The same ratings again change nothing.
    409 for a job that judges."""
    request = results_service_pb2.RateAnswersRequest(
        job_id=call.job_id, rubric=_rubric(call), judge=call.body.get("judge") or ""
    )
    for given in call.body["ratings"]:
        scores = given.get("scores")
        request.ratings.add(
            task=given["task"],
            item=given["item"],
            repeat=given.get("repeat") or 0,
            scores="" if scores is None else json.dumps(scores),
            note=given.get("note") or "",
        )
    stored = await call.ask(call.ctx.backend.results.RateAnswers, request)
    return JSONResponse({"stored": stored.stored, "unchanged": stored.unchanged})


def _rubric(call: Call) -> Rubric | None:
    given = call.body.get("rubric")
    return None if given is None else rubric_of(given)


async def ratings(call: Call) -> JSONResponse:
    """The ratings of a job's answers, by answer and rater. 404 for an unknown id."""
    query = call.query
    request = results_service_pb2.ListRatingsRequest(
        job_id=call.job_id,
        rubric_digest=query["rubric_digest"] or "",
        rater=query["rater"] or "",
        page_size=query["limit"] or 0,
        page_token=query["page_token"] or "",
    )
    found = await call.ask(call.ctx.backend.results.ListRatings, request)
    shown = [
        {
            **{name: getattr(one, name) for name in ("task", "item", "repeat", "note", "rater", "rubric_digest")},
            "judge": one.judge or None,
            "scores": json.loads(one.scores),
            "rated_at": jobs.iso(one.rated_at),
        }
        for one in found.ratings
    ]
    known = [json.loads(rubrics.written(one)) for one in found.rubrics]
    return JSONResponse({"ratings": shown, "rubrics": known, "next_page_token": found.next_page_token or None})


UNRATED_ANSWERS = Endpoint(
    "POST",
    "/results/{job_id}/unrated",
    unrated,
    "listUnrated",
    "A job's answers that you have not rated under a rubric.",
    UNRATED,
    body=UNRATED_BODY,
)
RATE = Endpoint(
    "POST",
    "/results/{job_id}/ratings",
    rate,
    "rateAnswers",
    "Rate a job's answers under a rubric.",
    STORED,
    body=RATE_BODY,
)
LIST_RATINGS = Endpoint(
    "GET",
    "/results/{job_id}/ratings",
    ratings,
    "listRatings",
    "The ratings of a job's answers.",
    RATINGS,
    query=(
        Parameter("rubric_digest", text(64), "Only ratings under this rubric."),
        Parameter("rater", text(200), "Only this user's ratings."),
        Parameter("limit", integer(1, MOST_RATINGS), "The most ratings. 500 if absent."),
        Parameter("page_token", text(2_000), "The `next_page_token` of the page before."),
    ),
)
