"""Logging in with an OpenID Connect provider: who gets in as what, what is refused, how sessions end."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import pytest
from joserfc import jws, jwt

from services import bus, rpc
from services.gateway.access import oidc, tokens
from tests.gateway.gateway_server import NO_TLS, Running
from tests.gateway.oidc_provider import CLIENT, Provider, elliptic, provider, unsigned
from tests.gateway.test_access import with_tokens
from tests.gateway.test_rest_run import DOCUMENT
from tests.nats_server import NatsServer

HTML = {"Accept": "text/html"}
CLAIMS = ("nonce", "iss", "aud", "exp")
NOT_ACCEPTED = "Touchstone does not accept the answer of 127.0.0.1"


@asynccontextmanager
async def with_provider(nats: NatsServer, issued: Provider, **changes: Any) -> AsyncIterator[tuple[Running, bus.Bus]]:
    async with with_tokens(nats, oidc=issued.settings(**changes)) as (gateway, nats_bus):
        yield gateway, nats_bus


@pytest.fixture
async def issued() -> AsyncIterator[Provider]:
    async with provider() as started:
        yield started


async def way_back(gateway: Running, begin: str = "/login/oidc") -> str:
    """Goes to the provider; returns the address to which it sends the browser back."""
    sent = await gateway.client.get(begin, headers=HTML)
    assert sent.status_code == 303, sent.text
    async with httpx.AsyncClient(trust_env=False, verify=NO_TLS) as other:
        answer = await other.get(sent.headers["location"])
    assert answer.status_code == 302, answer.text
    return answer.headers["location"]


async def signed_in(gateway: Running, begin: str = "/login/oidc") -> httpx.Response:
    return await gateway.client.get(await way_back(gateway, begin), headers=HTML)


async def test_a_browser_signs_in_and_comes_back_to_the_page_that_was_asked_for(
    nats: NatsServer, issued: Provider
) -> None:
    async with with_provider(nats, issued) as (gateway, _):
        asked = await gateway.client.get("/jobs?model=a%26b", headers=HTML)
        page = await gateway.client.get(asked.headers["location"])
        (link,) = re.findall(r'href="(/login/oidc[^"]*)"', page.text)
        assert f"Sign in with 127.0.0.1:{issued.port}" in page.text
        answer = await signed_in(gateway, link)
        assert (answer.status_code, answer.headers["location"]) == (303, "/jobs?model=a%26b")
        cookies = answer.headers.get_list("set-cookie")
        assert any(one.startswith("touchstone=") and "HttpOnly" in one and "SameSite=lax" in one for one in cookies)
        assert any(one.startswith('touchstone-login=""') and "Max-Age=0" in one for one in cookies)
        page = await gateway.client.get("/run", headers=HTML)
        assert "oidc:u-1" in page.text
        found = re.search(r'name="csrf" value="([^"]+)"', page.text)
        assert found is not None
        own = {"Origin": gateway.url, "X-CSRF-Token": found[1]}
        start = "/api/v1/benchmarking/run"
        assert (await gateway.client.post(start, json=DOCUMENT, headers={"Origin": gateway.url})).status_code == 403
        assert (await gateway.client.post(start, json=DOCUMENT, headers=own)).status_code == 200
        assert [(who.user, who.is_admin) for who in gateway.world.callers] == [("oidc:u-1", False)]
        (query,) = issued.asked
        assert query["redirect_uri"] == f"{gateway.url}/login/callback"
        assert query["scope"] == "openid profile email"
        assert len({query["state"], query["nonce"], query["code_challenge"]}) == 3
        assert all(len(query[name]) == 43 for name in ("state", "nonce", "code_challenge"))


async def test_an_answer_counts_once_and_for_the_browser_that_asked(nats: NatsServer, issued: Provider) -> None:
    async with with_provider(nats, issued) as (gateway, _):
        ended = "This sign-in has ended or was begun in another window. Sign in again."
        back = await way_back(gateway, "/login/oidc?next=/jobs")
        kept = gateway.client.cookies["touchstone-login"]
        async with httpx.AsyncClient(trust_env=False, verify=NO_TLS) as thief:
            page = await thief.get(back, headers=HTML)
            assert (page.status_code, ended in page.text) == (400, True)
            # Neither does a sign-in that somebody else has begun.
            other = (await thief.get(f"{gateway.url}/login/oidc")).cookies["touchstone-login"]
            thief.cookies.set("touchstone-login", other)
            assert (await thief.get(back, headers=HTML)).status_code == 400
        assert (await gateway.client.get(back, headers=HTML)).status_code == 303
        gateway.client.cookies.delete("touchstone")
        again = await gateway.client.get(back, headers=HTML)
        assert (again.status_code, ended in again.text) == (400, True)
        # Even with the cookie, the provider takes its code only once.
        gateway.client.cookies.set("touchstone-login", kept)
        again = await gateway.client.get(back, headers=HTML)
        assert (again.status_code, "no longer accepts this sign-in" in again.text) == (401, True)
        assert 'href="/login/oidc?next=%2Fjobs"' in again.text
        # An answer to another sign-in, whose nonce differs, fits neither state nor verifier.
        older = await way_back(gateway)
        await way_back(gateway)
        assert (await gateway.client.get(older, headers=HTML)).status_code == 400
        assert "touchstone" not in gateway.client.cookies


async def test_pages_say_what_went_wrong_and_show_nothing_of_what_came(nats: NatsServer, issued: Provider) -> None:
    """What else can be wrong with an ID token or an answer: tests/unit/gateway/access."""
    now = int(time.time())
    async with with_provider(nats, issued) as (gateway, _):
        for wrong in ("nonce", "iss", "aud", "exp", "signature", "key"):
            issued.changes = {wrong: now - 60 if wrong == "exp" else "of-another"} if wrong in CLAIMS else {}
            issued.signed = unsigned if wrong == "signature" else None
            issued.published = [elliptic("first")]
            issued.key = elliptic("first", fresh=wrong == "key")
            page = await signed_in(gateway, "/login/oidc?next=/jobs")
            assert (page.status_code, NOT_ACCEPTED in page.text) == (401, True), wrong
            assert 'href="/login/oidc?next=%2Fjobs"' in page.text
            assert (await gateway.client.get("/jobs", headers=HTML)).status_code == 303
        for query, status, sentence in (
            ({"error": "access_denied"}, 401, "did not let you in, or you cancelled there."),
            ({"error": "<script>alert(1)</script>"}, 401, "did not complete the sign-in. Try again."),
            ({"code": "guess"}, 401, "no longer accepts this sign-in."),
            ({"state": "guess"}, 400, "has ended or was begun in another window."),
        ):
            back = httpx.URL(await way_back(gateway)).copy_merge_params(query)
            page = await gateway.client.get(back, headers=HTML)
            assert (page.status_code, sentence in page.text) == (status, True), query
            assert not [shown for shown in ("guess", "alert(1)", back.params["state"]) if shown in page.text]


async def test_somebody_without_access_may_use_another_account(nats: NatsServer, issued: Provider) -> None:
    issued.person["groups"] = ["others"]
    async with with_provider(nats, issued) as (gateway, _):
        page = await signed_in(gateway, "/login/oidc?next=/jobs")
        assert page.status_code == 403
        assert "as u-1, but none of your groups has access to Touchstone." in page.text
        assert "touchstone" not in gateway.client.cookies
        assert (await gateway.client.get("/jobs", headers=HTML)).status_code == 303
        (again,) = re.findall(r'href="(/login/oidc[^"]*)"', page.text)
        assert 'href="/login?next=%2Fjobs"' in page.text
        issued.person = {"sub": "u-2", "groups": ["ops"]}
        assert (await signed_in(gateway, again.replace("&amp;", "&"))).headers["location"] == "/jobs"
        assert [query.get("prompt") for query in issued.asked] == [None, "login"]
        page = await gateway.client.get("/settings", headers=HTML)
        assert 'class="name">oidc:u-2</span>' in page.text
        assert 'action="/settings/tokens"' in page.text


async def test_signing_in_leads_to_no_other_site_and_not_in_a_circle(nats: NatsServer, issued: Provider) -> None:
    async with with_provider(nats, issued) as (gateway, _):
        for after in ("//evil.example", "https://evil.example", "/\\evil.example", "/login", "/login/oidc"):
            begin = str(httpx.URL("/login/oidc", params={"next": after}))
            assert (await signed_in(gateway, begin)).headers["location"] == "/"
            # Nor does a cookie that somebody has changed.
            back = await way_back(gateway)
            secret = gateway.client.cookies["touchstone-login"].partition(".")[0]
            gateway.client.cookies.clear()
            kept = {"Cookie": f"touchstone-login={secret}.{quote(after, safe='')}"}
            assert (await gateway.client.get(back, headers={**HTML, **kept})).headers["location"] == "/"
        long = "/jobs?model=" + "%25" * 600
        assert (await signed_in(gateway, str(httpx.URL("/login/oidc", params={"next": long})))).status_code == 303


async def test_a_session_ends_after_its_time_and_with_it_what_it_has_begun(nats: NatsServer, issued: Provider) -> None:
    async with with_provider(nats, issued) as (gateway, nats_bus):
        assert (await signed_in(gateway)).status_code == 303
        ((key, stored),) = [pair async for pair in nats_bus.kv_all(bus.SESSIONS)]
        async with gateway.client.stream("GET", "/events") as live:
            assert live.status_code == 200
            # As if its time had come.
            over = json.loads(stored.data or b"") | {"ends_at": time.time()}
            await nats_bus.kv_put(bus.SESSIONS, key, json.dumps(over).encode())
            # The answer breaks off, so that it does not look complete.
            with pytest.raises(httpx.RemoteProtocolError):
                async with asyncio.timeout(60):
                    await live.aread()
        page = await gateway.client.get("/jobs", headers=HTML)
        assert (page.status_code, page.headers["location"]) == (303, "/login?next=%2Fjobs")
        assert (await gateway.client.get("/api/v1/benchmarking/results")).status_code == 401


async def test_a_session_has_its_own_length_and_belongs_to_its_provider(nats: NatsServer, issued: Provider) -> None:
    async with with_provider(nats, issued, session_s=3600) as (gateway, nats_bus):
        assert (await signed_in(gateway)).status_code == 303
        ((_, stored),) = [pair async for pair in nats_bus.kv_all(bus.SESSIONS)]
        session = json.loads(stored.data or b"")
        assert session["ends_at"] == pytest.approx(time.time() + 3600, abs=60)
        cookies = gateway.client.cookies
    # Without the provider in its settings, a gateway knows the session no more.
    async with with_tokens(nats) as (gateway, _):
        gateway.client.cookies = cookies
        assert (await gateway.client.get("/jobs", headers=HTML)).headers["location"] == "/login?next=%2Fjobs"
        assert (await gateway.client.get("/login/oidc")).headers["location"] == "/login"
        assert "or with a token" not in (await gateway.client.get("/login")).text


async def log_out(gateway: Running) -> httpx.Response:
    page = await gateway.client.get("/run", headers=HTML)
    found = re.search(r'name="csrf" value="([^"]+)"', page.text)
    assert found is not None
    return await gateway.client.post("/logout", data={"csrf": found[1]}, headers={"Origin": gateway.url, **HTML})


async def test_signing_out_also_ends_the_session_at_the_provider(nats: NatsServer, issued: Provider) -> None:
    async with with_provider(nats, issued) as (gateway, _):
        await signed_in(gateway)
        session = gateway.client.cookies["touchstone"]
        page = await log_out(gateway)
        (target,) = {one.replace("&amp;", "&") for one in re.findall(r'url=([^"]+)"', page.text)}
        assert page.status_code == 200
        gateway.client.cookies.set("touchstone", session)
        assert (await gateway.client.get("/run", headers=HTML)).status_code == 303
        async with httpx.AsyncClient(trust_env=False, verify=NO_TLS) as other:
            back = (await other.get(target)).headers["location"]
        assert back == f"{gateway.url}/login"
        (query,) = issued.ended
        assert query["client_id"] == CLIENT
        registry = jws.JWSRegistry(algorithms=["ES256"], strict_check_header=False)
        assert jwt.decode(query["id_token_hint"], issued.key, registry=registry).claims["sub"] == "u-1"


async def test_signing_out_while_the_provider_is_away_ends_the_session_here(
    nats: NatsServer, issued: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oidc, "_KNOWN_S", 0)
    async with with_provider(nats, issued) as (gateway, _):
        await signed_in(gateway)
        await issued.stop()
        assert (await log_out(gateway)).headers["location"] == "/login"
        assert (await gateway.client.get("/run", headers=HTML)).status_code == 303


async def test_while_the_provider_is_away_tokens_work_and_the_page_says_so(
    nats: NatsServer, issued: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oidc, "_KNOWN_S", 0)
    monkeypatch.setattr(oidc, "_AWAY_S", 0)
    async with with_provider(nats, issued) as (gateway, nats_bus):
        begun = await way_back(gateway)
        await issued.stop()
        away = f"127.0.0.1:{issued.port} does not answer. Sign in with a token, or try again later."
        page = await gateway.client.get("/login?next=/jobs")
        assert (page.status_code, away in page.text) == (200, True)
        for address in ("/login/oidc?next=/jobs", begun):
            page = await gateway.client.get(address, headers=HTML)
            assert (page.status_code, away in page.text) == (503, True)
            assert page.headers["retry-after"]
        token = await tokens.create(nats_bus, "alice", "user", "a")
        form = {"token": token, "next": "/jobs"}
        assert (await gateway.client.post("/login", data=form, headers={"Origin": gateway.url})).status_code == 303
        page = await gateway.client.get("/jobs")
        assert 'class="name">alice</span>' in page.text
        await issued.start()
        assert "does not answer" not in (await gateway.client.get("/login")).text
        assert (await signed_in(gateway)).status_code == 303


async def test_a_browser_under_another_name_is_sent_to_the_pages_first(nats: NatsServer, issued: Provider) -> None:
    async with with_provider(nats, issued) as (gateway, _):
        elsewhere = f"http://localhost:{urlsplit(gateway.url).port}/login/oidc?next=/jobs&evil=1"
        sent = await gateway.client.get(elsewhere)
        assert sent.headers["location"] == f"{gateway.url}/login/oidc?next=%2Fjobs&here=1"
        # A proxy may ask under another name than browsers do: then this happens once.
        again = await gateway.client.get(f"{elsewhere}&here=1")
        assert again.headers["location"].startswith(issued.issuer)


async def test_behind_tls_no_other_host_can_set_the_cookies(nats: NatsServer, issued: Provider) -> None:
    async with with_provider(nats, issued) as (gateway, _):
        sent = await gateway.client.get("/login/oidc?here=1", headers={"X-Forwarded-Proto": "https"})
        cookie = sent.headers["set-cookie"]
        assert cookie.startswith("__Host-touchstone-login=")
        for part in ("Secure", "HttpOnly", "Path=/", "SameSite=lax", "Max-Age=600"):
            assert part in cookie


async def test_a_token_is_for_a_person_of_the_provider_only_where_an_admin_says_so(
    nats: NatsServer, issued: Provider
) -> None:
    """No name of the provider is that of a user whose token has the same name, nor of the services."""
    issued.person = {"sub": "x", "preferred_username": "alice", "groups": ["bench"]}
    async with with_provider(nats, issued, user_claim="preferred_username") as (gateway, nats_bus):
        alice = {"X-API-Key": await tokens.create(nats_bus, "alice", "user", "a")}
        hers = {"X-API-Key": await tokens.create(nats_bus, "oidc:alice", "user", "for her scripts")}
        await signed_in(gateway)
        page = await gateway.client.get("/run", headers=HTML)
        found = re.search(r'name="csrf" value="([^"]+)"', page.text)
        assert found is not None
        own = {"Origin": gateway.url, "X-CSRF-Token": found[1]}
        started = await gateway.client.post("/api/v1/benchmarking/run", json=DOCUMENT, headers=own)
        cancel = f"/api/v1/benchmarking/cancel/{started.json()['job_id']}"
        gateway.client.cookies.clear()
        assert (await gateway.client.post(cancel, headers=alice)).status_code == 403
        assert (await gateway.client.post(cancel, headers=hers)).status_code == 200


async def test_a_half_set_provider_ends_the_process_with_a_sentence() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TOUCHSTONE_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "services.gateway"),
        env=environment | {"TOUCHSTONE_AUTH": "token", "TOUCHSTONE_OIDC_ISSUER": "https://login.example"},
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await asyncio.wait_for(process.communicate(), 90)
    assert process.returncode == rpc.WRONG_SETTINGS
    assert "TOUCHSTONE_OIDC_ISSUER is set, but login with OpenID Connect also needs" in errors.decode()
