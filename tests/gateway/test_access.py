"""Who gets in: local mode, tokens, sessions, CSRF, rate limits, event streams."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from services import bus, rpc
from services.errors import InvalidRequestError
from services.gateway.access import oidc_settings, tokens
from services.gateway.access.auth import Sessions, TokenAccess, TokenCache
from services.gateway.settings import Settings
from tests.gateway.fake_world import World, spec
from tests.gateway.gateway_server import Running, running
from tests.gateway.test_rest_run import DOCUMENT
from tests.nats_server import NatsServer

BASE = "/api/v1/benchmarking"
SECRET = "services-share-this"


@asynccontextmanager
async def with_tokens(
    nats: NatsServer, world: World | None = None, oidc: oidc_settings.Settings | None = None
) -> AsyncIterator[tuple[Running, bus.Bus]]:
    """Users have tokens, and may log in with a provider where one is given."""
    nats_bus = await bus.connect(nats.url, "test")
    await nats_bus.ensure(64 * 1024 * 1024)
    issuer = oidc.issuer if oidc else ""
    access = TokenAccess(
        TokenCache(nats_bus.token, ttl_s=0.2), rpc.Settings("token", SECRET), Sessions(nats_bus), issuer
    )
    settings = Settings(requests_per_minute=10_000, oidc=oidc)
    try:
        async with running(world, access=access, service_token=SECRET, settings=settings, nats=nats.url) as gateway:
            yield gateway, nats_bus
    finally:
        await nats_bus.close()


async def test_local_mode_answers_to_loopback_names_only(gateway: Running) -> None:
    for host in ("localhost", "127.0.0.1:8080", "[::1]:8080"):
        assert (await gateway.client.get(f"{BASE}/results", headers={"Host": host})).status_code == 200
    for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "[::1", ""):
        answer = await gateway.client.get(f"{BASE}/results", headers={"Host": host})
        assert answer.status_code in (400, 403)


async def test_local_mode_refuses_other_sites_pages(gateway: Running) -> None:
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
        answer = await gateway.client.post(f"{BASE}/run", json=DOCUMENT, headers=headers)
        assert answer.status_code == 403
    assert gateway.world.jobs == {}
    own = {"Origin": gateway.url, "Sec-Fetch-Site": "same-origin"}
    assert (await gateway.client.post(f"{BASE}/run", json=DOCUMENT, headers=own)).status_code == 200
    assert gateway.world.callers[-1] == rpc.LOCAL


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.4", "::", "example.org"])
def test_local_mode_binds_to_loopback_only(host: str) -> None:
    with pytest.raises(InvalidRequestError, match="TOUCHSTONE_AUTH=token"):
        Settings(host=host).require_loopback()


async def test_every_answer_carries_the_security_headers(gateway: Running) -> None:
    for path in ("/healthz", "/run", f"{BASE}/nope", "/static/app.css"):
        headers = (await gateway.client.get(path)).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "referrer-policy" in headers


async def test_texts_are_compressed_except_for_pages_of_other_sites(gateway: Running) -> None:
    for path in ("/run", "/static/app.css", "/static/app.js", "/openapi.json"):
        answer = await gateway.client.get(path)
        sent = int(answer.headers["Content-Length"])
        assert (answer.headers["Content-Encoding"], sent < len(answer.content) / 2) == ("gzip", True), path
    for site, coding in (("same-origin", "gzip"), ("none", "gzip"), ("same-site", None), ("cross-site", None)):
        answer = await gateway.client.get("/run", headers={"Sec-Fetch-Site": site})
        assert (answer.status_code, answer.headers.get("Content-Encoding")) == (200, coding), site
    answer = await gateway.client.get("/run", headers={"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in answer.headers


async def test_the_101st_request_in_a_minute_is_429_per_user_and_pages_do_not_count() -> None:
    async with running(settings=Settings(requests_per_minute=100)) as gateway:
        for _ in range(5):
            assert (await gateway.client.get("/jobs")).status_code == 200
        answers = [await gateway.client.get(f"{BASE}/leaderboard") for _ in range(101)]
        assert [answer.status_code for answer in answers] == [200] * 100 + [429]
        refused = answers[-1].json()
        assert 1 <= refused["retry_after"] <= 60
        assert answers[-1].headers["retry-after"] == str(refused["retry_after"])
        assert (await gateway.client.get("/jobs")).status_code == 200


async def test_tokens_open_the_api_for_their_user_until_they_are_revoked(nats: NatsServer) -> None:
    async with with_tokens(nats) as (gateway, nats_bus):
        alice = await tokens.create(nats_bus, "alice", "user", "ci")
        document = await gateway.client.get("/openapi.json", headers={"X-API-Key": alice})
        assert document.json()["security"] == [{"bearer": []}, {"key": []}]
        assert (await gateway.client.get("/openapi.json")).status_code == 401
        assert alice.startswith("ts_")
        assert all(alice not in str(pair) for pair in await tokens.stored(nats_bus))
        for headers in (
            {},
            {"Authorization": "Bearer ts_wrong"},
            {"X-API-Key": ""},
            {"Authorization": f"Basic {alice}"},
        ):
            answer = await gateway.client.get(f"{BASE}/results", headers=headers)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert answer.json()["detail"]
        assert (await gateway.client.get(f"{BASE}/results", headers={"X-API-Key": SECRET})).status_code == 401
        for headers in ({"Authorization": f"Bearer {alice}"}, {"X-API-Key": alice}):
            assert (await gateway.client.post(f"{BASE}/run", json=DOCUMENT, headers=headers)).status_code == 200
        assert {(who.user, who.is_admin) for who in gateway.world.callers} == {("alice", False)}
        await tokens.revoke(nats_bus, "ci")
        await asyncio.sleep(0.3)
        assert (await gateway.client.get(f"{BASE}/results", headers={"X-API-Key": alice})).status_code == 401
        assert (await gateway.client.get("/healthz")).status_code == 200


async def test_a_label_names_its_token_before_any_prefix_does(nats: NatsServer) -> None:
    async with with_tokens(nats) as (_, nats_bus):
        await tokens.create(nats_bus, "alice", "user", "laptop")
        ((digest, _),) = await tokens.stored(nats_bus)
        await tokens.create(nats_bus, "bob", "user", digest[0])
        assert (await tokens.revoke(nats_bus, digest[0])).user == "bob"
        assert (await tokens.revoke(nats_bus, digest[0])).user == "alice"


async def test_users_jobs_and_limits_are_their_own(nats: NatsServer) -> None:
    async with with_tokens(nats) as (gateway, nats_bus):
        alice = {"X-API-Key": await tokens.create(nats_bus, "alice", "user", "a")}
        bob = {"X-API-Key": await tokens.create(nats_bus, "bob", "user", "b")}
        for _ in range(10):
            await gateway.client.post(f"{BASE}/run", json=DOCUMENT, headers=alice)
        assert (await gateway.client.post(f"{BASE}/run", json=DOCUMENT, headers=alice)).status_code == 429
        answer = await gateway.client.post(f"{BASE}/run", json=DOCUMENT, headers=bob)
        assert answer.status_code == 200
        job_id = answer.json()["job_id"]
        assert (await gateway.client.post(f"{BASE}/cancel/{job_id}", headers=alice)).status_code == 403
        assert (await gateway.client.get(f"{BASE}/results/{job_id}", headers=alice)).status_code == 200
        assert (await gateway.client.post(f"{BASE}/cancel/{job_id}", headers=bob)).status_code == 200


async def test_wrong_tokens_at_the_login_have_to_wait_and_the_right_one_does_not(nats: NatsServer) -> None:
    async with with_tokens(nats) as (gateway, nats_bus):
        token = await tokens.create(nats_bus, "alice", "user", "a")
        own = {"Origin": gateway.url}
        tries = [await gateway.client.post("/login", data={"token": "ts_guess-of-mine"}, headers=own) for _ in range(8)]
        assert [one.status_code for one in tries] == [401] * 6 + [429] * 2
        assert int(tries[-1].headers["Retry-After"]) >= 1
        assert "Too many wrong tokens" in tries[-1].text
        api = await gateway.client.get(f"{BASE}/results", headers={"X-API-Key": "ts_guess-of-mine"})
        assert (api.status_code, int(api.headers["Retry-After"]) >= 1) == (429, True)
        assert (await gateway.client.post("/login", data={"token": token}, headers=own)).status_code == 303


async def test_a_browser_signs_in_with_a_token_and_posts_with_its_csrf_token(nats: NatsServer) -> None:
    async with with_tokens(nats) as (gateway, nats_bus):
        token = await tokens.create(nats_bus, "m.keller", "admin", "laptop")
        html = {"Accept": "text/html"}
        own = {"Origin": gateway.url}
        sent_off = await gateway.client.get("/run", headers=html)
        assert (sent_off.status_code, sent_off.headers["location"]) == (303, "/login?next=%2Frun")
        assert (await gateway.client.post("/login", data={"token": token})).status_code == 403
        wrong = await gateway.client.post("/login", data={"token": "ts_no"}, headers=own)
        assert wrong.status_code == 401
        assert "The token is unknown" in wrong.text
        answer = await gateway.client.post("/login", data={"token": token}, headers=own)
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        assert token not in cookie
        page = await gateway.client.get("/run", headers=html)
        assert "m.keller" in page.text
        found = re.search(r'name="csrf" value="([^"]+)"', page.text)
        assert found is not None
        form = {"endpoint": "baselines", "suite": "demo", "model": "majority"}
        for headers, fields in ((own, form), ({}, form | {"csrf": found[1]}), (own, form | {"csrf": "x"})):
            assert (await gateway.client.post("/run", data=fields, headers=headers)).status_code == 403
        assert gateway.world.jobs == {}
        ok = await gateway.client.post("/run", data=form | {"csrf": found[1]}, headers=own)
        assert ok.status_code == 303
        same = own | {"X-CSRF-Token": found[1]}
        assert (await gateway.client.post(f"{BASE}/run", json=DOCUMENT, headers=same)).status_code == 200
        assert [who.user for who in gateway.world.callers] == ["m.keller", "m.keller"]
        assert (await gateway.client.post("/logout", headers=same)).headers["location"] == "/login"
        gateway.client.cookies.set("touchstone", cookie.split("=", 1)[1].split(";")[0])
        assert (await gateway.client.get("/run", headers=html)).status_code == 303


async def test_signing_in_goes_on_to_the_page_that_was_asked_for_and_to_no_other_site(nats: NatsServer) -> None:
    async with with_tokens(nats) as (gateway, nats_bus):
        token = await tokens.create(nats_bus, "m.keller", "admin", "laptop")
        asked = await gateway.client.get("/jobs?model=a%26b", headers={"Accept": "text/html"})
        assert asked.headers["location"] == "/login?next=%2Fjobs%3Fmodel%3Da%2526b"
        form = await gateway.client.get(asked.headers["location"])
        assert 'name="next" value="/jobs?model=a%26b"' in form.text
        hostile = await gateway.client.get("/login", params={"next": "//evil.example"})
        assert "evil" not in hostile.text
        own = {"Origin": gateway.url}
        wrong = await gateway.client.post("/login", data={"token": "ts_no", "next": "/jobs"}, headers=own)
        assert 'name="next" value="/jobs"' in wrong.text
        for sent, address in (
            ("/jobs?model=a%26b", "/jobs?model=a%26b"),
            ("//evil.example", "/"),
            ("https://evil.example", "/"),
            ("/\\evil.example", "/"),
            ("", "/"),
        ):
            answer = await gateway.client.post("/login", data={"token": token, "next": sent}, headers=own)
            assert (answer.status_code, answer.headers["location"]) == (303, address)


async def test_revoking_a_token_signs_its_browser_out(nats: NatsServer) -> None:
    async with with_tokens(nats) as (gateway, nats_bus):
        token = await tokens.create(nats_bus, "alice", "user", "laptop")
        await gateway.client.post("/login", data={"token": token}, headers={"Origin": gateway.url})
        assert (await gateway.client.get("/jobs")).status_code == 200
        await tokens.revoke(nats_bus, "laptop")
        await asyncio.sleep(0.3)
        assert (await gateway.client.get("/jobs")).status_code == 401


async def test_a_silent_nats_is_503_in_token_mode(nats: NatsServer) -> None:
    async with with_tokens(nats) as (gateway, nats_bus):
        alice = {"X-API-Key": await tokens.create(nats_bus, "alice", "user", "a")}
        nats.kill()
        answer = await gateway.client.get(f"{BASE}/results", headers=alice)
        assert answer.status_code == 503
        assert "token store" in answer.json()["detail"]
        nats.restart()
        for _ in range(100):
            status = (await gateway.client.get(f"{BASE}/results", headers=alice)).status_code
            if status == 200:
                break
            await asyncio.sleep(0.1)
        assert status == 200


async def test_live_pages_are_capped_per_user_and_freed_when_they_close() -> None:
    settings = Settings(requests_per_minute=1000, streams_per_user=2)
    async with running(settings=settings) as gateway:
        address = f"{gateway.url}/events"
        async with httpx.AsyncClient(trust_env=False, timeout=60) as other:
            async with other.stream("GET", address) as one, other.stream("GET", address) as two:
                lines = [stream.aiter_lines() for stream in (one, two)]
                assert [await anext(each) for each in lines] == [": open", ": open"]
                assert (await gateway.client.get(address)).status_code == 429
            async with asyncio.timeout(60):
                status = 429
                while status == 429:  # until it is heard that they were closed
                    async with other.stream("GET", address) as three:
                        status = three.status_code
            assert status == 200


async def test_open_streams_do_not_hold_up_the_servers_end(gateway: Running) -> None:
    job = gateway.world.start(gateway.world.add(spec("qwen2.5:7b", "demo"), "local").job_id)
    async with (
        httpx.AsyncClient(trust_env=False, timeout=60) as other,
        other.stream("GET", f"{gateway.url}/events?job={job.job_id}") as stream,
    ):
        lines = stream.aiter_lines()
        assert await anext(lines) == ": open"
        gateway.shutdown.set()
        assert gateway.serving is not None
        async with asyncio.timeout(60):
            await asyncio.shield(gateway.serving)


async def test_openais_client_gets_its_own_errors(nats: NatsServer) -> None:
    import openai

    async with with_tokens(nats) as (gateway, _):
        for key in ("sk-wrong", "ts_wrong"):
            client = openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=key, max_retries=0)
            with pytest.raises(openai.AuthenticationError) as caught:
                await client.models.list()
            assert (caught.value.code, caught.value.type) == ("invalid_api_key", "authentication_error")
            await client.close()
    async with running(settings=Settings(requests_per_minute=1)) as gateway:
        client = openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key="any", max_retries=0)
        await client.models.list()
        with pytest.raises(openai.RateLimitError) as limited:
            await client.models.list()
        assert limited.value.code == "rate_limit_exceeded"
        assert int(limited.value.response.headers["retry-after"]) > 0
        await client.close()


async def test_settings_create_show_once_and_revoke_tokens(nats: NatsServer) -> None:
    async with with_tokens(nats) as (gateway, nats_bus):
        admin = {"X-API-Key": await tokens.create(nats_bus, "root", "admin", "first")}
        form = {"user": "bob", "role": "user", "label": "ci", "expires_days": "30"}
        made = await gateway.client.post("/settings/tokens", data=form, headers=admin)
        (text,) = set(re.findall(r"ts_[\w-]{43}", made.text))
        assert (made.status_code, made.headers["cache-control"]) == (200, "no-store")
        bob = {"X-API-Key": text}
        page = (await gateway.client.get("/settings", headers=admin)).text
        assert text not in page
        users = page.partition('id="users"')[2].partition("</section>")[0]
        assert re.findall(r'user-name">(\w+)</td><td>([\w ]+)</td>', users) == [("bob", "user"), ("root", "admin")]
        found = {token.label: (digest, token) for digest, token in await tokens.stored(nats_bus)}
        assert found["first"][1].HasField("last_used_at")
        assert found["ci"][1].expires_at.seconds - found["ci"][1].created_at.seconds == 30 * 86_400
        gateway.world.add(spec("qwen2.5:7b", "demo"), "carol")
        page = (await gateway.client.get("/settings", headers=admin)).text
        assert '<td class="user-name">carol</td><td>no token</td>' in page
        own = (await gateway.client.get("/settings", headers=bob)).text
        assert found["ci"][0][:8] in own
        assert found["first"][0][:8] not in own
        for sent, headers, status, words in (
            (form, bob, 403, "Only an admin may create tokens."),
            (form | {"user": "é"}, admin, 400, "A user name must have printable ASCII characters"),
            (form | {"role": "service"}, admin, 400, "Use one of: user, admin."),
            (form | {"expires_days": "0"}, admin, 400, "expires_days must be between 1 and 36,500."),
        ):
            refused = await gateway.client.post("/settings/tokens", data=sent, headers=headers)
            assert (refused.status_code, words in refused.text) == (status, True), (sent, refused.text)
        revoke = "/settings/tokens/{}/revoke"
        assert (await gateway.client.post(revoke.format(found["first"][0]), headers=bob)).status_code == 403
        assert (await gateway.client.post(revoke.format("0" * 64), headers=admin)).status_code == 404
        assert (await gateway.client.post(revoke.format(found["ci"][0]), headers=bob)).status_code == 303
        assert [token.label for _, token in await tokens.stored(nats_bus)] == ["first"]
        assert await nats_bus.token(found["ci"][0]) is None
