"""What the gateway and a provider say to each other, over loopback."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from services.errors import (
    AwayError,
    InvalidRequestError,
    LimitReachedError,
    PermissionDeniedError,
    TouchstoneError,
    UnauthenticatedError,
)
from services.gateway.access import oidc
from tests.gateway.gateway_server import NO_TLS
from tests.gateway.oidc_provider import CLIENT, Provider, elliptic, provider, unsigned

ADDRESS = "192.0.2.1"
PAGES = "http://127.0.0.1:8080"


@pytest.fixture
async def issued() -> AsyncIterator[Provider]:
    async with provider() as started:
        yield started


@pytest.fixture
def forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question reads the discovery document again."""
    monkeypatch.setattr(oidc, "_KNOWN_S", 0)
    monkeypatch.setattr(oidc, "_AWAY_S", 0)


def asker(issued: Provider, **changes: Any) -> oidc.Provider:
    made = oidc.Provider(issued.settings(pages=PAGES, **changes))
    made._tls = NO_TLS
    return made


async def answer_of(asks: oidc.Provider, attempt: oidc.Attempt, **more: Any) -> dict[str, str]:
    """What the provider gives the browser to bring back."""
    async with httpx.AsyncClient(trust_env=False, verify=NO_TLS) as browser:
        sent = await browser.get(await asks.authorization(attempt, **more))
    assert sent.status_code == 302, sent.text
    back = urlsplit(sent.headers["location"])
    assert f"{back.scheme}://{back.netloc}{back.path}" == f"{PAGES}/login/callback"
    return dict(parse_qsl(back.query))


async def signed_in(asks: oidc.Provider, **changes: str | None) -> oidc.SignedIn:
    """Signs in. `changes` replace what the browser brings back, or remove it."""
    attempt = oidc.Attempt.begin("/")
    answer = {**await answer_of(asks, attempt), **changes}
    return await asks.finish(attempt, {name: value for name, value in answer.items() if value is not None}, ADDRESS)


async def test_the_way_to_the_provider_has_a_secret_of_its_own_each_time(issued: Provider) -> None:
    asks = asker(issued, scopes="openid groups")
    for again in (False, True):
        await answer_of(asks, oidc.Attempt.begin("/"), again=again)
    first, second = issued.asked
    drawn = {query[name] for query in (first, second) for name in ("state", "nonce", "code_challenge")}
    assert len(drawn) == 6
    assert all(len(one) == 43 for one in drawn)
    assert (first["scope"], first["client_id"], first.get("prompt")) == ("openid groups", CLIENT, None)
    assert second["prompt"] == "login"


async def test_a_session_lasts_as_long_as_settings_or_the_id_token_say(issued: Provider) -> None:
    found = await signed_in(asker(issued, session_s=3600))
    assert found.ends_at == pytest.approx(time.time() + 3600, abs=120)
    issued.changes = {"exp": int(time.time()) + 90}
    assert (await signed_in(asker(issued, session_s=0))).ends_at == issued.changes["exp"]
    issued.changes = {"exp": int(time.time()) + 10**9}
    assert (await signed_in(asker(issued, session_s=0))).ends_at < time.time() + 8 * 86_400


async def test_claims_that_the_id_token_has_not_come_from_userinfo(issued: Provider) -> None:
    issued.person = {"sub": "u-1"}
    issued.user_info = {"groups": ["ops"], "name": "Ada"}
    found = await signed_in(asker(issued, user_claim="name"))
    assert (found.identity.user, found.identity.is_admin) == ("oidc:Ada", True)
    # What the ID token says counts first, and nothing of somebody else.
    issued.person = {"sub": "u-1", "groups": ["bench"]}
    assert not (await signed_in(asker(issued, user_claim="name"))).identity.is_admin
    issued.user_info["sub"] = "u-2"
    with pytest.raises(UnauthenticatedError):
        await signed_in(asker(issued, user_claim="name"))
    issued.document = {"userinfo_endpoint": None}
    with pytest.raises(PermissionDeniedError):
        await signed_in(asker(issued, user_claim="name"))


