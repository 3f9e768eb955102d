"""Webhooks of a real scheduler over real streams, to a receiver that behaves badly."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import socket
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime

import grpc
import pytest

from services import bus
from services.scheduler.settings import WebhookSettings
from services.scheduler.webhooks.http_caller import HttpCaller
from services.scheduler.webhooks.nats_webhooks import HookBucket
from tests.integration.scheduler_rig import Harness, running
from tests.nats_server import NatsServer
from tests.servers.webhook_receiver import Call, Receiver, receiving
from tests.waiting import answered, until
from touchstone.v1 import job_pb2, webhook_pb2
from touchstone.v1 import scheduler_service_pb2 as pb


@pytest.fixture
async def harness(nats: NatsServer) -> AsyncIterator[Harness]:
    async with running(nats) as made:
        made.webhooks = replace(made.webhooks, span_s=0.5, tries=4)
        yield made


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made


async def register(harness: Harness, url: str) -> pb.CreateWebhookResponse:
    # Other than a creation, this is asked again until somebody leads.
    await harness.stub().GetQueue(pb.GetQueueRequest(), timeout=15)
    return await harness.stub().CreateWebhook(pb.CreateWebhookRequest(url=url), timeout=15)


async def cancelled_job(harness: Harness, webhook_url: str = "") -> job_pb2.Job:
    job = await harness.create(webhook_url=webhook_url)
    return (await harness.stub().CancelJob(pb.CancelJobRequest(job_id=job.job_id), timeout=15)).job


async def dead(harness: Harness, count: int) -> list[webhook_pb2.Delivery]:
    """Once so many were given up."""

    async def ask() -> list[webhook_pb2.Delivery]:
        answer = await harness.stub().ListDeadDeliveries(pb.ListDeadDeliveriesRequest(), timeout=15)
        return list(answer.deliveries)

    return await answered(ask, lambda found: len(found) >= count)


def is_signed(call: Call, secret: str) -> bool:
    signed = call.headers["Touchstone-Timestamp"].encode() + b"." + call.body
    expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return hmac.compare_digest(call.headers["Touchstone-Signature"], f"v1={expected}")


async def test_bad_receivers_are_tried_again_and_given_up(harness: Harness, receiver: Receiver) -> None:
    async with harness.scheduler():
        secrets = {
            path: (await register(harness, receiver.url + path)).secret
            for path in ("/ok", "/flaky", "/busy", "/redirect", "/close", "/410", "/500")
        }
        job = await cancelled_job(harness)
        given_up = {delivery.url.removeprefix(receiver.url): delivery for delivery in await dead(harness, 4)}
        await until(lambda: receiver.to("/ok") and len(receiver.to("/flaky")) >= 3 and len(receiver.to("/busy")) >= 2)
        assert {path: delivery.tries for path, delivery in given_up.items()} == {
            "/redirect": 4, "/close": 4, "/410": 1, "/500": 4,
        }  # fmt: skip
        assert given_up["/redirect"].problem == "status 302, a redirect, which is not followed"
        assert given_up["/500"].problem == "status 500"
        assert [len(receiver.to(path)) for path in ("/ok", "/flaky", "/busy", "/close")] == [1, 3, 2, 4]
        assert all(is_signed(call, secrets[call.path]) for call in receiver.calls)
        told = json.loads(receiver.to("/ok")[0].body)
        assert (told["event"], told["job"]["job_id"]) == ("job.cancelled", job.job_id)
        assert told["delivery_id"] == receiver.to("/ok")[0].headers["Touchstone-Delivery"]

        again = given_up["/410"].delivery_id
        await harness.stub().RedeliverWebhook(pb.RedeliverWebhookRequest(delivery_id=again), timeout=15)
        await until(lambda: len(receiver.to("/410")) == 2)


async def test_a_receiver_that_does_not_answer_is_given_up_and_holds_up_nobody(
    harness: Harness, receiver: Receiver
) -> None:
    harness.webhooks = replace(harness.webhooks, total_s=1.0)
    async with harness.scheduler():
        await register(harness, f"{receiver.url}/hang")
        await register(harness, f"{receiver.url}/ok")
        await cancelled_job(harness)
        await until(lambda: receiver.to("/ok"))
        (given_up,) = await dead(harness, 1)
        assert (given_up.url, given_up.tries) == (f"{receiver.url}/hang", 4)
        assert given_up.problem == "no answer in time"


async def test_a_jobs_own_url_is_called_and_its_key_is_in_the_answer(harness: Harness, receiver: Receiver) -> None:
    async with harness.scheduler():
        await cancelled_job(harness, f"{receiver.url}/ok")
        spec = job_pb2.JobSpec(
            endpoint="stub", model="m", suite=job_pb2.SuiteWork(suite="demo"), webhook_url=f"{receiver.url}/ok"
        )
        made = await harness.stub().CreateJob(pb.CreateJobRequest(spec=spec), timeout=15)
        await until(lambda: receiver.to("/ok"))
        assert made.webhook_secret
        assert is_signed(receiver.to("/ok")[0], made.webhook_secret)
        units = await harness.subscribe("plan")
        (msg,) = await units.fetch(1, timeout=60)
        assert receiver.url.encode() not in msg.data, "evaluators have no use for it"
    # Another process signs with the same key.
    async with harness.scheduler("s1"):
        spec.project_id = 2
        assert (await harness.stub().CreateJob(pb.CreateJobRequest(spec=spec), timeout=15)).webhook_secret == (
            made.webhook_secret
        )


def deliveries(receiver: Receiver) -> set[str]:
    return {call.headers["Touchstone-Delivery"] for call in receiver.calls}


@pytest.mark.parametrize("marker", [{"KV-Operation": "DEL"}, {"KV-Operation": "PURGE"}, {}])
async def test_a_deleted_key_is_followed_by_another_one(harness: Harness, marker: dict[str, str]) -> None:
    hooks = HookBucket(harness.connection, bus.SettingAside(harness.connection, "scheduler"))
    before = await hooks.installation_key()
    await harness.connection.js.publish(bus.kv_subject(bus.WEBHOOKS, "key"), b"", headers=marker)
    async with asyncio.timeout(5):
        after = await hooks.installation_key()
    assert len(after) == 32
    assert after != before
    assert await hooks.installation_key() == after


async def test_a_scheduler_that_dies_while_a_receiver_is_away_leaves_the_calls_to_the_next(
    harness: Harness, receiver: Receiver
) -> None:
    harness.webhooks = replace(harness.webhooks, span_s=20.0, tries=8)
    async with harness.scheduler(crash=True):
        await register(harness, f"{receiver.url}/500")
        for _ in range(3):
            await cancelled_job(harness)
        await until(lambda: len(deliveries(receiver)) == 3)
    before = deliveries(receiver)
    async with harness.scheduler():
        await until(lambda: len(receiver.to("/500")) >= 6)
        assert deliveries(receiver) == before


async def test_jobs_that_end_while_nobody_leads_are_told_of_later(harness: Harness, receiver: Receiver) -> None:
    async with harness.scheduler():
        await register(harness, f"{receiver.url}/ok")
    ended = job_pb2.JobEvent(event_id="999999999999-00000001", action="failed", job=job_pb2.Job(owner="local"))
    await harness.connection.js.publish("audit.x", ended.SerializeToString())
    async with harness.scheduler():
        await until(lambda: receiver.to("/ok"))
    assert len(deliveries(receiver)) == 1


async def test_private_addresses_are_refused_however_they_are_named(harness: Harness, receiver: Receiver) -> None:
    port = receiver.url.rpartition(":")[2]
    harness.webhooks = replace(harness.webhooks, loopback=False)
    async with harness.scheduler():
        with pytest.raises(grpc.aio.AioRpcError, match="not a public address"):
            await register(harness, receiver.url)
        await register(harness, f"http://localhost:{port}/ok")
        await register(harness, f"http://{socket.gethostname()}:{port}/ok")
        await register(harness, f"http://127.1:{port}/ok")
        await register(harness, f"http://0x7f000001:{port}/ok")
        await cancelled_job(harness)
        refused = await dead(harness, 4)
    assert receiver.calls == []
    assert {delivery.tries for delivery in refused if "localhost" in delivery.url} == {1}
    assert all("127." not in delivery.problem for delivery in refused)


async def test_the_address_that_is_checked_is_the_one_that_is_called(receiver: Receiver) -> None:
    """Names are asked for once a call: there is no second answer to lead elsewhere."""
    url = f"http://localhost:{receiver.url.rpartition(':')[2]}/ok"
    for permitted in (False, True):
        caller = HttpCaller(WebhookSettings(loopback=permitted))
        answer = await caller.post(url, {}, b"{}")
        await caller.aclose()
        assert (answer.delivered, answer.final) == (permitted, not permitted)
    assert len(receiver.calls) == 1


async def test_a_weekly_digest_comes_once_whoever_leads(harness: Harness, receiver: Receiver) -> None:
    hooks = HookBucket(harness.connection, bus.SettingAside(harness.connection, "scheduler"))
    for place in ("/500", "/ok"):
        hook = webhook_pb2.Webhook(webhook_id=place[1:], owner="local", url=receiver.url + place)
        hook.events.append("digest.weekly")
        hook.created_at.FromSeconds(int(time.time()) - 15 * 86_400)
        await hooks.add(webhook_pb2.WebhookRecord(webhook=hook, secret="s"))
    harness.webhooks = replace(harness.webhooks, span_s=20.0, tries=8)
    async with harness.scheduler(crash=True):
        await until(lambda: receiver.to("/500") and receiver.to("/ok"))
    harness.webhooks = replace(harness.webhooks, span_s=0.5, tries=2)
    async with harness.scheduler():
        (given_up,) = await dead(harness, 1)
    assert (given_up.event, given_up.job_id) == ("digest.weekly", "")
    assert len(receiver.to("/ok")) == 1
    assert len({call.headers["Touchstone-Delivery"] for call in receiver.to("/500")}) == 1
    (call,) = receiver.to("/ok")
    assert is_signed(call, "s")
    told = json.loads(call.body)["digest"]
    begin, end = (datetime.fromisoformat(told[name]) for name in ("from", "to"))
    assert (end.weekday(), end.hour, (end - begin).days) == (0, 0, 7)
    assert told["series"][0]["model"] == "m"
    async for record, revision in hooks.all():
        assert record.digest_end_at.ToSeconds() == end.timestamp()
        await hooks.remove(record.webhook)
        assert await hooks.replace(record, revision) is None, "what was removed stays so"
    assert [each async for each in hooks.all()] == []
