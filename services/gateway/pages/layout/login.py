"""Signing in with a token or with an OpenID Connect provider, and out. Local mode has neither."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, unquote, urlencode, urlsplit

from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response

from services.errors import LimitReachedError, PermissionDeniedError, TouchstoneError, UnauthenticatedError
from services.gateway import context
from services.gateway.access import auth, oidc
from services.gateway.access.auth import Session, TokenAccess, address_of
from services.gateway.access.oidc_settings import CALLBACK
from services.gateway.http.responses import headers_of, status_of
from services.gateway.pages.layout.shell import render

_LONGEST = 2000
_LONGEST_KEPT = 3000
"""Browsers drop cookies of more than 4,096 bytes."""
_ATTEMPT = "touchstone-login"
"""The cookie of a sign-in that has begun: its secret, a dot, and the page that was asked for."""
_ATTEMPT_S = 600


async def login(request: Request) -> Response:
    """The form, and its answer: a session cookie and a redirect to the requested page."""
    access = context.of(request).access
    if not isinstance(access, TokenAccess) or access.sessions is None:
        return RedirectResponse("/", 303)
    if request.method != "POST":
        return await _form(request, own_path(request.query_params.get("next", "")))
    form = await request.form()
    after = own_path(str(form.get("next", "")))
    token = str(form.get("token", "")).strip()
    try:
        identity = await access.identify(token, address_of(request))
    except (UnauthenticatedError, LimitReachedError) as error:
        return await _form(request, after, error, problem=error.message if token else "Paste a token.")
    return await _admitted(request, Session.of_token(identity, token), after)


async def begin(request: Request) -> Response:
    """Sends the browser to the provider. With `again`, to choose another account there."""
    provider, access = context.of(request).provider, context.of(request).access
    if provider is None or access.sessions is None:
        return RedirectResponse("/login", 303)
    after = own_path(request.query_params.get("next", ""))
    pages = provider.settings.pages
    if "here" not in request.query_params and f"{request.url.scheme}://{request.url.netloc}" != pages:
        # The browser must have its cookie under the address to which the provider sends it back. `here` ends a circle
        # where a proxy asks under another name.
        query = {name: value for name, value in request.query_params.items() if name in ("next", "again")}
        return RedirectResponse(f"{pages}{oidc.BEGIN}?{urlencode({**query, 'here': 1})}", 303)
    attempt = oidc.Attempt.begin(after)
    try:
        address = await provider.authorization(attempt, again="again" in request.query_params)
    except TouchstoneError as error:
        return await _form(request, after, error)
    response = RedirectResponse(address, 303)
    quoted = quote(after, safe="")
    kept = f"{attempt.secret}.{quoted if len(quoted) <= _LONGEST_KEPT else ''}"
    auth.set_cookie(request, response, _ATTEMPT, kept, _ATTEMPT_S)
    return response


async def finish(request: Request) -> Response:
    """Where the provider sends the browser back to: a session, or a page that says why there is none."""
    provider, access = context.of(request).provider, context.of(request).access
    if provider is None or access.sessions is None:
        return RedirectResponse("/login", 303)
    secret, _, quoted = auth.cookie(request, _ATTEMPT).partition(".")
    after = own_path(unquote(quoted))
    attempt = oidc.Attempt(secret, after) if secret else None
    try:
        found = await provider.finish(attempt, request.query_params, address_of(request))
        session = Session.of_provider(found.identity, provider.settings.issuer, found.ends_at, found.id_token)
        response = await _admitted(request, session, after)
    except PermissionDeniedError as error:
        token = _with({"next": after}, "/login")
        values = {"sentence": error.message, "again": _with({"again": "1", "next": after}, oidc.BEGIN), "token": token}
        response = await render(request, "login_refused.html", "login", values, status_of(error))
    except TouchstoneError as error:
        response = await _form(request, after, error)
    auth.clear_cookie(request, response, _ATTEMPT)
    return response


async def logout(request: Request) -> Response:
    """Ends the session, here and in the store, and at the provider if it began there."""
    ctx, caller = context.of(request), context.caller(request)
    sessions, provider = ctx.access.sessions, ctx.provider
    if sessions is None or not caller.session:
        return RedirectResponse("/login" if sessions else "/", 303)
    session = await sessions.read(caller.session)
    await sessions.end(caller.session)
    address = await provider.logout_address(session.id_token) if provider and session and session.issuer else ""
    if address:
        # A page and not a redirect: a form's answer must not lead to other sites, which its CSP forbids.
        values = {"address": address, "host": provider.settings.host if provider else ""}
        request.scope["state"].pop("caller")
        response = await render(request, "logged_out.html", "login", values)
    else:
        response = RedirectResponse("/login", 303)
    sessions.clear_cookie(request, response)
    return response


async def _admitted(request: Request, session: Session, after: str) -> Response:
    """The session's cookie, and the way to the page that was asked for."""
    sessions = context.of(request).access.sessions
    assert sessions is not None
    response = RedirectResponse(after, 303)
    sessions.set_cookie(request, response, await sessions.start(session))
    return response


async def _form(request: Request, after: str, error: TouchstoneError | None = None, problem: str = "") -> Response:
    """The page with all ways to sign in. `problem` is wrong with the token; without it, `error` is shown above all."""
    provider = context.of(request).provider
    trouble = await provider.trouble() if provider else ""
    values: Mapping[str, object] = {
        "problem": problem,
        "notice": error.message if error and not problem else trouble,
        "next": after,
        "host": provider.settings.host if provider else "",
        "begin": _with({"next": after}, oidc.BEGIN),
        "away": bool(trouble),
    }
    page = await render(request, "login.html", "login", values, status_of(error) if error else 200)
    if error:
        page.headers.update(headers_of(error))
    return page


def _with(query: Mapping[str, str], path: str) -> str:
    """The path with those parameters that do not ask for the first page, which is where a sign-in leads anyway."""
    asked = {name: value for name, value in query.items() if value != "/"}
    return f"{path}?{urlencode(asked)}" if asked else path


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
    leads_back = parts.path in ("/login", oidc.BEGIN, CALLBACK)
    return address if plain and own and not leads_back and len(address) <= _LONGEST else "/"


def login_address(connection: HTTPConnection) -> str:
    """The address for someone without a session, with the page to return to, which must be a GET."""
    url = connection.url
    after = own_path(url.path + (f"?{url.query}" if url.query else ""))
    return _with({"next": after if connection.scope.get("method") == "GET" else "/"}, "/login")
