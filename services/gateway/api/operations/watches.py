"""`/watches`: whether an endpoint still answers as it did in a reference run."""

from __future__ import annotations

import uuid
from typing import Any

from google.protobuf.message import Message

from services.errors import InvalidRequestError
from services.gateway.api.answers import members
from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.api.operations.schedules import SCHEDULE, schedule_values
from services.gateway.fields.checks import JOB_ID, Field, integer, number, record, text
from services.gateway.fields.schema import (
    BOOLEAN,
    COUNT,
    NUMBER,
    SHARE,
    STRING,
    TIME,
    UUID,
    about,
    array,
    enum,
    null,
    shape,
)
from services.gateway.http.responses import JSONResponse
from services.gateway.reads import jobs
from services.words.enums import WATCH_SIGNALS
from services.words.fields import INT64_MAX
from services.words.watches import DAILY, DEFAULT_ERROR, DEFAULT_ITEMS, MOST_ERROR, MOST_ITEMS, said
from touchstone.v1 import results_service_pb2, scheduler_service_pb2, watch_pb2

_BODY = record(
    {
        "reference": Field(JOB_ID, required=True, about="The completed job whose answers are the reference."),
        "again": Field(
            JOB_ID,
            about="A second run of the same model and items, which shows how much answers differ by chance. If absent, "
            "the first asking of all canaries does, and until then the alarm rests on scores alone.",
        ),
        "provider": Field(text(200), about="The endpoint to ask. The reference's if absent."),
        "model": Field(text(500), about="The model to ask for. The reference's if absent."),
        "cron": Field(
            text(200), about="A cron expression, as of a schedule. Every day at six if absent.", default=DAILY
        ),
        "time_zone": Field(text(100), about="An IANA name, such as `Europe/Zurich`. UTC if absent."),
        "label": Field(text(80), about="A name for people."),
        "items": Field(integer(1, MOST_ITEMS), about="Canaries of each run.", default=DEFAULT_ITEMS),
        "error": Field(
            number(0, MOST_ERROR, above=True),
            about="The chance that a model that has not changed ever raises the alarm.",
            default=DEFAULT_ERROR,
        ),
        "seed": Field(
            integer(-INT64_MAX - 1, INT64_MAX), about="Of the order among items that tell models apart equally well."
        ),
        "request_id": Field(text(64), about="A repeated request with the same id returns the same watch."),
    },
    name="WatchRequest",
)


async def create(call: Call) -> JSONResponse:
    """400 for an invalid cron expression, 404 without such a job, 409 for one that has not completed."""
    body = call.body
    request = scheduler_service_pb2.StartWatchRequest(
        request_id=body.get("request_id") or uuid.uuid4().hex,
        reference_job_id=jobs.checked_id(body["reference"]),
        again_job_id=jobs.checked_id(body["again"]) if body.get("again") else "",
        endpoint=body.get("provider", ""),
        model=body.get("model", ""),
        cron=body.get("cron", DAILY),
        time_zone=body.get("time_zone", ""),
        label=body.get("label", ""),
        items=body.get("items", 0),
        error=body.get("error", 0.0),
        seed=body.get("seed", 0),
    )
    try:
        made = await call.ask(call.ctx.backend.scheduler.StartWatch, request)
    except InvalidRequestError as error:
        # The scheduler names fields of its message, which users of the API never see.
        raise InvalidRequestError(error.message) from error
    return JSONResponse(schedule_values(made.schedule))


async def show(call: Call) -> JSONResponse:
    """404 for an unknown id, and before the first run."""
    request = results_service_pb2.GetWatchRequest(schedule_id=call.path["schedule_id"])
    return JSONResponse(_watch((await call.ask(call.ctx.backend.results.GetWatch, request)).watch))


def _watch(watch: watch_pb2.Watch) -> dict[str, Any]:
    return {
        "schedule_id": watch.schedule_id,
        "said": said(watch),
        "raised_by": WATCH_SIGNALS.of(watch.raised_by) or None,
        "raised_at": jobs.iso(watch.raised_at),
        "raised_job_id": watch.raised_job_id or None,
        "raised_after": watch.raised_after or None,
        "since": jobs.iso(watch.since_at),
        "since_job_id": watch.since_job_id or None,
        "reference_job_id": watch.reference_job_id,
        "again_job_id": watch.again_job_id or None,
        "error": watch.error,
        "asked": watch.asked,
        "left_out": watch.left_out,
        "threshold": watch.threshold,
        **_known(watch, *_SHARES),
        "runs": [
            {
                "job_id": run.job_id,
                "created_at": jobs.iso(run.created_at),
                "asked": run.asked,
                "changed": run.changed,
                "left_out": run.left_out,
                "score": run.score,
                "answers": run.answers,
                "text": run.text,
            }
            for run in watch.runs
        ],
        "changes": [
            {
                "job_id": one.job_id,
                "task": one.task,
                "item": one.item,
                "answer_before": one.answer_before,
                "answer_now": one.answer_now,
                **_known(one, "score_before", "score_now"),
            }
            for one in watch.changes
        ],
        "served": [
            {
                "model": one.model,
                "first_at": jobs.iso(one.first_at),
                "last_at": jobs.iso(one.last_at),
                "reference": one.reference,
            }
            for one in watch.served
        ],
    }


