"""ID tokens: which are accepted, whom they name, and which role groups give."""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwk, jws, jwt
from joserfc.registry import HeaderParameter

from services.errors import PermissionDeniedError
from services.gateway.access import claims
from services.gateway.access.oidc_settings import Settings
from tests.gateway.oidc_provider import base64url, elliptic, unsigned
from touchstone.v1 import token_pb2

NOW = 1_800_000_000
ISSUER, CLIENT, NONCE, ACCESS = "https://login.example/realm", "touchstone", "n-1", "at-1"
USUAL = {"iss": ISSUER, "aud": CLIENT, "sub": "u-1", "nonce": NONCE, "exp": NOW + 300, "iat": NOW}
MANY = [CLIENT, "another"]


def settings(**changes: Any) -> Settings:
    usual: dict[str, Any] = {
        "issuer": ISSUER,
        "client_id": CLIENT,
        "pages": "https://touchstone.example",
        "user_groups": frozenset({"bench"}),
        "admin_groups": frozenset({"ops"}),
    }
    return Settings(**usual | changes)


@cache
def rsa() -> jwk.RSAKey:
    return jwk.RSAKey.generate_key(2048, {"kid": "rsa"})


def signed(said: dict[str, Any], key: Any, algorithm: str = "ES256", **header: Any) -> str:
    return jwt.encode({"alg": algorithm, "kid": key.kid, **header}, said, key, registry=_registry(algorithm))


def _registry(algorithm: str) -> Any:
    own = {"mine": HeaderParameter("Of the provider", "int")}
    return jws.JWSRegistry(own, [algorithm], strict_check_header=False)


def verified(text: str, *keys: Any, **more: Any) -> claims.Claims:
    published = [key.as_dict(private=False) if hasattr(key, "as_dict") else key for key in keys]
    return claims.verified(text, {"keys": published, **more}, settings(), NONCE, ACCESS, NOW)


def without(**changes: Any) -> dict[str, Any]:
    """The usual claims with these changes; None removes one."""
    return {name: value for name, value in {**USUAL, **changes}.items() if value is not None}


@pytest.mark.parametrize(
    ("changes", "accepted"),
    [
        ({}, True),
        ({"nonce": "n-2"}, False),
        ({"nonce": None}, False),
        ({"nonce": [NONCE]}, False),
        ({"iss": "https://login.example"}, False),
        ({"iss": f"{ISSUER}/"}, False),
        ({"iss": None}, False),
        ({"aud": "another"}, False),
        ({"aud": ["another"]}, False),
        ({"aud": []}, False),
        ({"aud": None}, False),
        ({"aud": [CLIENT]}, True),
        ({"aud": MANY}, False),
        ({"aud": MANY, "azp": "another"}, False),
        ({"aud": MANY, "azp": CLIENT}, True),
        ({"azp": CLIENT}, True),
        ({"azp": "another"}, False),
        ({"exp": NOW - claims.LEEWAY_S + 1}, True),
        ({"exp": NOW - claims.LEEWAY_S}, False),
        # However large the leeway: nobody signs in with what ended minutes ago.
        ({"exp": NOW - 120}, False),
        ({"exp": None}, False),
        ({"exp": "tomorrow"}, False),
        ({"exp": True}, False),
        ({"iat": NOW + claims.LEEWAY_S}, True),
        ({"iat": NOW + claims.LEEWAY_S + 1}, False),
        ({"iat": NOW + 120}, False),
        ({"iat": None}, False),
        ({"nbf": NOW + claims.LEEWAY_S + 1}, False),
        ({"sub": None}, False),
        ({"sub": ""}, False),
        ({"sub": 7}, False),
        ({"at_hash": base64url(claims._HASHES["256"](b"at-1").digest()[:16])}, True),
        ({"at_hash": base64url(claims._HASHES["256"](b"at-1").digest())}, False),
        ({"at_hash": ""}, False),
        ({"at_hash": None, "c_hash": "any"}, True),
    ],
)
def test_claims_are_checked(changes: dict[str, Any], accepted: bool) -> None:
    key = elliptic("one")
    text = signed(without(**changes), key)
    if accepted:
        assert verified(text, key) == without(**changes)
        return
    with pytest.raises(claims.RejectedError) as refused:
        verified(text, key)
    named = "azp" if "azp" in changes or changes == {"aud": MANY} else next(iter(changes))
    assert str(refused.value).startswith(named)


