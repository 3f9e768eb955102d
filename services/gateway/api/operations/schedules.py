"""`/schedules`: jobs that are created again and again."""

from __future__ import annotations

import uuid
from typing import Any

from services.errors import InvalidRequestError
from services.gateway.api.answers import job_results, members
from services.gateway.api.decisions.start import ASKED, request_of
from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.api.jobs.run import WORK, spec_of
from services.gateway.fields.checks import Field, record, text
from services.gateway.fields.job import in_rest, option
from services.gateway.fields.query import NEXT_PAGE_TOKEN, OWNER, PAGE_TOKEN, PROJECT, limit
from services.gateway.fields.schema import COUNT, INTEGER, NUMBER, STRING, TIME, UUID, about, array, null, shape
from services.gateway.http.responses import FieldErrors, JSONResponse
from services.gateway.reads import jobs
from services.words.enums import PRIORITIES
from services.words.jobs import suite_of
from touchstone.v1 import job_pb2, schedule_pb2, scheduler_service_pb2

_PRIORITY = option("priority", "The place in the queue. `low` if absent. Others need an admin.")
_BODY = record(
    {
        "cron": Field(
            text(200), required=True, about="A cron expression: minute, hour, day of the month, month, day of the week."
        ),
        "time_zone": Field(text(100), about="An IANA name, such as `Europe/Zurich`. UTC if absent."),
        "label": Field(text(80), about="A name for people."),
        "job": Field(
            record(WORK | {"priority": _PRIORITY}, name="ScheduledJob"),
            about="The job to create each time. This or `decision` is required.",
        ),
        "decision": Field(
            record(ASKED | {"priority": _PRIORITY}, name="ScheduledDecision"),
            about="The decision to start each time, in place of a job.",
        ),
        "request_id": Field(text(64), about="A repeated request with the same id returns the same schedule."),
    },
    name="ScheduleRequest",
)


async def create(call: Call) -> JSONResponse:
    """400 for an invalid cron expression or time zone, or an unknown suite or provider."""
    body = call.body
    if ("job" in body) == ("decision" in body):
        raise FieldErrors([("job", "Give job or decision.")])
    request = scheduler_service_pb2.CreateScheduleRequest(
        request_id=body.get("request_id") or uuid.uuid4().hex,
        cron=body["cron"],
        time_zone=body.get("time_zone", ""),
        label=body.get("label", ""),
    )
    if "job" in body:
        request.spec.CopyFrom(await spec_of(call, body["job"], "job."))
    else:
        request.decision.CopyFrom(await request_of(call, body["decision"], "decision."))
    try:
        made = await call.ask(call.ctx.backend.scheduler.CreateSchedule, request)
    except InvalidRequestError as error:
        # The scheduler names fields of its message, which users of the API never see.
        raise InvalidRequestError(in_rest(error.message)) from error
    return JSONResponse(schedule_values(made.schedule))


async def schedules(call: Call) -> JSONResponse:
    """All that the caller may see."""
    request = scheduler_service_pb2.ListSchedulesRequest(
        page_size=call.query["limit"],
        page_token=call.query["page_token"],
        owner=call.query["owner"],
        project_id=call.query["project_id"],
    )
    found = await call.ask(call.ctx.backend.scheduler.ListSchedules, request)
    return JSONResponse(
        {"schedules": [schedule_values(one) for one in found.schedules], "next_page_token": found.next_page_token}
    )


async def delete(call: Call) -> JSONResponse:
    """Its jobs stay. 404 for an unknown id."""
    schedule_id = call.path["schedule_id"]
    request = scheduler_service_pb2.DeleteScheduleRequest(schedule_id=schedule_id)
    await call.ask(call.ctx.backend.scheduler.DeleteSchedule, request)
    return JSONResponse({"message": f"Schedule {schedule_id} deleted"})


async def pause(call: Call) -> JSONResponse:
    """It creates no jobs until it is resumed. 403 for another user's, 404 for an unknown id."""
    return await _set_paused(call, paused=True)


async def resume(call: Call) -> JSONResponse:
    """Times that passed meanwhile are not made up for. 403 for another user's, 404 for an unknown id."""
    return await _set_paused(call, paused=False)


async def _set_paused(call: Call, *, paused: bool) -> JSONResponse:
    request = scheduler_service_pb2.SetSchedulePausedRequest(schedule_id=call.path["schedule_id"], paused=paused)
    answer = await call.ask(call.ctx.backend.scheduler.SetSchedulePaused, request)
    return JSONResponse(schedule_values(answer.schedule))


def schedule_values(one: schedule_pb2.Schedule) -> dict[str, Any]:
    return {
        "schedule_id": one.schedule_id,
        "owner": one.owner,
        "label": one.label,
        "cron": one.cron,
        "time_zone": one.time_zone,
        "created_at": jobs.iso(one.created_at),
        "next_at": jobs.iso(one.next_at),
        "paused_at": jobs.iso(one.paused_at),
        "last_job_id": one.last_job_id or None,
        "last_at": jobs.iso(one.last_at),
        "last_problem": one.last_problem or None,
        "watch": _watching(one.spec) if one.spec.HasField("watching") else None,
        "decision": _decision(one) if one.candidates else None,
        "job": _job(one.spec),
    }


