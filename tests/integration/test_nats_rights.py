"""Who may do what at NATS: a real server with nkeys, the least rights and mutual TLS, and what each key is refused."""

from __future__ import annotations

import asyncio
import shutil
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import nats.errors
import pytest
from nats.aio.msg import Msg

from services import bus
from services.bus import rights
from services.bus.__main__ import make_keys, read_users
from services.bus.login import Login, public_key
from services.errors import InvalidRequestError, UnavailableError
from tests import certificates
from tests.integration.evaluator_rig import until
from tests.nats_server import NatsServer

BYTES = 64 * 1024 * 1024
SHORT_S = 1.5
"""For connections that cannot succeed."""
API = "$JS.API"


class World:
    """NATS, and the login of each service."""

    def __init__(self, folder: Path) -> None:
        self.keys = folder / "keys"
        make_keys(self.keys)
        self.certificates = certificates.make(folder / "certificates")
        self.nats = NatsServer(f"{read_users(self.keys)}{self._tls}").start(folder / "nats")

    @property
    def _tls(self) -> str:
        path = self.certificates.path
        return (
            f'tls {{ cert_file: "{path("server.pem")}", key_file: "{path("server.key")}", '
            f'ca_file: "{path("ca.pem")}", verify: true }}\n'
        )

    def login(self, service: str) -> Login:
        path = self.certificates.path
        seed = (self.keys / f"{service}.seed").read_text().strip()
        return Login(seed, path("ca.pem"), path("client.pem"), path("client.key"))

    @asynccontextmanager
    async def service(self, name: str) -> AsyncIterator[bus.Bus]:
        connection = await bus.connect(self.nats.url, name, self.login(name), timeout_s=10)
        try:
            yield connection
        finally:
            await connection.close()

    async def enters(self, login: Login, url: str = "") -> bool:
        try:
            connection = await bus.connect(url or self.nats.url, "test", login, timeout_s=SHORT_S)
        except UnavailableError:
            return False
        await connection.close()
        return True


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("rights"))

    async def set_up() -> None:
        async with made.service("setup") as connection:
            await connection.ensure(BYTES)

    try:
        asyncio.run(set_up())
        yield made
    finally:
        made.nats.stop()


