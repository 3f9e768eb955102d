"""Cookies of sessions: for the site that set them alone, and for no script."""

from __future__ import annotations

import pytest
from starlette.requests import HTTPConnection
from starlette.responses import Response

from services.gateway.access import auth


@pytest.mark.parametrize(("scheme", "name"), [("https", "__Host-x"), ("http", "x")])
def test_a_cookie_is_this_sites_alone_and_no_scripts(scheme: str, name: str) -> None:
    scope = {"type": "http", "scheme": scheme, "server": ("a.example", 443), "path": "/", "headers": []}
    response = Response()
    auth.set_cookie(HTTPConnection(scope), response, "x", "secret", 60)
    first, *parts = response.headers["set-cookie"].split("; ")
    told = {part.lower() for part in parts}
    assert first == f"{name}=secret"
    assert {"httponly", "samesite=lax", "path=/"} <= told
    assert ("secure" in told) is (scheme == "https")
    assert not any(part.startswith("domain") for part in told)