@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        ({"error": "access_denied"}, UnauthenticatedError, "did not let you in, or you cancelled there."),
        ({"error": "<script>"}, UnauthenticatedError, "did not complete the sign-in. Try again."),
        ({"code": None}, UnauthenticatedError, "did not complete the sign-in. Try again."),
        ({"code": "guess"}, UnauthenticatedError, "no longer accepts this sign-in. Sign in again."),
        ({"iss": "https://evil.example"}, UnauthenticatedError, "does not accept the answer"),
        ({"iss": None}, UnauthenticatedError, "does not accept the answer"),
        ({"state": "guess"}, InvalidRequestError, "has ended or was begun in another window."),
        ({"state": None}, InvalidRequestError, "has ended"),
    ],
)
async def test_what_the_browser_brings_back_is_checked_and_not_shown(
    issued: Provider, changes: dict[str, str | None], error: type[TouchstoneError], sentence: str
) -> None:
    with pytest.raises(error) as refused:
        await signed_in(asker(issued), **changes)
    assert sentence in refused.value.message
    for text in ("guess", "script", "evil"):
        assert text not in refused.value.message


async def test_an_issuer_that_is_not_promised_may_be_missing(issued: Provider) -> None:
    issued.document = {"authorization_response_iss_parameter_supported": None}
    assert (await signed_in(asker(issued), iss=None)).identity.user == "oidc:u-1"
    with pytest.raises(UnauthenticatedError):
        await signed_in(asker(issued), iss="https://evil.example")


async def test_a_code_belongs_to_its_sign_in(issued: Provider) -> None:
    """By PKCE: the provider takes a code with its verifier alone, which the other browser has not. By the nonce: where
    the provider does not look at it, the ID token is of another sign-in."""
    asks = asker(issued)
    stolen = (await answer_of(asks, oidc.Attempt.begin("/")))["code"]
    with pytest.raises(UnauthenticatedError, match="no longer accepts"):
        await signed_in(asks, code=stolen)
    attempt = oidc.Attempt.begin("/")
    answer = await answer_of(asks, attempt)
    other = oidc.Attempt.begin("/")
    issued.codes[answer["code"]]["code_challenge"] = other.challenge
    with pytest.raises(UnauthenticatedError, match="does not accept the answer"):
        await asks.finish(other, {**answer, "state": other.state}, ADDRESS)


async def test_many_failures_from_one_address_have_to_wait(issued: Provider) -> None:
    """After as many as for tokens. Codes of one provider may begin alike."""
    asks = oidc.Provider(issued.settings(pages=PAGES), wrong_tokens=8)
    asks._tls = NO_TLS
    for number in range(9):
        with pytest.raises(UnauthenticatedError):
            await signed_in(asks, code=f"0.AXoA-code-{number}")
    with pytest.raises(LimitReachedError, match="Too many failed sign-ins came from your address"):
        await signed_in(asks, code="0.AXoA-code-9")
    attempt = oidc.Attempt.begin("/")
    found = await asks.finish(attempt, await answer_of(asks, attempt), "198.51.100.7")
    assert found.identity.user == "oidc:u-1"


async def test_new_keys_are_known_at_once_and_withdrawn_ones_no_more(issued: Provider) -> None:
    asks = asker(issued)
    await signed_in(asks)
    first, issued.key = issued.key, elliptic("second")
    await signed_in(asks)
    issued.published, issued.key = [elliptic("first", fresh=True), issued.key], first
    with pytest.raises(UnauthenticatedError):
        await signed_in(asks)
    issued.published = [issued.published[1]]
    with pytest.raises(UnauthenticatedError):
        await signed_in(asks)


@pytest.mark.parametrize("way", ["header", "form", "public"])
async def test_the_client_says_who_it_is_as_the_provider_wants(issued: Provider, way: str) -> None:
    if way == "form":
        issued.document = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    if way == "public":
        issued.secret = ""
    await signed_in(asker(issued))
    assert issued.ways == [way]