FORBIDDEN = (
    # Service, what it tries, and at which subject.
    ("evaluator", "publish", "$KV.TOKENS.0a1b", "make a user's token"),
    ("evaluator", "publish", "$KV.SESSIONS.0a1b", "log a browser in"),
    ("evaluator", "publish", "$KV.JOBS.job.1", "change the state of a job"),
    ("evaluator", "publish", "$KV.LEASE.leader", "lead"),
    ("evaluator", "publish", "$KV.WEBHOOKS.hook.1", "create a webhook"),
    ("evaluator", "publish", "audit.1", "write to the audit trail"),
    ("evaluator", "publish", "kept.marks", "say something in a person's name"),
    ("evaluator", "publish", "usage._runs.1.end", "end a recorded run"),
    ("evaluator", "publish", "$O.DATASETS.M.1", "change a dataset"),
    ("evaluator", "publish", "room", "report a full disk"),
    ("evaluator", "publish", "call.gpu", "call a model in another service's name"),
    ("evaluator", "publish", "dlq._aside.scheduler.WORK.1.2", "set aside for another service"),
    ("evaluator", "publish", f"{API}.STREAM.MSG.GET.KV_WEBHOOKS", "read the secrets of webhooks"),
    ("evaluator", "publish", f"{API}.STREAM.MSG.GET.KV_SESSIONS", "read sessions"),
    ("evaluator", "publish", f"{API}.CONSUMER.CREATE.KV_TOKENS", "list tokens"),
    ("evaluator", "publish", f"{API}.CONSUMER.CREATE.RESULTS", "read all answers"),
    ("evaluator", "publish", f"{API}.STREAM.SNAPSHOT.KV_WEBHOOKS", "copy a stream"),
    ("evaluator", "publish", f"{API}.STREAM.RESTORE.KV_TOKENS", "replace a stream"),
    ("evaluator", "publish", f"{API}.STREAM.DELETE.AUDIT", "delete a stream"),
    ("evaluator", "publish", f"{API}.STREAM.PURGE.RESULTS", "empty a stream"),
    ("evaluator", "publish", f"{API}.STREAM.UPDATE.AUDIT", "change a stream"),
    ("evaluator", "publish", f"{API}.STREAM.CREATE.MINE", "create a stream"),
    ("evaluator", "publish", f"{API}.STREAM.MSG.DELETE.RESULTS", "delete an answer"),
    ("evaluator", "publish", f"{API}.CONSUMER.DELETE.RESULTS.results-items", "stop the results service's reading"),
    ("evaluator", "subscribe", "_INBOX.>", "listen to answers to others"),
    ("evaluator", "subscribe", "$KV.TOKENS.>", "listen to tokens"),
    ("evaluator", "subscribe", "results.>", "listen to answers"),
    ("evaluator", "subscribe", ">", "listen to everything"),
    ("gateway", "publish", "work.gpu.1.1.1", "give evaluators work"),
    ("gateway", "publish", "results.1.1", "store an answer"),
    ("gateway", "publish", "$KV.JOBS.job.1", "change the state of a job"),
    ("gateway", "publish", "audit.1", "write to the audit trail"),
    ("gateway", "publish", f"{API}.STREAM.MSG.GET.KV_WEBHOOKS", "read the secrets of webhooks"),
    ("gateway", "publish", f"{API}.STREAM.DELETE.KV_TOKENS", "delete a stream"),
    ("gateway", "publish", f"{API}.STREAM.PURGE.KV_TOKENS", "revoke all tokens at once"),
    ("gateway", "subscribe", "call.>", "make calls in place of evaluators"),
    ("gateway", "subscribe", "$KV.JOBS.>", "listen to jobs"),
    ("scheduler", "publish", "kept.marks", "say something in a person's name"),
    ("scheduler", "publish", "$O.DATASETS.M.1", "change a dataset"),
    ("scheduler", "publish", "$KV.EVALUATORS.gpu", "announce an evaluator"),
    ("scheduler", "publish", "$KV.SESSIONS.0a1b", "log a browser in"),
    ("scheduler", "publish", f"{API}.STREAM.PURGE.RESULTS", "remove answers"),
    ("scheduler", "publish", f"{API}.STREAM.PURGE.AUDIT", "remove the audit trail"),
    ("scheduler", "publish", f"{API}.STREAM.CREATE.MINE", "create a stream"),
    ("scheduler", "subscribe", "call.>", "listen to calls"),
    ("results", "publish", "work.gpu.1.1.1", "give evaluators work"),
    ("results", "publish", "results.1.1", "store an answer"),
    ("results", "publish", "audit.1", "write to the audit trail"),
    ("results", "publish", "$KV.JOBS.job.1", "change the state of a job"),
    ("results", "publish", "$KV.LEASE.leader", "lead"),
    ("results", "publish", f"{API}.STREAM.PURGE.KEPT", "forget what people said"),
    ("results", "publish", f"{API}.STREAM.DELETE.RESULTS", "delete a stream"),
    ("results", "subscribe", "_INBOX.>", "listen to answers to others"),
    ("replica", "publish", "$KV.TOKENS.0a1b", "make a user's token"),
    ("replica", "publish", "$O.DATASETS.M.1", "change a dataset"),
    ("replica", "publish", "kept.marks", "say something in a person's name"),
    ("replica", "publish", "work.gpu.1.1.1", "give evaluators work"),
    ("replica", "publish", f"{API}.CONSUMER.CREATE.KV_TOKENS", "list tokens"),
    ("replica", "publish", f"{API}.CONSUMER.CREATE.RESULTS", "read all answers"),
    ("replica", "publish", f"{API}.CONSUMER.MSG.NEXT.RESULTS.results-items", "take answers from the results service"),
    ("replica", "publish", f"{API}.STREAM.MSG.GET.KV_WEBHOOKS", "read the secrets of webhooks"),
    ("replica", "publish", f"{API}.STREAM.PURGE.RESULTS", "remove answers"),
    ("replica", "publish", f"{API}.STREAM.UPDATE.AUDIT", "change a stream"),
    ("replica", "subscribe", "$KV.TOKENS.>", "listen to tokens"),
    ("setup", "publish", "$KV.TOKENS.0a1b", "make a user's token"),
    ("setup", "publish", "work.gpu.1.1.1", "give evaluators work"),
    ("setup", "publish", f"{API}.STREAM.DELETE.RESULTS", "delete a stream"),
    ("setup", "publish", f"{API}.STREAM.MSG.GET.KV_TOKENS", "read tokens"),
    ("setup", "subscribe", "results.>", "listen to answers"),
)
OWN = {
    "evaluator": ("$KV.EVALUATORS.gpu", "results.1.1", "work.gpu.1.1.1"),
    "gateway": ("$KV.TOKENS.0a1b", "$KV.SESSIONS.0a1b", "call.gpu"),
    "scheduler": ("$KV.JOBS.job.1", "$KV.LEASE.leader", "audit.1"),
    "results": ("kept.marks", "$O.DATASETS.M.1", "room"),
    "replica": (f"{API}.STREAM.INFO.WORK", f"{API}.STREAM.MSG.GET.KV_TOKENS"),
    "setup": (f"{API}.STREAM.INFO.WORK",),
}
"""What each may do: a table of refusals alone would also pass with a key that opens nothing."""


