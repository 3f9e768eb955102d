"""Settings: tokens and their users, the endpoints' health, webhooks and deliveries that failed, and schedules."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response

from services import bus
from services.errors import InvalidRequestError, PermissionDeniedError, TouchstoneError
from services.gateway import context
from services.gateway.access import tokens
from services.gateway.access.auth import LocalAccess, within
from services.gateway.http.responses import status_of
from services.gateway.pages.layout.shell import go_to, render
from services.gateway.reads import decisions, jobs
from services.gateway.reads.catalogue import Catalogue
from services.words import refusals
from services.words.enums import ROLES
from services.words.jobs import WEBHOOK_EVENTS
from services.words.watches import DEFAULT_ITEMS
from touchstone.v1 import job_pb2, results_service_pb2, scheduler_service_pb2, token_pb2

T = TypeVar("T")
_MOST = 200
_MOST_DAYS = 36_500
_STORE = "token store"


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token without its text. `role` is a word."""

    digest: str
    token: token_pb2.Token
    role: str


async def settings_page(request: Request) -> Response:
    """The page. A user sees the own tokens, webhooks and schedules, an admin everybody's."""
    return await _page(request)


async def settings_error(request: Request, error: TouchstoneError, section: str) -> Response:
    """The page with what is wrong in a form of the `section`."""
    return await _page(request, error=error, section=section)


async def _page(
    request: Request, made: Mapping[str, str] | None = None, error: TouchstoneError | None = None, section: str = ""
) -> Response:
    """`made` is what is shown once: a token or a webhook's secret. `error` is shown in the `section` whose form it is
    about, with what was sent."""
    ctx, caller = context.of(request), context.identity(request)
    backend = ctx.backend
    rows, endpoints, models, webhooks, dead, schedules = await asyncio.gather(
        _tokens(request),
        _unless_silent(ctx.catalogue.endpoints()),
        _unless_silent(_models(ctx.catalogue)),
        _unless_silent(
            backend.ask(
                backend.scheduler.ListWebhooks, scheduler_service_pb2.ListWebhooksRequest(page_size=_MOST), caller
            )
        ),
        _unless_silent(
            backend.ask(
                backend.scheduler.ListDeadDeliveries,
                scheduler_service_pb2.ListDeadDeliveriesRequest(page_size=_MOST),
                caller,
            )
        ),
        _unless_silent(
            backend.ask(
                backend.scheduler.ListSchedules, scheduler_service_pb2.ListSchedulesRequest(page_size=_MOST), caller
            )
        ),
    )
    users: dict[str, list[TokenRow]] = {}
    for row in rows or ():
        users.setdefault(row.token.user, []).append(row)
    if rows is not None and caller.is_admin:
        # Somebody whose tokens have ended still has jobs, webhooks and schedules.
        known = (*(webhooks.webhooks if webhooks else ()), *(schedules.schedules if schedules else ()))
        for user in {one.owner for one in (*known, *await _newest_jobs(request))} - {""}:
            users.setdefault(user, [])
    values = {
        "caller": caller,
        "local": isinstance(ctx.access, LocalAccess),
        "tokens": rows,
        "users": sorted(users.items()),
        "roles": tokens.GIVEN,
        "endpoints": endpoints,
        "models": models or {},
        "webhooks": webhooks,
        "events": WEBHOOK_EVENTS,
        "dead": dead,
        "schedules": schedules,
        "made": made,
        "problem": error.message if error else "",
        "section": section,
        "sent": await request.form() if error else {},
        "job": request.query_params.get("job", ""),
        "watch_items": DEFAULT_ITEMS,
    }
    status = status_of(error) if error else 200
    page = await render(request, "settings/index.html", "settings", values, status)
    # What is shown once is not kept by the browser either.
    page.headers["Cache-Control"] = "no-store"
    return page


async def _newest_jobs(request: Request) -> Sequence[job_pb2.Job]:
    ctx, caller = context.of(request), context.identity(request)
    call = results_service_pb2.ResultsServiceListJobsRequest(page_size=_MOST, without_counts=True)
    found = await _unless_silent(ctx.backend.ask(ctx.backend.results.ListJobs, call, caller))
    return found.jobs if found else ()


async def _unless_silent(asked: Awaitable[T]) -> T | None:
    try:
        return await asked
    except TouchstoneError:
        return None


async def _models(catalogue: Catalogue) -> dict[str, int]:
    """How many models each endpoint lists: the list of endpoints is without them."""
    names = [one.endpoint for one in await catalogue.endpoints()]
    lists = await asyncio.gather(*map(catalogue.models, names))
    return {name: len(listed) for name, listed in zip(names, lists, strict=True)}


async def _tokens(request: Request) -> list[TokenRow] | None:
    """Those that the caller may see, oldest first. None in local mode and while NATS is silent."""
    ctx, caller = context.of(request), context.identity(request)
    if isinstance(ctx.access, LocalAccess) or ctx.bus is None:
        return None
    stored = await _unless_silent(within(tokens.stored(ctx.bus), _STORE))
    if stored is None:
        return None
    return [
        TokenRow(digest, token, ROLES.of(token.role, "user"))
        for digest, token in stored
        if caller.is_admin or token.user == caller.user
    ]


