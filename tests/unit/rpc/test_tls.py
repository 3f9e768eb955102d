"""TLS of the public services and of everyone who calls them."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from deploy.local import health
from deploy.local.ports import free_port
from services import rpc
from services.errors import InvalidRequestError
from tests.certificates import Certificates, make
from tests.unit.client.fakes import serving
from touchstone.v1 import queue_pb2, scheduler_service_pb2, scheduler_service_pb2_grpc
from touchstone_client import AsyncClient, Client, Settings, UnreachableError

NAME = "touchstone.v1.SchedulerService"
SHORT_S = 0.4
"""For calls that cannot succeed."""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make(tmp_path_factory.mktemp("certificates"))


def register(slots: int, server: Any) -> None:
    async def queue(request: Any, context: Any) -> scheduler_service_pb2.GetQueueResponse:
        return scheduler_service_pb2.GetQueueResponse(queue=queue_pb2.Queue(slots=slots))

    asked, told = scheduler_service_pb2.GetQueueRequest, scheduler_service_pb2.GetQueueResponse
    handler = grpc.unary_unary_rpc_method_handler(queue, asked.FromString, told.SerializeToString)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(NAME, {"GetQueue": handler}),))


@asynccontextmanager
async def server(tls: rpc.Tls) -> AsyncIterator[str]:
    address = f"127.0.0.1:{free_port()}"
    async with rpc.serve(address, rpc.Authenticator(None, ""), [(register, 3, NAME)], tls=tls, grace_s=0) as made:
        await made.set_ready(True)
        yield address


async def slots(address: str, tls: rpc.Tls, timeout_s: float = 60) -> int:
    async with rpc.channel(address, tls) as channel:
        stub = scheduler_service_pb2_grpc.SchedulerServiceStub(channel)
        request = scheduler_service_pb2.GetQueueRequest()
        return (await stub.GetQueue(request, timeout=timeout_s, wait_for_ready=False)).queue.slots


def settings(address: str, tls: rpc.Tls, timeout_s: float = 60) -> Settings:
    return Settings(
        scheduler=address,
        results=address,
        timeout_s=timeout_s,
        tls_ca=tls.ca,
        tls_client_cert=tls.client_cert,
        tls_client_key=tls.client_key,
    )


async def test_services_and_clients_meet_over_tls(certificates: Certificates) -> None:
    one_sided = {k: v for k, v in certificates.server.items() if "CLIENT" not in k}
    tls = rpc.Tls.from_env(one_sided)
    async with server(tls) as address:
        assert await slots(address, tls) == 3
        async with AsyncClient(settings(address, tls)) as client:
            assert (await client.queue()).slots == 3
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await slots(address, rpc.PLAIN, SHORT_S)
        assert raised.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


async def test_a_stranger_is_not_trusted(certificates: Certificates) -> None:
    tls = rpc.Tls.from_env({k: v for k, v in certificates.server.items() if "CLIENT" not in k})
    async with server(tls) as address:
        wrong = rpc.Tls(ca=certificates.path("stranger.pem"))
        async with AsyncClient(settings(address, wrong, 5)) as client:
            with pytest.raises(UnreachableError, match=r"is not from an authority in TOUCHSTONE_TLS_CA"):
                await client.queue()


async def test_with_a_client_authority_nobody_gets_in_without_a_certificate(certificates: Certificates) -> None:
    tls = rpc.Tls.from_env(certificates.server)
    bare = rpc.Tls(ca=tls.ca)
    async with server(tls) as address:
        assert await slots(address, tls) == 3
        with pytest.raises(grpc.aio.AioRpcError):
            await slots(address, bare, SHORT_S)
        async with asyncio.timeout(60):
            while not await health.grpc_health(address, tls.channel_credentials())():
                pass  # its own two seconds may be over on a busy machine
        assert not await health.grpc_health(address, bare.channel_credentials())()
        assert not await health.grpc_health(address)()


async def test_reflection_is_behind_the_same_door(certificates: Certificates) -> None:
    tls = rpc.Tls.from_env(certificates.server)
    async with server(tls) as address:

        def services_seen(seen: rpc.Tls) -> list[str]:
            credentials = seen.channel_credentials()
            assert credentials is not None
            with grpc.secure_channel(address, credentials) as channel:
                return list(ProtoReflectionDescriptorDatabase(channel).get_services())

        assert "touchstone.v1.SchedulerService" in await asyncio.to_thread(services_seen, tls)
        with pytest.raises(grpc.RpcError):
            await asyncio.to_thread(services_seen, rpc.Tls(ca=tls.ca))


async def test_a_server_shows_renewed_certificates_to_new_connections_and_keeps_the_others(tmp_path: Path) -> None:
    before, after = make(tmp_path / "before"), make(tmp_path / "after")
    shown = make(tmp_path / "shown").folder
    shutil.copytree(before.folder, shown, dirs_exist_ok=True)
    old, new = rpc.Tls.from_env(before.server), rpc.Tls.from_env(after.server)
    tls = rpc.Tls.from_env(Certificates(shown).server)
    async with server(tls) as address, rpc.channel(address, old) as kept:
        kept_stub = scheduler_service_pb2_grpc.SchedulerServiceStub(kept)
        request = scheduler_service_pb2.GetQueueRequest()
        assert (await kept_stub.GetQueue(request, timeout=60)).queue.slots == 3
        # The key comes first: until its certificate is there, too, the server shows the pair of before.
        shutil.copy(after.folder / "server.key", shown / "server.key")
        assert await slots(address, old) == 3
        for name in ("server.pem", "ca.pem"):
            shutil.copy(after.folder / name, shown / name)
        assert await slots(address, new) == 3
        with pytest.raises(grpc.aio.AioRpcError):
            await slots(address, old, SHORT_S)
        assert (await kept_stub.GetQueue(request, timeout=60)).queue.slots == 3


def test_the_waiting_client_shows_its_certificate(certificates: Certificates) -> None:
    tls = rpc.Tls.from_env(certificates.server)
    with serving(tls.server_credentials()) as fakes:
        fakes.answers["GetQueue"] = scheduler_service_pb2.GetQueueResponse(queue=queue_pb2.Queue(slots=2))
        with Client(settings(fakes.address, tls)) as client:
            assert client.queue().slots == 2
        with Client(settings(fakes.address, rpc.Tls(ca=tls.ca), SHORT_S)) as client, pytest.raises(UnreachableError):
            client.queue()


async def test_health_of_a_tls_server_says_when_it_is_ready(certificates: Certificates) -> None:
    tls = rpc.Tls.from_env(certificates.server)
    async with server(tls) as address, rpc.channel(address, tls) as channel:
        answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=60)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["CERT"], "TOUCHSTONE_TLS_CERT is set but TOUCHSTONE_TLS_KEY is not"),
        (["KEY"], "TOUCHSTONE_TLS_KEY is set but TOUCHSTONE_TLS_CERT is not"),
        (["CERT", "KEY"], "TOUCHSTONE_TLS_CERT is set but TOUCHSTONE_TLS_CA is not"),
        (["CLIENT_CA"], "TOUCHSTONE_TLS_CLIENT_CA is set but TOUCHSTONE_TLS_CERT is not"),
        (["CERT", "KEY", "CA", "CLIENT_CA"], "TOUCHSTONE_TLS_CLIENT_CERT is not"),
        (["CLIENT_CERT", "CA"], "TOUCHSTONE_TLS_CLIENT_KEY is not"),
    ],
)
def test_half_a_setting_is_refused(given: list[str], said: str) -> None:
    with pytest.raises(InvalidRequestError, match=said):
        rpc.Tls.from_env({f"TOUCHSTONE_TLS_{name}": "x.pem" for name in given})


def test_without_settings_there_is_no_tls() -> None:
    tls = rpc.Tls.from_env({"TOUCHSTONE_AUTH": "token"})
    assert tls == rpc.PLAIN
    assert (tls.server_credentials(), tls.channel_credentials()) == (None, None)


def test_files_that_are_not_what_they_should_be_are_named(certificates: Certificates) -> None:
    missing = rpc.Tls(cert="/nowhere.pem", key=certificates.path("server.key"))
    with pytest.raises(InvalidRequestError, match=r"TOUCHSTONE_TLS_CERT names /nowhere\.pem, which cannot be read"):
        missing.server_credentials()
    mixed = rpc.Tls(cert=certificates.path("server.pem"), key=certificates.path("client.key"))
    with pytest.raises(InvalidRequestError, match="are not a PEM certificate and its unencrypted key"):
        mixed.server_credentials()
    rubbish = rpc.Tls(ca=certificates.path("server.key"))
    with pytest.raises(InvalidRequestError, match="contains no PEM certificates"):
        rubbish.channel_credentials()


def test_public_authorities_need_no_file() -> None:
    assert rpc.Tls(ca="system").channel_credentials() is not None
