"""`/webhooks`: URLs that are called when jobs finish, and deliveries that were given up."""

from __future__ import annotations

from typing import Any

from services.errors import InvalidRequestError
from services.gateway.api.answers import members
from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.fields.checks import Field, integer, list_of, one_of, record
from services.gateway.fields.job import URL
from services.gateway.fields.query import NEXT_PAGE_TOKEN, PAGE_TOKEN, PROJECT, limit
from services.gateway.fields.schema import COUNT, STRING, TIME, UUID, about, array, enum, null, shape
from services.gateway.http.responses import JSONResponse
from services.gateway.reads import jobs
from services.words.fields import INT64_MAX
from services.words.jobs import WEBHOOK_EVENTS
from touchstone.v1 import scheduler_service_pb2, webhook_pb2

_BODY = record(
    {
        "url": Field(
            URL, required=True, about="The address. It must lead to a public address unless the operator allows others."
        ),
        "events": Field(
            list_of(one_of(*WEBHOOK_EVENTS), len(WEBHOOK_EVENTS)), about="The events to send. All if absent."
        ),
        "project_id": Field(integer(0, INT64_MAX), about="Only jobs of this project, also in digests. 0 means all."),
    },
    name="WebhookRequest",
)


async def create(call: Call) -> JSONResponse:
    """The secret is only in this answer. 400 for an address that may not be called."""
    request = scheduler_service_pb2.CreateWebhookRequest(
        url=call.body["url"], events=call.body.get("events", []), project_id=call.body.get("project_id", 0)
    )
    try:
        made = await call.ask(call.ctx.backend.scheduler.CreateWebhook, request)
    except InvalidRequestError as error:
        raise InvalidRequestError(error.message) from error
    return JSONResponse(_webhook(made.webhook) | {"secret": made.secret})


async def webhooks(call: Call) -> JSONResponse:
    """The caller's own; an admin sees all."""
    request = scheduler_service_pb2.ListWebhooksRequest(
        page_size=call.query["limit"], page_token=call.query["page_token"], project_id=call.query["project_id"]
    )
    found = await call.ask(call.ctx.backend.scheduler.ListWebhooks, request)
    return JSONResponse(
        {"webhooks": [_webhook(one) for one in found.webhooks], "next_page_token": found.next_page_token}
    )


async def delete(call: Call) -> JSONResponse:
    """404 for an unknown id."""
    webhook_id = call.path["webhook_id"]
    request = scheduler_service_pb2.DeleteWebhookRequest(webhook_id=webhook_id)
    await call.ask(call.ctx.backend.scheduler.DeleteWebhook, request)
    return JSONResponse({"message": f"Webhook {webhook_id} deleted"})


async def dead(call: Call) -> JSONResponse:
    """List deliveries that were given up."""
    request = scheduler_service_pb2.ListDeadDeliveriesRequest(
        page_size=call.query["limit"], page_token=call.query["page_token"]
    )
    found = await call.ask(call.ctx.backend.scheduler.ListDeadDeliveries, request)
    return JSONResponse(
        {"deliveries": [_delivery(one) for one in found.deliveries], "next_page_token": found.next_page_token}
    )


async def redeliver(call: Call) -> JSONResponse:
    """Tries a delivery that was given up once more. 404 for an unknown id."""
    request = scheduler_service_pb2.RedeliverWebhookRequest(delivery_id=call.path["delivery_id"])
    found = await call.ask(call.ctx.backend.scheduler.RedeliverWebhook, request)
    return JSONResponse(_delivery(found.delivery))


def _webhook(one: webhook_pb2.Webhook) -> dict[str, Any]:
    return {
        "webhook_id": one.webhook_id,
        "owner": one.owner,
        "url": one.url,
        "events": list(one.events),
        "project_id": one.project_id,
        "created_at": jobs.iso(one.created_at),
    }


def _delivery(one: webhook_pb2.Delivery) -> dict[str, Any]:
    return {
        "delivery_id": one.delivery_id,
        "webhook_id": one.webhook_id or None,
        "owner": one.owner,
        "url": one.url,
        "event": one.event,
        "job_id": one.job_id or None,
        "tries": one.tries,
        "problem": one.problem or None,
        "last_try_at": jobs.iso(one.last_try_at),
    }


_WEBHOOK = {
    "webhook_id": about(UUID, "The webhook's id."),
    "owner": members.OWNER,
    "url": about(STRING, "The address that is called."),
    "events": about(array(enum(*WEBHOOK_EVENTS)), "The events that are sent."),
    "project_id": about(COUNT, "The project whose jobs are sent. 0 means all."),
    "created_at": members.CREATED_AT,
}
_LISTED = shape(_WEBHOOK, name="Webhook")
_DELIVERY = shape(
    {
        "delivery_id": about(STRING, "The delivery's id, the same in every try."),
        "webhook_id": about(null(STRING), "The webhook. null for a job's own `webhook_url`."),
        "owner": members.OWNER,
        "url": about(STRING, "The address that was called."),
        "event": about(enum(*WEBHOOK_EVENTS), "What happened."),
        "job_id": about(null(members.JOB_ID), "The job that it is about. null for a digest."),
        "tries": about(COUNT, "The number of tries."),
        "problem": about(null(STRING), "Why the last try failed."),
        "last_try_at": about(null(TIME), "When the last try was made."),
    },
    name="Delivery",
)
CREATE_WEBHOOK = Endpoint(
    "POST",
    "/webhooks",
    create,
    "createWebhook",
    "Create a webhook: an address that is called when your jobs finish, and every week with what changed.",
    answer=shape(
        _WEBHOOK | {"secret": about(STRING, "The key of the HMAC-SHA256 signature. It is shown once.")},
        name="NewWebhook",
    ),
    body=_BODY,
    errors=(409,),
    gives={"webhook_id": "/webhook_id"},
)
WEBHOOKS = Endpoint(
    "GET",
    "/webhooks",
    webhooks,
    "listWebhooks",
    "List your webhooks.",
    answer=shape(
        {"webhooks": about(array(_LISTED), "Your webhooks. An admin sees all."), "next_page_token": NEXT_PAGE_TOKEN},
        name="Webhooks",
    ),
    query=(PROJECT, limit(100, 500), PAGE_TOKEN),
    gives={"webhook_id": "/webhooks/0/webhook_id"},
)
DELETE_WEBHOOK = Endpoint(
    "DELETE",
    "/webhooks/{webhook_id}",
    delete,
    "deleteWebhook",
    "Delete a webhook.",
    answer=shape({"message": members.MESSAGE}, name="Message"),
)
DEAD = Endpoint(
    "GET",
    "/webhooks/dead",
    dead,
    "listDeadDeliveries",
    "List deliveries that were given up.",
    answer=shape(
        {"deliveries": about(array(_DELIVERY), "Newest first."), "next_page_token": NEXT_PAGE_TOKEN}, name="Deliveries"
    ),
    query=(limit(100, 500), PAGE_TOKEN),
    gives={"delivery_id": "/deliveries/0/delivery_id"},
)
REDELIVER = Endpoint(
    "POST",
    "/webhooks/dead/{delivery_id}/redeliver",
    redeliver,
    "redeliverWebhook",
    "Try once more a delivery that was given up.",
    answer=_DELIVERY,
    errors=(409,),
)