def _token_bus(request: Request) -> bus.Bus:
    """Raises InvalidRequestError where no tokens are used."""
    ctx = context.of(request)
    if isinstance(ctx.access, LocalAccess) or ctx.bus is None:
        raise InvalidRequestError("This installation uses no tokens. Set TOUCHSTONE_AUTH=token to use them.")
    return ctx.bus


async def create_token(request: Request) -> Response:
    """Makes a token and shows its text this once. 403 for callers who are not admins."""
    form = await request.form()
    user, role, label, days = (str(form.get(name, "")).strip() for name in ("user", "role", "label", "expires_days"))
    try:
        nats_bus = _token_bus(request)
        if not context.identity(request).is_admin:
            raise PermissionDeniedError("Only an admin may create tokens.")
        if role not in tokens.GIVEN:
            raise InvalidRequestError(refusals.not_valid(role, "role", tokens.GIVEN), "role")
        if days and not (days.isdecimal() and len(days) < 6 and 1 <= int(days) <= _MOST_DAYS):
            raise InvalidRequestError(refusals.between("expires_days", 1, _MOST_DAYS), "expires_days")
        text = await within(tokens.create(nats_bus, user[:200], role, label[:80], int(days or 0)), _STORE)
    except TouchstoneError as error:
        return await _page(request, error=error, section="tokens")
    return await _page(request, {"section": "tokens", "what": f"{user}'s token", "text": text})


async def revoke_token(request: Request) -> Response:
    """403 for another user's token, 404 for one that was revoked before."""
    digest, caller = request.path_params["digest"], context.identity(request)
    await within(tokens.end(_token_bus(request), digest, caller), _STORE)
    return go_to(request, "/settings#tokens")


async def create_webhook(request: Request) -> Response:
    """Makes a webhook and shows its secret this once."""
    ctx, caller = context.of(request), context.identity(request)
    form = await request.form()
    call = scheduler_service_pb2.CreateWebhookRequest(
        url=str(form.get("url", "")).strip(),
        events=[one for one in form.getlist("events") if isinstance(one, str)],
    )
    try:
        made = await ctx.backend.ask(ctx.backend.scheduler.CreateWebhook, call, caller)
    except TouchstoneError as error:
        return await _page(request, error=error, section="webhooks")
    return await _page(request, {"section": "webhooks", "what": "The webhook's secret", "text": made.secret})


async def delete_webhook(request: Request) -> Response:
    """404 for an unknown id."""
    ctx, caller = context.of(request), context.identity(request)
    call = scheduler_service_pb2.DeleteWebhookRequest(webhook_id=request.path_params["webhook_id"])
    await ctx.backend.ask(ctx.backend.scheduler.DeleteWebhook, call, caller)
    return go_to(request, "/settings#webhooks")


async def redeliver(request: Request) -> Response:
    """Tries a delivery that was given up once more. 404 for an unknown id."""
    ctx, caller = context.of(request), context.identity(request)
    call = scheduler_service_pb2.RedeliverWebhookRequest(delivery_id=request.path_params["delivery_id"])
    await ctx.backend.ask(ctx.backend.scheduler.RedeliverWebhook, call, caller)
    return go_to(request, "/settings#webhooks")


async def create_schedule(request: Request) -> Response:
    """Repeats an earlier job's settings, or the decision that it belongs to. Its priority is low, as with schedules
    that name none."""
    ctx, caller = context.of(request), context.identity(request)
    form = await request.form()
    job_id, cron, zone, label = (str(form.get(name, "")).strip() for name in ("job", "cron", "time_zone", "label"))
    try:
        source = await jobs.find(ctx.backend, job_id, caller)
        call = scheduler_service_pb2.CreateScheduleRequest(
            request_id=str(form.get("request_id", "")) or uuid.uuid4().hex, cron=cron, time_zone=zone, label=label
        )
        if source.spec.HasField("deciding"):
            call.decision.CopyFrom(decisions.again(await decisions.find(ctx.backend, source.job_id, caller)))
        else:
            call.spec.CopyFrom(jobs.spec_again(source))
        await ctx.backend.ask(ctx.backend.scheduler.CreateSchedule, call, caller)
    except TouchstoneError as error:
        return await _page(request, error=error, section="schedules")
    return go_to(request, "/settings#schedules")


async def pause_schedule(request: Request) -> Response:
    """404 for an unknown id."""
    return await _set_paused(request, paused=True)


async def resume_schedule(request: Request) -> Response:
    """404 for an unknown id."""
    return await _set_paused(request, paused=False)


async def _set_paused(request: Request, *, paused: bool) -> Response:
    ctx, caller = context.of(request), context.identity(request)
    call = scheduler_service_pb2.SetSchedulePausedRequest(schedule_id=request.path_params["schedule_id"], paused=paused)
    await ctx.backend.ask(ctx.backend.scheduler.SetSchedulePaused, call, caller)
    return go_to(request, "/settings#schedules")


async def delete_schedule(request: Request) -> Response:
    """Its jobs stay. 404 for an unknown id."""
    ctx, caller = context.of(request), context.identity(request)
    call = scheduler_service_pb2.DeleteScheduleRequest(schedule_id=request.path_params["schedule_id"])
    await ctx.backend.ask(ctx.backend.scheduler.DeleteSchedule, call, caller)
    return go_to(request, "/settings#schedules")
