"""Signing in with a token, and out. Local mode has neither."""

from __future__ import annotations

from urllib.parse import urlencode, urlsplit

from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response

from services.errors import LimitReachedError, UnauthenticatedError
from services.gateway import context
from services.gateway.access.auth import TokenAccess, address_of
from services.gateway.http.responses import headers_of, status_of
from services.gateway.pages.layout.shell import render

_LONGEST = 2000


async def login(request: Request) -> Response:
    """The form, and its answer: a session cookie and a redirect to the requested page."""
    access = context.of(request).access
    if not isinstance(access, TokenAccess) or access.sessions is None:
        return RedirectResponse("/", 303)
    if request.method != "POST":
        values = {"problem": "", "next": own_path(request.query_params.get("next", ""))}
        return await render(request, "login.html", "login", values)
    form = await request.form()
    after = own_path(str(form.get("next", "")))
    token = str(form.get("token", "")).strip()
    try:
        identity = await access.identify(token, address_of(request))
    except (UnauthenticatedError, LimitReachedError) as error:
        problem = error.message if token else "Paste a token."
        page = await render(request, "login.html", "login", {"problem": problem, "next": after}, status_of(error))
        page.headers.update(headers_of(error))
        return page
    response = RedirectResponse(after, 303)
    access.sessions.set_cookie(request, response, await access.sessions.start(identity, token))
    return response


def own_path(address: str) -> str:
    """A path of this site to go to after signing in; `/` for anything that could lead to another site or in a circle.

    Browsers read a backslash as a slash and drop tabs and line ends, so none of these may be in it.
    """
    try:
        parts = urlsplit(address)
    except ValueError:
        return "/"
    plain = address.isascii() and address.isprintable() and "\\" not in address and " " not in address
    own = address.startswith("/") and not address.startswith("//") and not parts.scheme and not parts.netloc
    return address if plain and own and parts.path != "/login" and len(address) <= _LONGEST else "/"


def login_address(connection: HTTPConnection) -> str:
    """The address for someone without a session, with the page to return to, which must be a GET."""
    url = connection.url
    after = own_path(url.path + (f"?{url.query}" if url.query else ""))
    if connection.scope.get("method") != "GET" or after == "/":
        return "/login"
    return "/login?" + urlencode({"next": after})


async def logout(request: Request) -> Response:
    """Ends the session, here and in the store."""
    caller, sessions = context.caller(request), context.of(request).access.sessions
    response = RedirectResponse("/login" if sessions else "/", 303)
    if sessions is not None and caller.session:
        await sessions.end(caller.session)
        sessions.clear_cookie(request, response)
    return response
