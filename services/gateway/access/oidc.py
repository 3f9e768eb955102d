"""Signing in with an OpenID Connect provider: authorization code flow with PKCE.

Nothing about a sign-in is kept here. Its secret is in a cookie of the browser, and state, nonce and PKCE's verifier are
derived from it, so that any gateway can finish what another one began.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import secrets
import ssl
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

import httpx

from services import rpc
from services.errors import AwayError, InvalidRequestError, UnauthenticatedError
from services.gateway.access import claims
from services.gateway.access.oidc_settings import MOST_SESSION_S, Settings

log = logging.getLogger(__name__)

BEGIN = "/login/oidc"
"""Sends browsers to the provider."""
_DISCOVERY = "/.well-known/openid-configuration"
_TIMEOUT_S = 5.0
_KNOWN_S, _AWAY_S = 60.0, 5.0
"""How long it counts what the provider last said of itself, and that it did not answer."""
_MOST_BYTES = 1_000_000
_LONGEST_HINT = 4096
"""An ID token goes back to the provider in an address, of which servers take a few thousand characters."""
_ENDS = frozenset({"invalid_grant", "invalid_request"})
"""What a provider says of a code that has expired or was used."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One sign-in of one browser, and the page it leads to."""

    secret: str
    after: str

    @classmethod
    def begin(cls, after: str) -> Attempt:
        return cls(secrets.token_urlsafe(32), after)

    @property
    def state(self) -> str:
        return self._derived("state")

    @property
    def nonce(self) -> str:
        return self._derived("nonce")

    @property
    def verifier(self) -> str:
        return self._derived("verifier")

    @property
    def challenge(self) -> str:
        return _base64(hashlib.sha256(self.verifier.encode()).digest())

    def _derived(self, what: str) -> str:
        return _base64(hmac.digest(self.secret.encode(), what.encode(), "sha256"))


@dataclass(frozen=True, slots=True)
class SignedIn:
    """Somebody whom the provider has identified, until `ends_at` (Unix seconds)."""

    identity: rpc.Identity
    id_token: str
    ends_at: float


@dataclass(frozen=True, slots=True)
class _Document:
    """What the provider says of itself. `basic` tells how it takes the client's secret: in a header, or in the form."""

    authorization: str
    token: str
    keys: str
    user_info: str
    end_session: str
    basic: bool
    names_issuer: bool


class _WrongError(Exception):
    """The provider's answer cannot be used. The reason is for the log."""


