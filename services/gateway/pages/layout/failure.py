"""The page for an error: the sentence, and links from there."""

from __future__ import annotations

from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response

from services.errors import AwayError, NoRoomError, UnauthenticatedError
from services.gateway import context
from services.gateway.http.responses import headers_of, sentence_of, status_of
from services.gateway.pages.layout.login import login_address
from services.gateway.pages.layout.shell import render

AGAIN_S = 5
"""A page that only waits for a service or for room is read again after this time."""
_TITLES = {
    403: "Not allowed",
    404: "Not found",
    409: "Not possible now",
    413: "Too large",
    429: "Too many",
    503: "A service does not answer",
}


async def page_error(connection: HTTPConnection, error: Exception) -> Response:
    """The error as a page; without a session, the way to sign in."""
    if isinstance(error, UnauthenticatedError) and context.of(connection).access.sessions is not None:
        return RedirectResponse(login_address(connection), 303)
    status = status_of(error)
    sentence = sentence_of(error)
    if status == 404 and sentence == "Not Found":
        sentence = "Page not found. The sidebar lists all pages."
    no_room = isinstance(error, NoRoomError)
    title = "No room on the disk" if no_room else _TITLES.get(status, "Something went wrong")
    passing = isinstance(error, AwayError | NoRoomError) and connection.scope["method"] == "GET"
    values = {"title": title, "sentence": sentence, "no_room": no_room, "again_s": AGAIN_S if passing else 0}
    response = await render(connection, "error.html", "", values, status)
    response.headers.update(headers_of(error))
    return response