async def refusals(connection: bus.Bus, *tries: tuple[str, str]) -> list[str]:
    """The subjects that NATS refuses to publish to, or to subscribe to."""
    told: list[str] = []

    async def on_error(error: Exception) -> None:
        told.append(str(error))

    connection.client._error_cb = on_error
    for how, subject in tries:
        if how == "publish":
            await connection.client.publish(subject, b"")
        else:
            await connection.client.subscribe(subject)
        await connection.client.flush()
    # The server's words come before the answer to the last flush, and are passed on by other tasks.
    await asyncio.sleep(0.1)
    refused = [(how, subject) for how, subject in tries if any(_names(text, how, subject) for text in told)]
    assert len(told) == len(refused), told
    return [subject for _, subject in refused]


def _names(text: str, how: str, subject: str) -> bool:
    kind = "publish" if how == "publish" else "subscription"
    return f'permissions violation for {kind} to "{subject.lower()}"' in text.lower()


@pytest.mark.parametrize("service", rights.USERS)
async def test_nats_refuses_each_service_what_is_not_its_own(world: World, service: str) -> None:
    tries = [(how, subject) for who, how, subject, _ in FORBIDDEN if who == service]
    assert tries
    async with world.service(service) as connection:
        assert await refusals(connection, *tries) == [subject for _, subject in tries]
        assert await refusals(connection, *(("publish", subject) for subject in OWN[service])) == []


async def test_what_is_refused_has_no_effect(world: World) -> None:
    async with world.service("evaluator") as evaluator, world.service("gateway") as gateway:
        before = (await gateway.js.stream_info("KV_TOKENS")).state.last_seq
        await refusals(evaluator, ("publish", "$KV.TOKENS.0a1b"), ("publish", f"{API}.STREAM.DELETE.KV_TOKENS"))
        assert (await gateway.js.stream_info("KV_TOKENS")).state.last_seq == before
    # What tests of whole installations look for.
    assert any("$KV.TOKENS.0a1b" in line for line in world.nats.violations)


async def test_an_evaluator_answers_a_request_once(world: World) -> None:
    async with world.service("evaluator") as evaluator, world.service("gateway") as gateway:

        async def twice(msg: Msg) -> None:
            asked.append(msg.reply)
            await evaluator.client.publish(msg.reply, b"first")
            await evaluator.client.publish(msg.reply, b"second")

        asked: list[str] = []
        await evaluator.client.subscribe("call.gpu", cb=twice)
        await until(lambda: world.nats.hears("call.gpu"))
        inbox = gateway.client.new_inbox()
        answers = await gateway.client.subscribe(inbox)
        await gateway.client.publish("call.gpu", b"", reply=inbox)
        assert (await answers.next_msg(timeout=5)).data == b"first"
        with pytest.raises(nats.errors.TimeoutError):
            await answers.next_msg(timeout=0.3)
        assert await refusals(evaluator, ("publish", inbox)) == [inbox]


