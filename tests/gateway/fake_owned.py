"""Schedules, webhooks, logs and deliveries of the fake scheduler."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import Any, TypeVar

from google.protobuf.timestamp_pb2 import Timestamp

from services import rpc
from services.errors import ConflictError, InvalidRequestError, NotFoundError
from services.scheduler.admission import decision_rules, watch_rules
from services.scheduler.requests.paging import after_of, paged, token_of
from services.scheduler.schedules.cron import Cron
from services.scheduler.webhooks.address import AddressRule
from services.words import refusals
from tests.gateway import fake_admission
from tests.gateway.fake_world import World
from touchstone.v1 import job_pb2, schedule_pb2, scheduler_service_pb2, webhook_pb2

T = TypeVar("T")


def create_schedule(
    world: World, request: scheduler_service_pb2.CreateScheduleRequest
) -> scheduler_service_pb2.CreateScheduleResponse:
    rpc.check_request_id(request.request_id)
    now, owner = time.time(), rpc.identity().user
    times = Cron(request.cron, request.time_zone)
    times.require_period(fake_admission.LIMITS.schedule_period_s, now)
    if not request.label.isprintable():
        raise InvalidRequestError("label must have at most 80 characters, all printable.", "label")
    asked = scheduler_service_pb2.CreateScheduleRequest()
    asked.CopyFrom(request)
    sides: list[job_pb2.Deciding] = []
    candidates: list[job_pb2.JobSpec] = []
    if request.HasField("decision"):
        sides = decision_rules.sides(request.decision)
        asked.spec.CopyFrom(asked.decision.baseline)
        candidates = decision_rules.specs(asked.decision)[1:]
    for spec in (asked.spec, *candidates):
        spec.priority = spec.priority or job_pb2.PRIORITY_LOW
        fake_admission.full(world, spec)
    for spec, side in zip((asked.spec, *candidates), sides, strict=False):
        spec.deciding.CopyFrom(side)
    for known in world.schedules.values():
        if request.request_id and (known.owner, known.request_id) == (owner, request.request_id):
            same = (known.cron, known.spec, [*known.candidates], known.label)
            if same != (asked.cron, asked.spec, candidates, asked.label):
                raise ConflictError(refusals.id_used(request.request_id, f"schedule {known.schedule_id}"))
            return scheduler_service_pb2.CreateScheduleResponse(schedule=known)
    made = add_schedule(world, asked, owner)
    made.candidates.extend(candidates)
    made.next_at.FromMilliseconds(int(times.next(now) * 1000))
    return scheduler_service_pb2.CreateScheduleResponse(schedule=made)


def start_watch(
    world: World, request: scheduler_service_pb2.StartWatchRequest
) -> scheduler_service_pb2.StartWatchResponse:
    watching = watch_rules.watching_of(request)
    for job_id in (watching.reference_job_id, watching.again_job_id):
        if job_id and job_id not in world.jobs:
            raise NotFoundError(refusals.not_found("Benchmark job", job_id))
    reference = world.jobs[watching.reference_job_id]
    if reference.state != job_pb2.Job.STATE_COMPLETED:
        raise ConflictError(f"Job {reference.job_id} has not completed. Watch with a completed job as reference.")
    watching.total, watching.known_runs = 10 * watching.items, 4
    spec = watch_rules.spec_of(reference, request)
    made = create_schedule(
        world,
        scheduler_service_pb2.CreateScheduleRequest(
            request_id=request.request_id,
            cron=request.cron,
            time_zone=request.time_zone,
            spec=spec,
            label=request.label,
        ),
    ).schedule
    made = world.schedules[made.schedule_id]
    made.spec.watching.CopyFrom(watching)
    return scheduler_service_pb2.StartWatchResponse(schedule=made)


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
    page, token = paged(found, request.page_size, request.page_token, 100, 500, lambda one: _age(one.created_at))
    return scheduler_service_pb2.ListSchedulesResponse(schedules=page, next_page_token=token)


def set_paused(
    world: World, request: scheduler_service_pb2.SetSchedulePausedRequest
) -> scheduler_service_pb2.SetSchedulePausedResponse:
    if request.schedule_id not in world.schedules:
        raise NotFoundError(refusals.not_found("Schedule", request.schedule_id))
    schedule = world.schedules[request.schedule_id]
    schedule.ClearField("paused_at")
    if request.paused:
        schedule.paused_at.GetCurrentTime()
        schedule.ClearField("next_at")
    return scheduler_service_pb2.SetSchedulePausedResponse(schedule=schedule)


def delete_schedule(world: World, schedule_id: str) -> scheduler_service_pb2.DeleteScheduleResponse:
    if world.schedules.pop(schedule_id, None) is None:
        raise NotFoundError(refusals.not_found("Schedule", schedule_id))
    return scheduler_service_pb2.DeleteScheduleResponse()


def create_webhook(
    world: World, request: scheduler_service_pb2.CreateWebhookRequest
) -> scheduler_service_pb2.CreateWebhookResponse:
    AddressRule().check_url(request.url, "url")
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
    page, token = paged(found, request.page_size, request.page_token, 100, 500, lambda one: _age(one.created_at))
    return scheduler_service_pb2.ListWebhooksResponse(webhooks=page, next_page_token=token)


def delete_webhook(world: World, webhook_id: str) -> scheduler_service_pb2.DeleteWebhookResponse:
    if world.webhooks.pop(webhook_id, None) is None:
        raise NotFoundError(refusals.not_found("Webhook", webhook_id))
    return scheduler_service_pb2.DeleteWebhookResponse()


def redeliver(world: World, delivery_id: str) -> scheduler_service_pb2.RedeliverWebhookResponse:
    if delivery_id not in world.dead:
        raise NotFoundError(refusals.not_found("Delivery", delivery_id))
    if world.dead[delivery_id].tries > 9:
        raise ConflictError(f"Delivery {delivery_id} is under way.")
    return scheduler_service_pb2.RedeliverWebhookResponse(delivery=world.dead.pop(delivery_id))


def dead(
    world: World, request: scheduler_service_pb2.ListDeadDeliveriesRequest
) -> scheduler_service_pb2.ListDeadDeliveriesResponse:
    found = sorted(world.dead.values(), key=lambda one: one.delivery_id)
    page, token = paged(found, request.page_size, request.page_token, 100, 500, lambda one: one.delivery_id)
    return scheduler_service_pb2.ListDeadDeliveriesResponse(deliveries=page, next_page_token=token)


def list_set_aside(
    world: World, request: scheduler_service_pb2.ListSetAsideMessagesRequest
) -> scheduler_service_pb2.ListSetAsideMessagesResponse:
    rpc.require_admin()
    page, token = _in_order(world.set_aside, request, 100)
    return scheduler_service_pb2.ListSetAsideMessagesResponse(
        messages=page, total=len(world.set_aside), next_page_token=token
    )


def list_job_logs(
    world: World, request: scheduler_service_pb2.ListJobLogsRequest
) -> scheduler_service_pb2.ListJobLogsResponse:
    if request.job_id not in world.jobs:
        raise NotFoundError(refusals.not_found("Benchmark job", request.job_id))
    levels = ("info", "warning", "error")
    least = levels.index(request.level) if request.level else 0
    lines = [line for line in world.logs.get(request.job_id, []) if levels.index(line.level) >= least]
    page, token = _in_order(lines, request, 200)
    return scheduler_service_pb2.ListJobLogsResponse(lines=page, next_page_token=token)


def _in_order(found: Sequence[T], request: Any, usual: int) -> tuple[list[T], str]:
    """A page of what has no key but its place. Raises InvalidRequestError."""
    after = after_of(request.page_token) or "0"
    if not after.isdecimal():
        raise InvalidRequestError(refusals.PAGE_TOKEN, "page_token")
    end = int(after) + (request.page_size or usual)
    return list(found[int(after) : end]), token_of(str(end)) if end < len(found) else ""


def _age(created: Timestamp) -> str:
    return f"{created.ToNanoseconds():020d}"
