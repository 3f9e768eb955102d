"""Uploads as they go on: at the service's pace, within limits, ended with their sender."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from urllib.parse import urlsplit

import httpx
import pytest

from services.gateway.access import tokens
from services.gateway.settings import Settings
from tests.gateway.gateway_server import Running, running
from tests.gateway.test_access import with_tokens
from tests.nats_server import NatsServer

LINE = b'{"prompt": "' + b"x" * 1000 + b'"}\n'
PATH = "/admin/datasets/upload"
JSONL = {"Content-Type": "application/jsonl"}


async def stream(lines: int, sent: list[int]) -> AsyncIterator[bytes]:
    for _ in range(lines):
        sent.append(len(LINE) * 64)
        yield LINE * 64


async def until(gateway: Running, what: str) -> None:
    async with asyncio.timeout(60):
        while not getattr(gateway.world, what):  # noqa: ASYNC110 - the world sets no event
            await asyncio.sleep(0.01)


async def test_the_sender_waits_for_the_service(gateway: Running) -> None:
    gateway.world.upload_gate.clear()
    sent: list[int] = []
    going = asyncio.create_task(gateway.client.post(PATH, content=stream(800, sent), headers=JSONL))
    await until(gateway, "upload_bytes")
    before = -1
    while sum(sent) > before:  # until nothing moves any more
        before = sum(sent)
        await asyncio.sleep(0.3)
    assert before < 20_000_000, "what is on its way is bounded, though the upload has 51 MB"
    gateway.world.upload_gate.set()
    answer = await going
    assert (answer.status_code, answer.json()["count"]) == (200, 800 * 64)


async def test_an_upload_ends_with_its_sender(gateway: Running) -> None:
    address = urlsplit(gateway.url)
    _, writer = await asyncio.open_connection(address.hostname, address.port)
    head = (
        f"POST {PATH} HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/jsonl",
        "Content-Length: 9000000",
        "",
    )
    writer.write("".join(f"{line}\r\n" for line in head).encode() + LINE * 1000)
    await until(gateway, "upload_bytes")
    writer.close()
    await until(gateway, "uploads_cut")
    assert gateway.world.datasets == {}


async def test_a_sender_who_falls_silent_is_408() -> None:
    async with running(settings=Settings(upload_idle_s=0.2)) as gateway:

        async def silent() -> AsyncIterator[bytes]:
            yield LINE * 300
            await asyncio.sleep(0.6)

        answer = await gateway.client.post(PATH, content=silent(), headers=JSONL)
        assert (answer.status_code, answer.json()["detail"]) == (
            408,
            "No data arrived for 0.2 seconds. Send the upload again.",
        )
        await until(gateway, "uploads_cut")


async def test_an_upload_may_be_larger_than_other_bodies_and_not_larger_than_its_own_limit() -> None:
    async with running(settings=Settings(upload_max_bytes=3_000_000)) as gateway:
        assert (await gateway.client.post(PATH, content=LINE * 2000, headers=JSONL)).status_code == 200
        for content in (LINE * 4000, stream(80, [])):
            refused = await gateway.client.post(PATH, content=content, headers=JSONL)
            assert refused.status_code == 413
            assert refused.json()["detail"].startswith("The upload has more than 3,000,000 bytes.")
        assert len(gateway.world.datasets) == 1
        other = await gateway.client.post("/admin/datasets/hub", content=b"x" * 2_000_000)
        assert other.status_code == 413


async def test_a_long_file_name_is_cut_and_one_beyond_all_measure_is_named_as_such(gateway: Running) -> None:
    answer = await gateway.client.post(PATH, files={"file": ("n" * 5000 + ".jsonl", LINE)})
    assert answer.status_code == 200, answer.text
    (made,) = gateway.world.datasets.values()
    assert made.name == "n" * 194 + ".jsonl"
    refused = await gateway.client.post(PATH, files={"file": ("n" * 50_000 + ".jsonl", LINE)})
    assert (refused.status_code, refused.json()["detail"]) == (
        400,
        "A header of the form has more than 16,384 bytes. Give the file a shorter name.",
    )


async def test_uploads_of_one_user_are_counted() -> None:
    async with running(settings=Settings(uploads_per_user=1)) as gateway:
        gateway.world.upload_gate.clear()
        going = asyncio.create_task(gateway.client.post(PATH, content=LINE * 300, headers=JSONL))
        await until(gateway, "upload_bytes")
        second = await gateway.client.post(PATH, content=LINE, headers=JSONL)
        assert second.status_code == 429
        assert second.json()["detail"].startswith("1 upload is open, the most that one user may have.")
        gateway.world.upload_gate.set()
        assert (await going).status_code == 200
        assert (await gateway.client.post(PATH, content=LINE, headers=JSONL)).status_code == 200


async def test_a_server_that_leaves_does_not_wait_for_an_upload() -> None:
    async with running() as gateway:
        gateway.world.upload_gate.clear()
        going = asyncio.create_task(gateway.client.post(PATH, content=LINE * 300, headers=JSONL))
        await until(gateway, "upload_bytes")
        gateway.shutdown.set()
        async with asyncio.timeout(60):
            answer = await going
        assert (answer.status_code, answer.json()["detail"][:23]) == (503, "The server is stopping.")
        await until(gateway, "uploads_cut")


async def test_while_results_is_away_an_upload_is_503_at_once(gateway: Running) -> None:
    await gateway.stop_service("results")
    answer = await gateway.client.post(PATH, content=LINE, headers=JSONL)
    assert (answer.status_code, answer.json()["detail"][:36]) == (503, "The results service does not answer.")


@pytest.fixture
async def signed_in(nats: NatsServer) -> AsyncIterator[tuple[Running, str]]:
    async with with_tokens(nats) as (gateway, nats_bus):
        token = await tokens.create(nats_bus, "m.keller", "user", "laptop")
        await gateway.client.post("/login", data={"token": token}, headers={"Origin": gateway.url})
        page = (await gateway.client.get("/run", headers={"Accept": "text/html"})).text
        yield gateway, page.partition('name="csrf" value="')[2].partition('"')[0]


async def test_a_browser_uploads_with_its_csrf_token_alone(signed_in: tuple[Running, str]) -> None:
    gateway, csrf = signed_in
    own = {"Origin": gateway.url}

    async def sent(headers: dict[str, str], data: dict[str, str]) -> httpx.Response:
        return await gateway.client.post(PATH, data=data, files={"file": ("a.jsonl", LINE)}, headers=headers)

    for headers, data in (
        (own, {}),
        (own, {"csrf": "x"}),
        (own | {"X-CSRF-Token": "x"}, {"csrf": csrf}),
        ({}, {"csrf": csrf}),
    ):
        refused = await sent(headers, data)
        assert refused.status_code == 403, refused.text
    raw = await gateway.client.post(PATH, content=LINE, headers=own | JSONL)
    assert raw.status_code == 403
    assert (await gateway.client.post("/admin/benchmarks/run", json={}, headers=own)).status_code == 403
    assert gateway.world.datasets == {}
    for headers, data in (
        (own, {}),
        (own, {"csrf": "x"}),
        (own | {"X-CSRF-Token": "x"}, {"csrf": csrf}),
        ({}, {"csrf": csrf}),
    ):
        refused = await sent(headers, data)
        assert refused.status_code == 403, refused.text
    raw = await gateway.client.post(PATH, content=LINE, headers=own | JSONL)
    assert raw.status_code == 403
    assert (await gateway.client.post("/admin/benchmarks/run", json={}, headers=own)).status_code == 403
    assert gateway.world.datasets == {}
    for headers, data in ((own, {"csrf": csrf}), (own | {"X-CSRF-Token": csrf}, {})):
        answer = await sent(headers, data)
        assert (answer.status_code, answer.json()["owner"]) == (200, "m.keller")


async def test_admin_paths_count_against_the_limit_of_requests_and_ask_for_a_token(nats: NatsServer) -> None:
    async with with_tokens(nats) as (gateway, _):
        for method, path in (("GET", "datasets"), ("POST", "datasets/upload"), ("GET", "benchmarks")):
            answer = await gateway.client.request(method, f"/admin/{path}", headers={"Accept": "text/html"})
            assert (answer.status_code, answer.headers["content-type"]) == (401, "application/json")
    async with running(settings=replace(Settings(), requests_per_minute=3)) as gateway:
        codes = [(await gateway.client.get("/admin/datasets")).status_code for _ in range(4)]
        assert codes == [200, 200, 200, 429]