async def test_a_wrong_secret_is_for_the_log(issued: Provider, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(UnauthenticatedError, match="does not accept the answer"):
        await signed_in(asker(issued, client_secret="very-secret"))
    assert "invalid_client" in caplog.text
    assert "very-secret" not in caplog.text


async def test_a_refused_id_token_is_named_in_the_log_without_its_text(
    issued: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    issued.person["phone_number"] = "555-0100"
    for changes, signed, reason in (
        ({"nonce": "n"}, None, "nonce is not that of the sign-in"),
        ({"aud": "another"}, None, "aud: \"invalid_claim: Invalid claim: 'aud'\""),
        ({}, unsigned, "UnsupportedAlgorithmError: \"unsupported_algorithm: Algorithm of 'none' is not allowed\""),
    ):
        issued.changes, issued.signed = changes, signed
        with pytest.raises(UnauthenticatedError, match="does not accept the answer of 127"):
            await signed_in(asker(issued))
        assert f"a sign-in was refused: {reason}" in caplog.text
    assert "555-0100" not in caplog.text


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"issuer": "https://other.example"}, "but its issuer is 'https://other.example'"),
        ({"issuer": None}, "but its issuer is None"),
        ({"authorization_endpoint": None}, "authorization_endpoint is not an https URL"),
        ({"token_endpoint": "https:///token"}, "token_endpoint is not an https URL"),
        ({"token_endpoint": "https://["}, "token_endpoint is not an https URL"),
        ({"token_endpoint": 7}, "token_endpoint is not an https URL"),
        ({"jwks_uri": "ftp://a/keys"}, "jwks_uri is not an https URL"),
        ({"userinfo_endpoint": "javascript:1"}, "userinfo_endpoint is not an https URL"),
    ],
)
async def test_a_provider_that_is_set_up_otherwise_is_not_used(
    issued: Provider, caplog: pytest.LogCaptureFixture, document: dict[str, Any], reason: str
) -> None:
    issued.document = document
    asks = asker(issued)
    assert await asks.trouble() == f"127.0.0.1:{issued.port} cannot be used for signing in now."
    with pytest.raises(AwayError):
        await asks.authorization(oidc.Attempt.begin("/"))
    assert caplog.text.count(reason) == 1


@pytest.mark.parametrize("failure", ["500", "404", "redirect", "long", "text", "list"])
async def test_what_is_no_answer_is_seen(issued: Provider, failure: str) -> None:
    issued.failure = failure
    assert await asker(issued).trouble()


@pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"])
def test_a_provider_with_tls_names_no_endpoint_without(name: str) -> None:
    issuer = "https://login.example"
    asks = oidc.Provider(Provider().settings(pages=PAGES, issuer=issuer))
    said = {other: f"{issuer}/{other}" for other in ("authorization_endpoint", "token_endpoint", "jwks_uri")}
    assert asks._checked({"issuer": issuer, **said}).token == f"{issuer}/token_endpoint"
    with pytest.raises(oidc._WrongError, match=f"{name} is not an https URL"):
        asks._checked({"issuer": issuer, **said, name: f"http://login.example/{name}"})


@pytest.mark.usefixtures("forgets")
async def test_a_provider_that_comes_back_is_used_again(issued: Provider) -> None:
    asks = asker(issued)
    await issued.stop()
    assert await asks.trouble() == f"127.0.0.1:{issued.port} does not answer."
    assert await asks.logout_address("") == ""
    await issued.start()
    assert await asks.trouble() == ""
    attempt = oidc.Attempt.begin("/")
    answer = await answer_of(asks, attempt)
    await issued.stop()
    with pytest.raises(AwayError):
        await asks.finish(attempt, answer, ADDRESS)


async def test_what_the_provider_says_of_itself_is_asked_once_a_minute(issued: Provider) -> None:
    asks = asker(issued)
    for _ in range(3):
        assert await asks.trouble() == ""
    assert issued.documents == 1


async def test_the_way_out(issued: Provider) -> None:
    asks = asker(issued)
    address = urlsplit(await asks.logout_address("h.p.s"))
    assert dict(parse_qsl(address.query)) == {
        "client_id": CLIENT,
        "post_logout_redirect_uri": f"{PAGES}/login",
        "id_token_hint": "h.p.s",
    }
    # Servers refuse long addresses, and the hint is not required.
    assert "id_token_hint" not in await asks.logout_address("x" * 5000)
    assert (await signed_in(asks)).id_token
    for other in (asker(issued, provider_logout=False), asker(issued)):
        assert await other.logout_address("h.p.s") == ""
        assert (await signed_in(other)).id_token == ""
        issued.document = {"end_session_endpoint": None}


async def test_an_endpoint_may_have_a_query(issued: Provider) -> None:
    issued.document = {"authorization_endpoint": f"{issued.issuer}/authorize?p=policy"}
    await answer_of(asker(issued), oidc.Attempt.begin("/"))
    assert issued.asked[0]["p"] == "policy"
