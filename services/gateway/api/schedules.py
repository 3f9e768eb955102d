"""`/schedules`: jobs that are created again and again."""

from __future__ import annotations

import uuid
from typing import Any

from services.errors import InvalidRequestError
from services.gateway import jobs
from services.gateway.api import figures
from services.gateway.api.checks import Field, one_of, record, text
from services.gateway.api.endpoint import Call, Endpoint
from services.gateway.api.job import PRIORITIES, priority_name
from services.gateway.api.query import PAGE_TOKEN, PROJECT, limit
from services.gateway.api.results import OWNER, TOKEN
from services.gateway.api.run import WORK, spec_of
from services.gateway.api.schema import COUNT, STRING, TIME, UUID, about, array, enum, null, shape
from services.gateway.responses import JSONResponse
from touchstone.v1 import job_pb2, schedule_pb2, scheduler_service_pb2

_PRIORITY = Field(one_of(*PRIORITIES), about="low when absent; more needs an admin.")
_BODY = record(
    {
        "cron": Field(text(200), required=True, about="Minute, hour, day of the month, month, day of the week."),
        "time_zone": Field(text(100), about='IANA name, e.g. "Europe/Zurich"; UTC when absent.'),
        "label": Field(text(80)),
        "job": Field(record(WORK | {"priority": _PRIORITY}, name="ScheduledJob"), required=True),
        "request_id": Field(text(64), about="Repeating a request with the same one gives the same schedule."),
    },
    name="ScheduleRequest",
)


async def create(call: Call) -> JSONResponse:
    """400 for a cron expression or time zone that is none, or an unknown suite or provider."""
    body = call.body
    spec = await spec_of(call, body["job"], "job.")
    if priority := body["job"].get("priority"):
        spec.priority = PRIORITIES[priority]
    request = scheduler_service_pb2.CreateScheduleRequest(
        request_id=body.get("request_id") or uuid.uuid4().hex,
        cron=body["cron"],
        time_zone=body.get("time_zone", ""),
        spec=spec,
        label=body.get("label", ""),
    )
    try:
        made = await call.ask(call.ctx.backend.scheduler.CreateSchedule, request)
    except InvalidRequestError as error:
        # The scheduler names fields of its own message, which the API's users never see.
        raise InvalidRequestError(error.message) from error
    return JSONResponse(_schedule(made.schedule))


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
        {"schedules": [_schedule(one) for one in found.schedules], "next_page_token": found.next_page_token}
    )


async def delete(call: Call) -> JSONResponse:
    """Its jobs stay. 404 for an unknown id."""
    schedule_id = call.path["schedule_id"]
    request = scheduler_service_pb2.DeleteScheduleRequest(schedule_id=schedule_id)
    await call.ask(call.ctx.backend.scheduler.DeleteSchedule, request)
    return JSONResponse({"message": f"Schedule {schedule_id} deleted"})


def _schedule(one: schedule_pb2.Schedule) -> dict[str, Any]:
    return {
        "schedule_id": one.schedule_id,
        "owner": one.owner,
        "label": one.label,
        "cron": one.cron,
        "time_zone": one.time_zone,
        "created_at": jobs.iso(one.created_at),
        "next_at": jobs.iso(one.next_at),
        "last_job_id": one.last_job_id or None,
        "last_at": jobs.iso(one.last_at),
        "last_problem": one.last_problem or None,
        "job": _job(one.spec),
    }


def _job(spec: job_pb2.JobSpec) -> dict[str, Any]:
    return {
        "provider": spec.endpoint,
        "model": spec.model,
        "suite": jobs.suite_of(job_pb2.Job(spec=spec)),
        "tasks": list(spec.suite.tasks),
        "limit": spec.suite.limit or spec.dataset.limit or None,
        "project_id": spec.project_id,
        "priority": priority_name(spec.priority),
        **figures.asked(spec),
    }


_JOB = {
    "provider": STRING,
    "model": STRING,
    "suite": STRING,
    "tasks": about(array(STRING), "Empty means all."),
    "limit": null(COUNT),
    "project_id": COUNT,
    "priority": null(enum(*PRIORITIES)),
    **figures.ASKED,
}
_SCHEDULE = shape(
    {
        "schedule_id": UUID,
        "owner": STRING,
        "label": STRING,
        "cron": STRING,
        "time_zone": STRING,
        "created_at": null(TIME),
        "next_at": about(null(TIME), "When the next job is created."),
        "last_job_id": null(STRING),
        "last_at": null(TIME),
        "last_problem": about(null(STRING), "Why the last time made no job."),
        "job": shape(_JOB, name="JobSettings", optional=("reuse",)),
    },
    name="Schedule",
)
CREATE_SCHEDULE = Endpoint(
    "POST",
    "/schedules",
    create,
    "createSchedule",
    "Create a job again and again, by a cron expression.",
    answer=_SCHEDULE,
    body=_BODY,
    errors=(409,),
    gives={"schedule_id": "/schedule_id"},
)
SCHEDULES = Endpoint(
    "GET",
    "/schedules",
    schedules,
    "listSchedules",
    "Schedules.",
    answer=shape({"schedules": array(_SCHEDULE), "next_page_token": TOKEN}, name="Schedules"),
    query=(OWNER, PROJECT, limit(100, 500), PAGE_TOKEN),
    gives={"schedule_id": "/schedules/0/schedule_id"},
)
DELETE_SCHEDULE = Endpoint(
    "DELETE",
    "/schedules/{schedule_id}",
    delete,
    "deleteSchedule",
    "Delete a schedule; its jobs stay.",
    answer=shape({"message": STRING}, name="Message"),
)
