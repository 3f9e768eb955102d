"""What an ID token says, once it is proved to come from the provider and to be meant for this sign-in.

`joserfc` is imported where it is used: only an installation with a provider needs it.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from services import rpc
from services.errors import PermissionDeniedError
from services.gateway.access.oidc_settings import EVERYBODY, Settings
from touchstone.v1 import token_pb2

Claims = Mapping[str, Any]

USER_PREFIX = "oidc:"
"""Begins the name of everybody whom the provider identifies."""
ALGORITHMS = tuple(f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512))
"""Signatures that only the holder of a private key can make. Neither `none` nor the HS family is among them."""
LEEWAY_S = 30
"""How far the clocks of provider and gateway may differ."""
_KEY_TYPES = ("RSA", "EC")
_HASHES = {"256": hashlib.sha256, "384": hashlib.sha384, "512": hashlib.sha512}
_LONGEST_NAME = 255
_IN_NAMES = "@+|:="
"""Signs that names keep, in addition to letters, digits and `_.-~`."""
_SHOWN = 200


class RejectedError(Exception):
    """An ID token that is not accepted. The reason is for the log, and holds nothing of the token but claims."""


def verified(
    id_token: str,
    key_set: Claims,
    settings: Settings,
    nonce: str,
    access_token: str,
    now: float | None = None,
) -> Claims:
    """The claims of an ID token, as OpenID Connect Core 3.1.3.7 has them checked. `key_set` is the provider's JWKS.

    Raises RejectedError.
    """
    from joserfc import jws, jwt
    from joserfc.errors import JoseError

    now = time.time() if now is None else now
    try:
        # Header parameters that nobody knows must be ignored, unless `crit` lists them.
        registry = jws.JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
        token = jwt.decode(id_token, _keys(key_set), registry=registry)
        jwt.JWTClaimsRegistry(
            now=int(now),
            leeway=LEEWAY_S,
            iss={"essential": True, "value": settings.issuer},
            sub={"essential": True},
            aud={"essential": True, "value": settings.client_id},
            exp={"essential": True},
            iat={"essential": True},
        ).validate(token.claims)
    except (JoseError, ValueError, TypeError, KeyError) as error:
        claim = getattr(error, "claim", type(error).__name__)
        raise RejectedError(f"{claim}: {str(error)[:_SHOWN]!r}") from error
    claims = token.claims
    audience = claims["aud"]
    several = isinstance(audience, list) and len(audience) > 1
    if claims.get("azp", None if several else settings.client_id) != settings.client_id:
        raise RejectedError("azp is missing or names another client")
    if not _equal(claims.get("nonce"), nonce):
        raise RejectedError("nonce is not that of the sign-in")
    if "at_hash" in claims and not _equal(claims["at_hash"], _at_hash(access_token, token.header["alg"])):
        raise RejectedError("at_hash does not fit the access token")
    return claims


def _keys(key_set: Claims) -> Any:
    """The provider's public keys for signatures. What cannot be read as one is left out."""
    from joserfc import jwk
    from joserfc.errors import JoseError

    keys = []
    listed = key_set.get("keys")
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, dict) and one.get("kty") in _KEY_TYPES and one.get("use", "sig") == "sig":
            with suppress(JoseError, ValueError, TypeError, KeyError):
                keys.append(jwk.import_key(one))
    return jwk.KeySet(keys)


def _equal(given: object, wanted: str) -> bool:
    return isinstance(given, str) and hmac.compare_digest(given.encode(), wanted.encode())


def _at_hash(access_token: str, algorithm: str) -> str:
    digest = _HASHES[algorithm[2:]](access_token.encode()).digest()
    return urlsafe_b64encode(digest[: len(digest) // 2]).rstrip(b"=").decode()


def found(claims: Claims, name: str) -> Any:
    """The claim of this name, or that to which its dots lead, such as `realm_access.roles`; None without one.

    Names may have dots themselves, so the longest name that is there counts.
    """
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        value = claims.get(".".join(parts[:count]))
        if value is None:
            continue
        if count == len(parts):
            return value
        inner = found(value, ".".join(parts[count:])) if isinstance(value, dict) else None
        if inner is not None:
            return inner
    return None


def identity(claims: Claims, settings: Settings) -> rpc.Identity:
    """Who the claims say this is. Raises PermissionDeniedError, for the user to read, where there is no access."""
    name = found(claims, settings.user_claim)
    if not isinstance(name, str) or not name or len(name) > _LONGEST_NAME:
        raise PermissionDeniedError(
            f"{settings.host} does not say who you are: {settings.user_claim} is missing. "
            "Ask the people who run Touchstone."
        )
    if settings.user_claim == "email" and claims.get("email_verified") is not True:
        raise PermissionDeniedError(
            f"{settings.host} has not verified the email address {name}. Verify it there, then sign in again."
        )
    role = _role(claims, settings)
    if role is None:
        raise PermissionDeniedError(
            f"You are signed in at {settings.host} as {name}, but none of your groups has access to Touchstone. "
            "Ask the people who run Touchstone, then sign in again."
        )
    return rpc.Identity(user_name(name), role)


def user_name(name: str) -> str:
    """The user of Touchstone whom the provider calls `name`. Different names never give the same user."""
    return USER_PREFIX + quote(name, safe=_IN_NAMES, errors="surrogatepass")


def _role(claims: Claims, settings: Settings) -> token_pb2.Role | None:
    value = found(claims, settings.groups_claim)
    groups = {one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)}
    if groups & settings.admin_groups:
        return token_pb2.ROLE_ADMIN
    if groups & settings.user_groups or EVERYBODY in settings.user_groups:
        return token_pb2.ROLE_USER
    return None