def _decision(one: schedule_pb2.Schedule) -> dict[str, Any]:
    side = one.spec.deciding
    return {
        "candidates": [_job(spec) for spec in one.candidates],
        "error": side.error,
        "margin": side.margin,
        "order_seed": side.seed,
    }


def _watching(spec: job_pb2.JobSpec) -> dict[str, Any]:
    watching = spec.watching
    return {
        "reference_job_id": watching.reference_job_id,
        "again_job_id": watching.again_job_id or None,
        "items": watching.items,
        "canaries": watching.total,
        "known_runs": watching.known_runs,
        "error": watching.error,
        "seed": watching.seed,
    }


def _job(spec: job_pb2.JobSpec) -> dict[str, Any]:
    return {
        "provider": spec.endpoint,
        "model": spec.model,
        "suite": suite_of(spec),
        "tasks": list(spec.suite.tasks),
        "limit": spec.suite.limit or spec.dataset.limit or None,
        "project_id": spec.project_id,
        "priority": PRIORITIES.of(spec.priority) or None,
        **job_results.asked(spec),
    }


_JOB = {
    "provider": members.PROVIDER,
    "model": members.MODEL,
    "suite": members.SUITE,
    "tasks": about(array(STRING), "The tasks. An empty list means all."),
    "limit": about(null(COUNT), "The most items per task. null means all."),
    "project_id": members.PROJECT_ID,
    "priority": members.PRIORITY,
    **job_results.ASKED,
}
_WATCHING = shape(
    {
        "reference_job_id": about(UUID, "The job whose answers are the reference."),
        "again_job_id": about(null(UUID), "The second run of its model, which shows what differs by chance."),
        "items": about(COUNT, "Canaries of each run."),
        "canaries": about(COUNT, "All canaries."),
        "known_runs": about(COUNT, "Runs of other models that chose the canaries. 0 means that they were drawn."),
        "error": about(NUMBER, "The chance of a false alarm, ever."),
        "seed": about(INTEGER, "The seed of their order."),
    },
    name="Watching",
)
_JOB_SETTINGS = shape(_JOB, name="JobSettings", optional=("reuse",))
_DECISION = shape(
    {
        "candidates": about(array(_JOB_SETTINGS), "The candidates' jobs, in their order."),
        "error": about(NUMBER, "The most probability of a wrong verdict, of each decision."),
        "margin": about(NUMBER, "Differences below this count as none. 0 if each one matters."),
        "order_seed": about(INTEGER, "The seed from which, with its time, the order of each decision is drawn."),
    },
    name="DecisionSettings",
)
SCHEDULE = shape(
    {
        "schedule_id": about(UUID, "The schedule's id."),
        "owner": members.OWNER,
        "label": about(STRING, "Its name for people."),
        "cron": about(STRING, "The cron expression."),
        "time_zone": about(STRING, "The time zone of the cron expression."),
        "created_at": members.CREATED_AT,
        "next_at": about(null(TIME), "When the next job is created. null while it is paused."),
        "paused_at": about(null(TIME), "Since when it is paused. null while it is not."),
        "last_job_id": about(null(STRING), "The job that it created last, or the last decision's id."),
        "last_at": about(null(TIME), "When it was due last."),
        "last_problem": about(null(STRING), "Why no job was created then. null if one was."),
        "watch": about(null(_WATCHING), "What a watch asks. null for other schedules."),
        "decision": about(null(_DECISION), "What each decision compares. null for other schedules."),
        "job": about(_JOB_SETTINGS, "The job that it creates; of decisions that of the baseline."),
    },
    name="Schedule",
)
CREATE_SCHEDULE = Endpoint(
    "POST",
    "/schedules",
    create,
    "createSchedule",
    "Create a schedule: a job that is created again and again, or a decision.",
    answer=SCHEDULE,
    body=_BODY,
    errors=(409,),
    gives={"schedule_id": "/schedule_id"},
)
SCHEDULES = Endpoint(
    "GET",
    "/schedules",
    schedules,
    "listSchedules",
    "List schedules.",
    answer=shape(
        {"schedules": about(array(SCHEDULE), "The schedules that you may see."), "next_page_token": NEXT_PAGE_TOKEN},
        name="Schedules",
    ),
    query=(OWNER, PROJECT, limit(100, 500), PAGE_TOKEN),
    gives={"schedule_id": "/schedules/0/schedule_id"},
)
PAUSE_SCHEDULE = Endpoint(
    "POST",
    "/schedules/{schedule_id}/pause",
    pause,
    "pauseSchedule",
    "Pause a schedule: it creates no jobs until it is resumed.",
    answer=SCHEDULE,
)
RESUME_SCHEDULE = Endpoint(
    "POST",
    "/schedules/{schedule_id}/resume",
    resume,
    "resumeSchedule",
    "Resume a paused schedule. Times that passed meanwhile are not made up for.",
    answer=SCHEDULE,
)
DELETE_SCHEDULE = Endpoint(
    "DELETE",
    "/schedules/{schedule_id}",
    delete,
    "deleteSchedule",
    "Delete a schedule. Its jobs are kept.",
    answer=shape({"message": members.MESSAGE}, name="Message"),
)