@pytest.mark.parametrize("algorithm", claims.ALGORITHMS)
def test_signatures_by_private_keys_are_accepted(algorithm: str) -> None:
    curve = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}.get(algorithm)
    key: Any = elliptic("ec", curve) if curve else rsa()
    digest = claims._HASHES[algorithm[2:]](ACCESS.encode()).digest()
    said = without(at_hash=base64url(digest[: len(digest) // 2]))
    text = signed(said, key, algorithm, **{"x-of-the-provider": 1})
    assert verified(text, {"kty": "AKP", "kid": "new"}, {"kty": "EC", "kid": "broken"}, "text", key) == said
    with pytest.raises(claims.RejectedError, match="at_hash"):
        verified(signed(without(at_hash="AAAA"), key, algorithm), key)


def _changed(text: str) -> str:
    head, _, signature = text.split(".")
    return f"{head}.{base64url(b'{}')}.{signature}"


def _one() -> jwk.ECKey:
    return elliptic("one")


def _published(**changes: str) -> dict[str, Any]:
    return {**_one().as_dict(private=False), **changes}


def _with_secret(secret: bytes, kid: str) -> str:
    said = ".".join(base64url(json.dumps(part).encode()) for part in ({"alg": "HS256", "kid": kid}, USUAL))
    return f"{said}.{base64url(hmac.digest(secret, said.encode(), 'sha256'))}"


REFUSED: dict[str, Callable[[], tuple[str, list[Any]]]] = {
    "without a signature": lambda: (unsigned({"kid": "one"}, USUAL), [_one()]),
    "with a secret": lambda: (
        _with_secret(b"x" * 64, "shared"),
        [_one(), {"kty": "oct", "k": base64url(b"x" * 64), "kid": "shared"}],
    ),
    "with a public key as the secret": lambda: (_with_secret(rsa().as_pem(private=False), "rsa"), [rsa()]),
    "with another key of the same name": lambda: (signed(USUAL, elliptic("one", fresh=True)), [_one()]),
    "with a key that is not published": lambda: (signed(USUAL, elliptic("two")), [_one()]),
    "with a key for encryption": lambda: (signed(USUAL, _one()), [_published(use="enc")]),
    "with a key for another algorithm": lambda: (signed(USUAL, _one()), [_published(alg="ES512")]),
    "with another algorithm than the key's": lambda: (signed(USUAL, rsa(), "RS256", kid="one"), [_one(), rsa()]),
    "without a name of its key, of which there are two": lambda: (
        jwt.encode({"alg": "ES256"}, USUAL, _one()),
        [_one(), elliptic("two")],
    ),
    "changed after it was signed": lambda: (_changed(signed(USUAL, _one())), [_one()]),
    "with a header that must be understood": lambda: (signed(USUAL, _one(), crit=["mine"], mine=1), [_one()]),
    "without keys": lambda: (signed(USUAL, _one()), []),
    "of two parts": lambda: ("a.b", [_one()]),
    "not of JSON": lambda: ("a.b.c", [_one()]),
    "empty": lambda: ("", [_one()]),
    "not of ASCII": lambda: ("\ud800.b.c", [_one()]),
    "too long": lambda: (signed(without(x="x" * 200_000), _one()), [_one()]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_provider_did_not_sign_is_refused(name: str) -> None:
    text, keys = REFUSED[name]()
    with pytest.raises(claims.RejectedError) as refused:
        verified(text, *keys)
    assert "u-1" not in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("key_set", [{}, {"keys": None}, {"keys": {"a": 1}}])
def test_a_key_set_of_another_form_has_no_keys(key_set: dict[str, Any]) -> None:
    with pytest.raises(claims.RejectedError):
        claims.verified(signed(USUAL, elliptic("one")), key_set, settings(), NONCE, ACCESS, NOW)


def test_the_time_is_now() -> None:
    key = elliptic("one")
    text = signed(without(exp=int(time.time()) + 60, iat=int(time.time())), key)
    assert claims.verified(text, {"keys": [key.as_dict(private=False)]}, settings(), NONCE, ACCESS)["sub"] == "u-1"


@pytest.mark.parametrize(
    ("changes", "said", "user", "admin"),
    [
        ({}, {"groups": ["x", "ops"]}, "oidc:u-1", True),
        ({}, {"groups": ["ops", "bench"]}, "oidc:u-1", True),
        ({}, {"groups": ["bench", 7, None]}, "oidc:u-1", False),
        ({}, {"groups": "bench"}, "oidc:u-1", False),
        ({"user_groups": frozenset("*")}, {}, "oidc:u-1", False),
        ({"user_groups": frozenset("*")}, {"groups": ["ops"]}, "oidc:u-1", True),
        ({"groups_claim": "realm.roles"}, {"realm": {"roles": ["bench"]}}, "oidc:u-1", False),
        ({"groups_claim": "a.b.c.roles"}, {"a": {"b.c": {"roles": ["ops"]}}}, "oidc:u-1", True),
        ({"groups_claim": "https://a.example/r"}, {"https://a.example/r": ["ops"]}, "oidc:u-1", True),
        ({"groups_claim": "a.b"}, {"a.b": ["ops"], "a": {"b": ["bench"]}}, "oidc:u-1", True),
        ({"user_claim": "name"}, {"name": "jürgen b/c", "groups": "bench"}, "oidc:j%C3%BCrgen%20b%2Fc", False),
        ({"user_claim": "sub"}, {"sub": "auth0|7:x=1", "groups": "bench"}, "oidc:auth0|7:x=1", False),
        ({"user_claim": "a.b"}, {"a": {"b": "\ud800"}, "groups": "bench"}, "oidc:%ED%A0%80", False),
        (
            {"user_claim": "email"},
            {"email": "a+b@c.example", "email_verified": True, "groups": "bench"},
            "oidc:a+b@c.example",
            False,
        ),
    ],
)
def test_claims_say_who_it_is_and_groups_give_the_role(
    changes: dict[str, Any], said: dict[str, Any], user: str, admin: bool
) -> None:
    found = claims.identity({"sub": "u-1", **said}, settings(**changes))
    assert (found.user, found.role) == (user, token_pb2.ROLE_ADMIN if admin else token_pb2.ROLE_USER)


@pytest.mark.parametrize(
    ("changes", "said", "sentence"),
    [
        (
            {},
            {"groups": ["others", "Bench", "benches", "operators"]},
            "as u-1, but none of your groups has access to Touchstone.",
        ),
        ({}, {}, "none of your groups has access"),
        ({}, {"groups": [["bench"], {"bench": 1}]}, "none of your groups has access"),
        ({}, {"groups": {"bench": 1}}, "none of your groups has access"),
        ({"groups_claim": "a.b"}, {"a": ["bench"]}, "none of your groups has access"),
        ({"user_groups": frozenset()}, {"groups": ["bench", ""]}, "none of your groups has access"),
        ({"user_claim": "email"}, {"email": "a@b.example"}, "has not verified the email address a@b.example."),
        ({"user_claim": "email"}, {"email": "a@b.example", "email_verified": "true"}, "has not verified"),
        ({"user_claim": "name"}, {"groups": "ops"}, "does not say who you are: name is missing."),
        ({"user_claim": "name"}, {"name": ["ops"], "groups": "ops"}, "does not say who you are"),
        ({"user_claim": "name"}, {"name": "x" * 256, "groups": "ops"}, "does not say who you are"),
    ],
)
def test_somebody_without_access_reads_why(changes: dict[str, Any], said: dict[str, Any], sentence: str) -> None:
    with pytest.raises(PermissionDeniedError) as refused:
        claims.identity({"sub": "u-1", **said}, settings(**changes))
    assert sentence in refused.value.message


_NAMES = st.text(alphabet="aA%2/ :|@é\n\ud800", min_size=1, max_size=4)


@given(_NAMES, _NAMES)
def test_different_names_are_different_users(one: str, other: str) -> None:
    """And each is a name that can be sent, with no user of a token among them whom an admin did not name so."""
    assert (claims.user_name(one) == claims.user_name(other)) == (one == other)
    name = claims.user_name(one)
    assert name.startswith("oidc:")
    assert name.isascii()
    assert name.isprintable()
    assert " " not in name
