"""A small OpenID Connect provider on loopback, which lets everybody in as one person and can be told to misbehave."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import unquote_plus, urlencode

from aiohttp import web
from joserfc import jwk, jws, jwt

from deploy.local.ports import free_port
from services.gateway.access.oidc_settings import Settings

CLIENT, SECRET = "touchstone", "provider's : secret"
_BITS = {"256": hashlib.sha256, "384": hashlib.sha384, "512": hashlib.sha512}


@cache
def _kept(kid: str, curve: str) -> jwk.ECKey:
    return jwk.ECKey.generate_key(curve, {"kid": kid, "use": "sig"})


def elliptic(kid: str, curve: str = "P-256", *, fresh: bool = False) -> jwk.ECKey:
    """The key of this name, or a new one."""
    return _kept.__wrapped__(kid, curve) if fresh else _kept(kid, curve)


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass
class Provider:
    """`person` are the claims about whoever signs in. `changes` replace claims of the next ID tokens, and remove those
    that are None. `signed` makes the text of an ID token of (header, claims)."""

    port: int = 0
    secret: str = SECRET
    person: dict[str, Any] = field(default_factory=lambda: {"sub": "u-1", "groups": ["bench"]})
    user_info: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    key: jwk.Key = field(default_factory=lambda: elliptic("first"))
    published: list[jwk.Key] | None = None
    algorithm: str = "ES256"
    signed: Callable[[dict[str, Any], dict[str, Any]], str] | None = None
    document: dict[str, Any] = field(default_factory=dict)
    """Replaces members of the discovery document, and removes those that are None."""
    error: str = ""
    """What it says to the browser in place of a code."""
    failure: str = ""
    """How it fails to say what it is: a status, or what it sends instead."""
    documents: int = 0
    ways: list[str] = field(default_factory=list)
    """How the client said who it is."""
    asked: list[dict[str, str]] = field(default_factory=list)
    """The queries with which browsers came."""
    ended: list[dict[str, str]] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    runner: web.AppRunner | None = None

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}/realm"

    def settings(self, **changes: Any) -> Settings:
        usual: dict[str, Any] = {
            "issuer": self.issuer,
            "client_id": CLIENT,
            "pages": "",
            "client_secret": self.secret,
            "user_groups": frozenset({"bench"}),
            "admin_groups": frozenset({"ops"}),
        }
        return Settings(**usual | changes)

    async def start(self) -> None:
        app = web.Application()
        app.add_routes(
            [
                web.get("/realm/.well-known/openid-configuration", self._document),
                web.get("/realm/elsewhere", self._whole),
                web.get("/realm/authorize", self._authorize),
                web.post("/realm/token", self._token),
                web.get("/realm/keys", self._keys),
                web.get("/realm/me", self._me),
                web.get("/realm/logout", self._logout),
            ]
        )
        self.runner = web.AppRunner(app)
        await self.runner.setup()
        self.port = self.port or free_port()
        await web.TCPSite(self.runner, "127.0.0.1", self.port).start()

    async def stop(self) -> None:
        if self.runner is not None:
            await self.runner.cleanup()
        self.runner = None

    async def _document(self, request: web.Request) -> web.Response:
        self.documents += 1
        return self._failed() if self.failure else await self._whole(request)

    async def _whole(self, request: web.Request) -> web.Response:
        return web.json_response(self._said())

    def _said(self) -> dict[str, Any]:
        said = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/me",
            "end_session_endpoint": f"{self.issuer}/logout",
            "authorization_response_iss_parameter_supported": True,
            **self.document,
        }
        return {name: value for name, value in said.items() if value is not None}

    def _failed(self) -> web.Response:
        # The long one is right but for its length, as is the one to which the redirect leads.
        texts = {"long": json.dumps(self._said() | {"more": "x" * 2_000_000}), "text": "<html>", "list": "[]"}
        if self.failure in texts:
            return web.Response(text=texts[self.failure])
        if self.failure == "redirect":
            return web.Response(status=302, headers={"Location": f"{self.issuer}/elsewhere"})
        return web.Response(status=int(self.failure))

    async def _authorize(self, request: web.Request) -> web.Response:
        query = dict(request.query)
        self.asked.append(query)
        assert (query["response_type"], query["client_id"], query["code_challenge_method"]) == ("code", CLIENT, "S256")
        code = secrets.token_urlsafe(16)
        self.codes[code] = query
        sent = {"error": self.error, "error_description": "<b>why</b>"} if self.error else {"code": code}
        back = urlencode({**sent, "state": query["state"], "iss": self.issuer})
        raise web.HTTPFound(f"{query['redirect_uri']}?{back}")

    async def _token(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        if self._client(request, form) != (CLIENT, self.secret):
            return web.json_response({"error": "invalid_client"}, status=401)
        asked = self.codes.pop(form["code"], None)
        challenge = base64url(hashlib.sha256(form["code_verifier"].encode()).digest())
        fits = asked and (asked["redirect_uri"], asked["code_challenge"]) == (form["redirect_uri"], challenge)
        if not asked or not fits:
            return web.json_response({"error": "invalid_grant"}, status=400)
        return web.json_response({"access_token": "at-1", "token_type": "Bearer", "id_token": self._id_token(asked)})

    def _client(self, request: web.Request, form: dict[str, str]) -> tuple[str, str]:
        self.ways.append(
            "header" if "Authorization" in request.headers else "form" if "client_secret" in form else "public"
        )
        if basic := request.headers.get("Authorization", "").removeprefix("Basic "):
            name, _, secret = base64.b64decode(basic).decode().partition(":")
            return unquote_plus(name), unquote_plus(secret)
        return form["client_id"], form.get("client_secret", "")

    def _id_token(self, asked: dict[str, str]) -> str:
        now = int(time.time())
        digest = _BITS.get(self.algorithm[2:], hashlib.sha256)(b"at-1").digest()
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "exp": now + 300,
            "iat": now,
            "nonce": asked["nonce"],
            "at_hash": base64url(digest[: len(digest) // 2]),
            **self.person,
            **self.changes,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        header = {"alg": self.algorithm, "kid": self.key.kid, "x-of-the-provider": "1"}
        if self.signed is not None:
            return self.signed(header, claims)
        registry = jws.JWSRegistry(algorithms=[self.algorithm], strict_check_header=False)
        return jwt.encode(header, claims, self.key, registry=registry)

    async def _keys(self, request: web.Request) -> web.Response:
        published = [self.key] if self.published is None else self.published
        odd = [{"kty": "AKP", "kid": "new"}, {"kty": "RSA", "kid": "broken", "n": "AQAB"}, "text"]
        return web.json_response({"keys": [*odd, *(key.as_dict(private=False) for key in published)]})

    async def _me(self, request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == "Bearer at-1"
        return web.json_response({"sub": self.person["sub"], **self.user_info})

    async def _logout(self, request: web.Request) -> web.Response:
        self.ended.append(dict(request.query))
        raise web.HTTPFound(request.query["post_logout_redirect_uri"])


def unsigned(header: dict[str, Any], claims: dict[str, Any]) -> str:
    """An ID token without a signature."""
    parts = (json.dumps({**header, "alg": "none"}), json.dumps(claims))
    return ".".join([*(base64url(part.encode()) for part in parts), ""])


@asynccontextmanager
async def provider(**options: Any) -> AsyncIterator[Provider]:
    made = Provider(**options)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()