class Provider:
    """The configured provider."""

    def __init__(self, settings: Settings, wrong_tokens: int = rpc.Settings.wrong_tokens) -> None:
        self.settings = settings
        self._failures = rpc.Failures(wrong_tokens, what="failed sign-in")
        self._asking = asyncio.Lock()
        self._document: _Document | None = None
        self._away = ""
        self._until = 0.0
        self._tls: ssl.SSLContext | None = None

    # -- what pages ask ----------------------------------------------------------------------------------------------

    async def trouble(self) -> str:
        """Why nobody can sign in with the provider now; empty if that is possible."""
        try:
            await self._read_document()
        except AwayError as error:
            return error.message
        return ""

    async def authorization(self, attempt: Attempt, *, again: bool = False) -> str:
        """Where the browser signs in. With `again`, the provider asks who it is, even if it knows.

        Raises AwayError.
        """
        document = await self._read_document()
        query = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": self.settings.redirect_uri,
            "scope": self.settings.scopes,
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": attempt.challenge,
            "code_challenge_method": "S256",
            **({"prompt": "login"} if again else {}),
        }
        return _with_query(document.authorization, query)

    async def finish(self, attempt: Attempt | None, answer: Mapping[str, str], address: str) -> SignedIn:
        """Who signed in, by what the provider sent with the browser.

        Raises InvalidRequestError for an answer to no sign-in of this browser, UnauthenticatedError where the provider
        or its ID token is refused, PermissionDeniedError for somebody without access, LimitReachedError where too many
        attempts from the `address` failed, and AwayError.
        """
        if attempt is None or not hmac.compare_digest(answer.get("state", "").encode(), attempt.state.encode()):
            raise InvalidRequestError("This sign-in has ended or was begun in another window. Sign in again.")
        document = await self._read_document()
        issuer = answer.get("iss")
        if issuer != self.settings.issuer and (issuer is not None or document.names_issuer):
            log.warning("a sign-in was refused: the answer is from another issuer")
            raise self._not_accepted()
        code = answer.get("code", "")
        if "error" in answer or not code:
            raise self._refused(answer.get("error", ""))
        # By its digest: codes of one provider often begin alike, which would count as guesses of one token.
        tried = rpc.token_digest(code)
        self._failures.require(address, tried)
        try:
            return await self._exchange(document, attempt, code)
        except UnauthenticatedError:
            self._failures.failed(address, tried)
            raise

    async def logout_address(self, id_token: str) -> str:
        """Where the browser ends its session at the provider; empty if it does not, or while it does not answer."""
        try:
            document = await self._read_document()
        except AwayError:
            return ""
        if not document.end_session or not self.settings.provider_logout:
            return ""
        query = {
            "client_id": self.settings.client_id,
            "post_logout_redirect_uri": f"{self.settings.pages}/login",
            **({"id_token_hint": id_token} if id_token and len(id_token) <= _LONGEST_HINT else {}),
        }
        return _with_query(document.end_session, query)

    # -- how ---------------------------------------------------------------------------------------------------------

    async def _exchange(self, document: _Document, attempt: Attempt, code: str) -> SignedIn:
        settings = self.settings
        tokens = await self._tokens(document, attempt, code)
        id_token, access_token = str(tokens.get("id_token", "")), str(tokens.get("access_token", ""))
        try:
            # Read for every sign-in, after the token: new keys are known, and withdrawn ones are not.
            key_set = await self._json("GET", document.keys)
            said = claims.verified(id_token, key_set, settings, attempt.nonce, access_token)
            wanted = (settings.user_claim, settings.groups_claim)
            if document.user_info and any(claims.found(said, name) is None for name in wanted):
                said = {**await self._user_info(document, said["sub"], access_token), **said}
        except (claims.RejectedError, _WrongError) as error:
            log.warning("a sign-in was refused: %s", error)
            raise self._not_accepted() from error
        identity = claims.identity(said, settings)
        now = time.time()
        ends_at = now + settings.session_s if settings.session_s else min(float(said["exp"]), now + MOST_SESSION_S)
        log.info("%s has signed in at %s", identity.user, settings.host)
        kept = bool(document.end_session) and settings.provider_logout
        return SignedIn(identity, id_token if kept else "", ends_at)

    async def _tokens(self, document: _Document, attempt: Attempt, code: str) -> Mapping[str, Any]:
        settings = self.settings
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": settings.redirect_uri,
            "code_verifier": attempt.verifier,
        }
        headers = {}
        if settings.client_secret and document.basic:
            # RFC 6749 2.3.1: both parts are encoded as in a form.
            pair = f"{quote_plus(settings.client_id)}:{quote_plus(settings.client_secret)}"
            headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        else:
            form["client_id"] = settings.client_id
            if settings.client_secret:
                form["client_secret"] = settings.client_secret
        try:
            return await self._json("POST", document.token, data=form, headers=headers)
        except _WrongError as error:
            log.warning("a sign-in was refused: %s", error)
            if str(error) in _ENDS:
                raise UnauthenticatedError(f"{settings.host} no longer accepts this sign-in. Sign in again.") from error
            raise self._not_accepted() from error

    async def _user_info(self, document: _Document, subject: str, access_token: str) -> Mapping[str, Any]:
        """Further claims. Raises _WrongError if they are of somebody else."""
        headers = {"Authorization": f"Bearer {access_token}"}
        answer = await self._json("GET", document.user_info, headers=headers)
        if answer.get("sub") != subject:
            raise _WrongError("userinfo is of another subject")
        return answer

    async def _read_document(self) -> _Document:
        """What the provider says of itself, as of the last minute. Raises AwayError."""
        async with self._asking:
            now = time.monotonic()
            if now >= self._until:
                self._away, keeps = "", _KNOWN_S
                try:
                    self._document = self._checked(
                        await self._json("GET", self.settings.issuer.rstrip("/") + _DISCOVERY)
                    )
                except AwayError as error:
                    self._away, keeps = error.message, _AWAY_S
                except _WrongError as error:
                    log.warning("%s cannot be used for signing in: %s", self.settings.host, error)
                    self._away, keeps = f"{self.settings.host} cannot be used for signing in now.", _AWAY_S
                self._until = time.monotonic() + keeps
            if self._away or self._document is None:
                raise AwayError(self._away)
            return self._document

    def _checked(self, answer: Mapping[str, Any]) -> _Document:
        """Raises _WrongError."""
        issuer = self.settings.issuer
        if answer.get("issuer") != issuer:
            raise _WrongError(f"TOUCHSTONE_OIDC_ISSUER is {issuer!r}, but its issuer is {answer.get('issuer')!r:.200}")

        def endpoint(name: str, *, needed: bool = True) -> str:
            address = str(answer.get(name) or "")
            if not address and not needed:
                return ""
            try:
                parts = urlsplit(address)
                # Only a provider on this machine, for trials, may do without TLS.
                if parts.scheme in {"https", urlsplit(issuer).scheme} and parts.hostname:
                    return address
            except ValueError:
                pass
            raise _WrongError(f"{name} is not an https URL")

        methods = answer.get("token_endpoint_auth_methods_supported")
        return _Document(
            authorization=endpoint("authorization_endpoint"),
            token=endpoint("token_endpoint"),
            keys=endpoint("jwks_uri"),
            user_info=endpoint("userinfo_endpoint", needed=False),
            end_session=endpoint("end_session_endpoint", needed=False),
            # Without a list, it is the usual way.
            basic=not isinstance(methods, list) or "client_secret_basic" in methods,
            names_issuer=answer.get("authorization_response_iss_parameter_supported") is True,
        )

    async def _json(self, method: str, address: str, **sent: Any) -> Mapping[str, Any]:
        """The object that the provider answers. Raises AwayError without an answer, and _WrongError for another one:
        the provider's code for the error, or what is wrong."""
        if self._tls is None:
            ca = self.settings.ca
            self._tls = ssl.create_default_context(cafile=ca) if ca else httpx.create_ssl_context()
        body = b""
        try:
            async with (
                asyncio.timeout(_TIMEOUT_S),
                # No redirects: an answer must not choose where a secret is sent.
                httpx.AsyncClient(verify=self._tls, trust_env=False, timeout=_TIMEOUT_S) as client,
                client.stream(method, address, **sent) as answer,
            ):
                async for part in answer.aiter_bytes():
                    body += part
                    if len(body) > _MOST_BYTES:
                        raise _WrongError("the answer is too long")
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            log.warning("%s does not answer: %s", self.settings.host, type(error).__name__)
            raise self._silent() from error
        if answer.status_code >= 500:
            log.warning("%s fails with HTTP status %d", self.settings.host, answer.status_code)
            raise self._silent()
        try:
            found = json.loads(body)
        except ValueError:
            found = None
        if answer.is_success and isinstance(found, dict):
            return found
        code = found.get("error") if isinstance(found, dict) else None
        raise _WrongError(code[:80] if isinstance(code, str) else f"HTTP status {answer.status_code} without JSON")

    # -- what people read --------------------------------------------------------------------------------------------

    def _silent(self) -> AwayError:
        return AwayError(f"{self.settings.host} does not answer.")

    def _not_accepted(self) -> UnauthenticatedError:
        return UnauthenticatedError(
            f"Touchstone does not accept the answer of {self.settings.host}. The gateway's log says why."
        )

    def _refused(self, code: str) -> UnauthenticatedError:
        """For an error that the provider sends with the browser, which is not shown: anybody can write it."""
        log.warning("%s refuses a sign-in: %.80r", self.settings.host, code)
        if code == "access_denied":
            return UnauthenticatedError(f"{self.settings.host} did not let you in, or you cancelled there.")
        return UnauthenticatedError(f"{self.settings.host} did not complete the sign-in. Try again.")


def _with_query(address: str, query: Mapping[str, str]) -> str:
    return f"{address}{'&' if urlsplit(address).query else '?'}{urlencode(query)}"


def _base64(digest: bytes) -> str:
    return urlsafe_b64encode(digest).rstrip(b"=").decode()