async def test_nobody_gets_in_without_certificate_and_key(world: World, tmp_path: Path) -> None:
    known = world.login("gateway")
    stranger = certificates.make(tmp_path / "stranger")
    make_keys(tmp_path / "keys")
    unknown = (tmp_path / "keys" / "gateway.seed").read_text().strip()
    plain = NatsServer().start(tmp_path / "nats")
    token = world.nats.url.replace("//", "//secret@")
    try:
        tries = {
            "certificate and key": world.enters(known),
            "no certificate": world.enters(replace(known, cert="", key="")),
            "a stranger's certificate": world.enters(
                replace(known, cert=stranger.path("client.pem"), key=stranger.path("client.key"))
            ),
            "no key": world.enters(replace(known, seed="")),
            "an unknown key": world.enters(replace(known, seed=unknown)),
            "a token": world.enters(replace(known, seed=""), token),
            "neither": world.enters(Login()),
            "a server from another authority": world.enters(replace(known, ca=stranger.path("ca.pem"))),
            "a server without TLS": world.enters(known, plain.url),
        }
        found = dict(zip(tries, await asyncio.gather(*tries.values()), strict=True))
    finally:
        plain.stop()
    assert found == {name: name == "certificate and key" for name in tries}


async def test_renewed_certificates_are_used_by_the_next_connection(world: World) -> None:
    """Of the same process, also after files that cannot be used."""
    folder = world.certificates.folder
    kept = folder.parent / "kept"
    shutil.copytree(folder, kept)
    try:
        async with world.service("gateway") as connection:
            (folder / "client.pem").write_text("half a certif")
            await _reconnect(connection, world.nats)
            # From another authority.
            renewed = certificates.make(folder.parent / "renewed")
            shutil.copytree(renewed.folder, folder, dirs_exist_ok=True)
            await _reconnect(connection, world.nats)
            assert await connection.answers(5)
    finally:
        shutil.copytree(kept, folder, dirs_exist_ok=True)
        world.nats.restart()


async def _reconnect(connection: bus.Bus, nats_server: NatsServer) -> None:
    before = connection.client.stats["reconnects"]
    nats_server.restart()
    await until(lambda: connection.client.stats["reconnects"] > before and connection.connected)


def test_keys_are_private_and_never_replaced(tmp_path: Path) -> None:
    make_keys(tmp_path)
    seeds = {user: (tmp_path / f"{user}.seed").read_text() for user in rights.USERS}
    assert {stat.S_IMODE((tmp_path / f"{user}.seed").stat().st_mode) for user in rights.USERS} == {0o600}
    with pytest.raises(InvalidRequestError, match="already has the seed of setup"):
        make_keys(tmp_path)
    assert {user: (tmp_path / f"{user}.seed").read_text() for user in rights.USERS} == seeds


def test_a_key_and_its_successor_have_the_same_rights(tmp_path: Path) -> None:
    make_keys(tmp_path / "old")
    make_keys(tmp_path / "new")
    shutil.copy(tmp_path / "new" / "gateway.pub", tmp_path / "old" / "gateway-2.pub")
    written = read_users(tmp_path / "old")
    keys = [public_key((tmp_path / which / "gateway.seed").read_text().strip()) for which in ("old", "new")]
    blocks = [written[written.index(f"nkey: {key}") :].split("nkey: ")[1].replace(key, "KEY") for key in keys]
    assert blocks[0].partition("# ")[0] == blocks[1].partition("# ")[0]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("stranger.pub", "UAAA", "public key of an nkey user"),
        ("gateway.pub", "SUAKEY", "public key of an nkey user"),
        ("gateway.pub", None, "no public key of gateway"),
    ],
)
def test_wrong_public_keys_are_named(tmp_path: Path, name: str, text: str | None, words: str) -> None:
    make_keys(tmp_path)
    if text is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(text)
    with pytest.raises(InvalidRequestError, match=words):
        read_users(tmp_path)
