"""Schedules, webhooks, logs and deliveries of the fake scheduler."""

from __future__ import annotations

import uuid

from services import rpc
from services.errors import ConflictError, InvalidRequestError, NotFoundError
from tests.gateway.fake_world import World, start_of
from touchstone.v1 import schedule_pb2, scheduler_service_pb2, webhook_pb2

ALLOWED_HOST = "hooks.example"


def create_schedule(
    world: World, request: scheduler_service_pb2.CreateScheduleRequest
) -> scheduler_service_pb2.CreateScheduleResponse:
    if len(request.cron.split()) != 5:
        raise InvalidRequestError(f"{request.cron!r} is no cron expression; it has five fields.", "cron")
    made = add_schedule(world, request, rpc.identity().user)
    return scheduler_service_pb2.CreateScheduleResponse(schedule=made)


def add_schedule(
    world: World, request: scheduler_service_pb2.CreateScheduleRequest, owner: str
) -> schedule_pb2.Schedule:
    made = schedule_pb2.Schedule(
        schedule_id=str(uuid.uuid4()),
        owner=owner,
        label=request.label,
        cron=request.cron,
        time_zone=request.time_zone or "UTC",
        spec=request.spec,
        request_id=request.request_id,
    )
    made.created_at.GetCurrentTime()
    made.next_at.FromSeconds(made.created_at.seconds + 3600)
    world.schedules[made.schedule_id] = made
    return made


def list_schedules(
    world: World, request: scheduler_service_pb2.ListSchedulesRequest
) -> scheduler_service_pb2.ListSchedulesResponse:
    found = [
        one
        for one in world.schedules.values()
        if request.owner in ("", one.owner) and request.project_id in (0, one.spec.project_id)
    ]
    return scheduler_service_pb2.ListSchedulesResponse(schedules=found[: request.page_size])


def delete_schedule(world: World, schedule_id: str) -> scheduler_service_pb2.DeleteScheduleResponse:
    if world.schedules.pop(schedule_id, None) is None:
        raise NotFoundError(f"Schedule {schedule_id} is not known.")
    return scheduler_service_pb2.DeleteScheduleResponse()


def create_webhook(
    world: World, request: scheduler_service_pb2.CreateWebhookRequest
) -> scheduler_service_pb2.CreateWebhookResponse:
    if f"//{ALLOWED_HOST}/" not in request.url:
        raise InvalidRequestError(f"{request.url} is not on the operator's list of webhook hosts.", "url")
    made = add_webhook(world, request, rpc.identity().user)
    return scheduler_service_pb2.CreateWebhookResponse(webhook=made, secret="shown-once")


def add_webhook(world: World, request: scheduler_service_pb2.CreateWebhookRequest, owner: str) -> webhook_pb2.Webhook:
    events = list(request.events) or ["job.completed", "job.failed", "job.cancelled"]
    made = webhook_pb2.Webhook(
        webhook_id=str(uuid.uuid4()),
        owner=owner,
        url=request.url,
        events=events,
        project_id=request.project_id,
    )
    made.created_at.GetCurrentTime()
    world.webhooks[made.webhook_id] = made
    return made


def list_webhooks(
    world: World, request: scheduler_service_pb2.ListWebhooksRequest
) -> scheduler_service_pb2.ListWebhooksResponse:
    found = [one for one in world.webhooks.values() if request.project_id in (0, one.project_id)]
    return scheduler_service_pb2.ListWebhooksResponse(webhooks=found)


def delete_webhook(world: World, webhook_id: str) -> scheduler_service_pb2.DeleteWebhookResponse:
    if world.webhooks.pop(webhook_id, None) is None:
        raise NotFoundError(f"Webhook {webhook_id} is not known.")
    return scheduler_service_pb2.DeleteWebhookResponse()


def redeliver(world: World, delivery_id: str) -> scheduler_service_pb2.RedeliverWebhookResponse:
    if delivery_id not in world.dead:
        raise NotFoundError(f"Delivery {delivery_id} is not known.")
    if world.dead[delivery_id].tries > 9:
        raise ConflictError(f"Delivery {delivery_id} is under way.")
    return scheduler_service_pb2.RedeliverWebhookResponse(delivery=world.dead.pop(delivery_id))


def list_job_logs(
    world: World, request: scheduler_service_pb2.ListJobLogsRequest
) -> scheduler_service_pb2.ListJobLogsResponse:
    if request.job_id not in world.jobs:
        raise NotFoundError(f"Benchmark job {request.job_id} not found")
    levels = ("info", "warning", "error")
    least = levels.index(request.level) if request.level else 0
    lines = [line for line in world.logs.get(request.job_id, []) if levels.index(line.level) >= least]
    first = start_of(request.page_token)
    after = str(first + request.page_size) if first + request.page_size < len(lines) else ""
    return scheduler_service_pb2.ListJobLogsResponse(
        lines=lines[first : first + request.page_size], next_page_token=after
    )
