"""`/webhooks`: URLs that are told when jobs finish, and deliveries that were given up."""

from __future__ import annotations

from typing import Any

from services.errors import InvalidRequestError
from services.gateway import jobs
from services.gateway.api.checks import Field, integer, list_of, one_of, record
from services.gateway.api.endpoint import Call, Endpoint
from services.gateway.api.query import PAGE_TOKEN, PROJECT, limit
from services.gateway.api.results import TOKEN
from services.gateway.api.run import URL
from services.gateway.api.schema import COUNT, STRING, TIME, UUID, about, array, enum, null, shape
from services.gateway.parameters import INT64_MAX
from services.gateway.responses import JSONResponse
from touchstone.v1 import scheduler_service_pb2, webhook_pb2

EVENTS = ("job.completed", "job.failed", "job.cancelled")
_BODY = record(
    {
        "url": Field(URL, required=True, about="Private networks only where the operator allows them."),
        "events": Field(list_of(one_of(*EVENTS), len(EVENTS)), about="All when absent."),
        "project_id": Field(integer(0, INT64_MAX), about="Only jobs of this project; 0 means all."),
    },
    name="WebhookRequest",
)


async def create(call: Call) -> JSONResponse:
    """The secret is in this answer alone. 400 for an address that may not be called."""
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
    """Deliveries that were given up, newest first."""
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
        "job_id": one.job_id,
        "tries": one.tries,
        "problem": one.problem or None,
        "last_try_at": jobs.iso(one.last_try_at),
    }


_WEBHOOK = {
    "webhook_id": UUID,
    "owner": STRING,
    "url": STRING,
    "events": array(enum(*EVENTS)),
    "project_id": COUNT,
    "created_at": null(TIME),
}
_LISTED = shape(_WEBHOOK, name="Webhook")
_DELIVERY = shape(
    {
        "delivery_id": STRING,
        "webhook_id": about(null(STRING), "null for a job's own URL."),
        "owner": STRING,
        "url": STRING,
        "event": enum(*EVENTS),
        "job_id": UUID,
        "tries": COUNT,
        "problem": null(STRING),
        "last_try_at": null(TIME),
    },
    name="Delivery",
)
CREATE_WEBHOOK = Endpoint(
    "POST",
    "/webhooks",
    create,
    "createWebhook",
    "Have a URL told when your jobs finish.",
    answer=shape(
        _WEBHOOK | {"secret": about(STRING, "Key of the HMAC-SHA256 signature; shown once.")}, name="NewWebhook"
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
    "Your webhooks; all of them for an admin.",
    answer=shape({"webhooks": array(_LISTED), "next_page_token": TOKEN}, name="Webhooks"),
    query=(PROJECT, limit(100, 500), PAGE_TOKEN),
    gives={"webhook_id": "/webhooks/0/webhook_id"},
)
DELETE_WEBHOOK = Endpoint(
    "DELETE",
    "/webhooks/{webhook_id}",
    delete,
    "deleteWebhook",
    "Delete a webhook.",
    answer=shape({"message": STRING}, name="Message"),
)
DEAD = Endpoint(
    "GET",
    "/webhooks/dead",
    dead,
    "listDeadDeliveries",
    "Deliveries that were given up, newest first.",
    answer=shape({"deliveries": array(_DELIVERY), "next_page_token": TOKEN}, name="Deliveries"),
    query=(limit(100, 500), PAGE_TOKEN),
    gives={"delivery_id": "/deliveries/0/delivery_id"},
)
REDELIVER = Endpoint(
    "POST",
    "/webhooks/dead/{delivery_id}/redeliver",
    redeliver,
    "redeliverWebhook",
    "Try a delivery that was given up once more.",
    answer=_DELIVERY,
    errors=(409,),
)