def _known(message: Message, *names: str) -> dict[str, float | None]:
    """The fields, null where absent."""
    return {name: getattr(message, name) if message.HasField(name) else None for name in names}


_SHARES = {
    "reference_mean": about(null(NUMBER), "The mean score of the reference's answers to the canaries that count."),
    "mean": about(null(NUMBER), "The mean score of their present answers."),
    "answers_differ": about(null(SHARE), "The share of canaries whose answers differ from the reference."),
    "answers_differ_usually": about(null(SHARE), "That share if the same model is asked twice."),
    "texts_differ": about(null(SHARE), "The share of canaries whose texts differ from the reference."),
    "texts_differ_usually": about(null(SHARE), "That share if the same model is asked twice."),
}
_LOG = "The logarithm of the evidence after its last canary: "
_RUN = shape(
    {
        "job_id": members.JOB_ID,
        "created_at": members.CREATED_AT,
        "asked": about(COUNT, "Canaries that count."),
        "changed": about(COUNT, "Of these, those with another answer or score than in the reference."),
        "left_out": about(COUNT, "Canaries without an answer, or that are no longer the item of the reference."),
        "score": about(NUMBER, f"{_LOG}of scores."),
        "answers": about(NUMBER, f"{_LOG}of answers."),
        "text": about(NUMBER, f"{_LOG}of texts."),
    },
    name="WatchRun",
)
_CHANGE = shape(
    {
        "job_id": members.JOB_ID,
        "task": members.TASK,
        "item": members.ITEM,
        "answer_before": about(STRING, "The answer of the reference."),
        "answer_now": about(STRING, "The present answer."),
        "score_before": about(null(NUMBER), "The score of the reference."),
        "score_now": about(null(NUMBER), "The present score."),
    },
    name="WatchChange",
)
_SERVED = shape(
    {
        "model": about(STRING, "The model, as the provider names it in its answers."),
        "first_at": about(null(TIME), "When a run first had it."),
        "last_at": about(null(TIME), "When a run last had it."),
        "reference": about(BOOLEAN, "Whether the reference had it, too."),
    },
    name="WatchServed",
)
CREATE_WATCH = Endpoint(
    "POST",
    "/watches",
    create,
    "createWatch",
    "Watch whether an endpoint still answers as it did in a completed job.",
    answer=SCHEDULE,
    body=_BODY,
    errors=(404, 409),
    gives={"schedule_id": "/schedule_id"},
)
WATCH = Endpoint(
    "GET",
    "/watches/{schedule_id}",
    show,
    "getWatch",
    "What the runs of a watch show.",
    answer=shape(
        {
            "schedule_id": about(UUID, "The watch's id, which is that of its schedule."),
            "said": about(STRING, "What it shows, as a sentence."),
            "raised_by": about(null(enum(*WATCH_SIGNALS)), "What raised the alarm. null without an alarm."),
            "raised_at": about(null(TIME), "When the run that raised it ended."),
            "raised_job_id": about(null(STRING), "That run."),
            "raised_after": about(null(COUNT), "After how many canaries."),
            "since": about(null(TIME), "From when on the evidence grew: an estimate of when the change happened."),
            "since_job_id": about(null(STRING), "The run from which on it grew."),
            "reference_job_id": about(UUID, "The job whose answers are the reference."),
            "again_job_id": about(null(UUID), "The second run of its model."),
            "error": about(NUMBER, "The chance of a false alarm, ever."),
            "asked": about(COUNT, "Canaries that count, each once per asking."),
            "left_out": about(COUNT, "Canaries without an answer, or that are no longer the item of the reference."),
            "threshold": about(NUMBER, "The alarm is raised when a logarithm in `runs` is this high."),
            **_SHARES,
            "runs": about(array(_RUN), "Its completed runs, oldest first; the newest 400."),
            "changes": about(
                array(_CHANGE),
                "Changed canaries since the change if there is an alarm, else of the newest run. At most 100.",
            ),
            "served": about(array(_SERVED), "The models that the provider names."),
        },
        name="Watch",
    ),
)
