"""Messages that services could not handle: admins read them, nobody else does."""

from __future__ import annotations

import pytest

from services.gateway.access import tokens
from tests.gateway.gateway_server import Running
from tests.gateway.test_access import with_tokens
from tests.gateway.test_pages import page
from tests.gateway.test_rest_results import BASE, get
from tests.nats_server import NatsServer
from touchstone.v1 import set_aside_pb2

JOB = "11111111-2222-4333-8444-555555555555"


def message(number: int, reason: str = "") -> set_aside_pb2.SetAsideMessage:
    found = set_aside_pb2.SetAsideMessage(
        service="scheduler",
        stream="RESULTS",
        sequence=number,
        subject=f"results.{JOB}.x",
        job_id=JOB,
        size=3,
        reason=reason,
    )
    found.set_aside_at.FromJsonString("2026-11-20T10:00:00.25Z")
    return found


async def test_an_admin_reads_them_with_their_reason(gateway: Running) -> None:
    assert await get(gateway, "/set-aside") == {"messages": [], "total": 0, "next_page_token": ""}
    gateway.world.set_aside = [message(7, reason="DecodeError: <b>"), message(8), message(9)]
    gateway.world.set_aside[2].job_id = ""
    first = await get(gateway, "/set-aside?limit=2")
    assert first["messages"][0] == {
        "service": "scheduler",
        "stream": "RESULTS",
        "position": 7,
        "subject": f"results.{JOB}.x",
        "reason": "DecodeError: <b>",
        "job_id": JOB,
        "size": 3,
        "at": "2026-11-20T10:00:00.250Z",
    }
    second = await get(gateway, f"/set-aside?limit=2&page_token={first['next_page_token']}")
    assert [one["position"] for one in first["messages"] + second["messages"]] == [7, 8, 9]
    assert [first["total"], second["total"]] == [3, 3]
    assert [second["next_page_token"], second["messages"][0]["job_id"]] == ["", None]


@pytest.mark.parametrize(
    ("query", "status"), [("limit=0", 422), ("limit=501", 422), ("page=2", 400), ("page_token=x", 400)]
)
async def test_what_cannot_be_asked_is_refused(gateway: Running, query: str, status: int) -> None:
    assert (await get(gateway, f"/set-aside?{query}", status))["detail"]


async def test_a_user_who_is_not_an_admin_is_refused(nats: NatsServer) -> None:
    async with with_tokens(nats) as (gateway, nats_bus):
        gateway.world.set_aside = [message(7, reason="a secret")]
        for role, status in (("user", 403), ("admin", 200)):
            headers = {"X-API-Key": await tokens.create(nats_bus, f"a-{role}", role, role)}
            answer = await gateway.client.get(f"{BASE}/set-aside", headers=headers)
            assert answer.status_code == status
            assert ("a secret" in answer.text) == (role == "admin")


async def test_the_history_page_lists_them_to_an_admin(gateway: Running) -> None:
    assert "set aside" not in await page(gateway, "/jobs")
    gateway.world.set_aside = [message(7, "DecodeError: <b>bold</b>")]
    raw = (await gateway.client.get("/jobs", headers={"Accept": "text/html"})).text
    assert "1 message could not be handled and was set aside" in raw
    assert "DecodeError: &lt;b&gt;bold&lt;/b&gt;" in raw
    assert f'href="/jobs/{JOB}"' in raw
    assert "RESULTS 7" in raw

    gateway.world.set_aside = [message(number, f"no. {number}") for number in range(1, 31)]
    shown = await page(gateway, "/jobs")
    assert "30 messages could not be handled and were set aside" in shown
    assert "no. 20" in shown
    assert "no. 21" not in shown
    assert f'href="{BASE}/set-aside"' in shown
    await gateway.stop_service("scheduler")
    assert "set aside" not in await page(gateway, "/jobs")


async def test_the_history_page_hides_them_from_others(nats: NatsServer) -> None:
    async with with_tokens(nats) as (gateway, nats_bus):
        gateway.world.set_aside = [message(7, "a secret")]
        for role in ("user", "admin"):
            headers = {"X-API-Key": await tokens.create(nats_bus, f"a-{role}", role, role), "Accept": "text/html"}
            answer = await gateway.client.get("/jobs", headers=headers)
            assert answer.status_code == 200
            assert ("a secret" in answer.text) == ("set aside" in answer.text) == (role == "admin")
