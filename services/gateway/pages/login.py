"""Signing in with a token, and out. Local mode has neither."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from services.errors import UnauthenticatedError
from services.gateway import context
from services.gateway.auth import TokenAccess
from services.gateway.pages.shell import render


async def login(request: Request) -> Response:
    """The form, and its answer: a session cookie and the way to the pages."""
    access = context.of(request).access
    if not isinstance(access, TokenAccess) or access.sessions is None:
        return RedirectResponse("/", 303)
    if request.method != "POST":
        return await render(request, "login.html", "login", {"problem": ""})
    form = await request.form()
    token = str(form.get("token", "")).strip()
    try:
        identity = await access.identify(token)
    except UnauthenticatedError as error:
        problem = error.message if token else "Paste a token."
        return await render(request, "login.html", "login", {"problem": problem}, 401)
    response = RedirectResponse("/", 303)
    access.sessions.set_cookie(request, response, await access.sessions.start(identity, token))
    return response


async def logout(request: Request) -> Response:
    """Ends the session, here and in the store."""
    caller, sessions = context.caller(request), context.of(request).access.sessions
    response = RedirectResponse("/login" if sessions else "/", 303)
    if sessions is not None and caller.session:
        await sessions.end(caller.session)
        sessions.clear_cookie(request, response)
    return response
