"""A whole installation with keys, least rights and mutual TLS everywhere, whose certificates are renewed while it
works."""

from __future__ import annotations

import asyncio
import signal
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from deploy import certificates
from services import rpc
from services.bus.__main__ import make_keys, read_users
from tests.hosts.processes import SCHEDULERS, SERVICES, Hosts
from tests.nats_server import NatsCluster
from touchstone.v1 import job_pb2
from touchstone_client import AsyncClient, Settings, suite_spec

pytestmark = pytest.mark.stack

ITEMS = 1600
MODELS = ("majority", "random", "bag-of-words")
START_S = 120.0


class Secured(Hosts):
    """Each service has its key and its certificate."""

    def __init__(self, folder: Path) -> None:
        self.keys, self.certificates = folder / "keys", folder / "certificates"
        make_keys(self.keys)
        certificates.make(self.certificates)
        of_nats = (
            f'cert_file: "{self.pem("nats")}", key_file: "{self.key("nats")}", ca_file: "{self.pem("ca")}", '
            "verify: true"
        )
        access = f"{read_users(self.keys)}tls {{ {of_nats} }}"
        super().__init__(folder, NatsCluster(folder / "nats", access=access, among=f"tls {{ {of_nats} }}"))
        self.trusted = rpc.Tls(
            ca=self.pem("ca"), client_cert=self.pem("client"), client_key=self.key("client")
        ).channel_credentials()

    def pem(self, name: str) -> str:
        return str(self.certificates / f"{name}.pem")

    def key(self, name: str) -> str:
        return str(self.certificates / f"{name}.key")

    def environ(self, name: str) -> dict[str, str]:
        service = name.partition("-")[0]
        # The setup has a key only; it calls no service.
        own = service if service != "setup" else "client"
        return super().environ(name) | {
            "TOUCHSTONE_NATS_NKEY_SEED_FILE": str(self.keys / f"{service}.seed"),
            "TOUCHSTONE_NATS_TLS_CA": self.pem("ca"),
            "TOUCHSTONE_NATS_TLS_CERT": self.pem(own),
            "TOUCHSTONE_NATS_TLS_KEY": self.key(own),
            "TOUCHSTONE_TLS_CERT": self.pem(own),
            "TOUCHSTONE_TLS_KEY": self.key(own),
            "TOUCHSTONE_TLS_CLIENT_CA": self.pem("ca"),
            "TOUCHSTONE_TLS_CA": self.pem("ca"),
            "TOUCHSTONE_TLS_CLIENT_CERT": self.pem(own),
            "TOUCHSTONE_TLS_CLIENT_KEY": self.key(own),
        }

    def client(self, token: str) -> Settings:
        tls = self.pem("ca"), self.pem("client"), self.key("client")
        return Settings(",".join(map(self.address, SCHEDULERS)), self.address("results"), token, *tls)

    async def set_up(self) -> None:
        command = (sys.executable, "-m", "services.bus")
        made = await asyncio.create_subprocess_exec(*command, env=self.environ("setup"), stdout=-1, stderr=-1)
        said, trouble = await asyncio.wait_for(made.communicate(), START_S)
        assert b"NATS is set up" in said, trouble

    async def shown(self, name: str) -> bytes:
        """The certificate that a service shows to a new connection."""
        context = ssl.create_default_context(cafile=self.pem("ca"))
        context.load_cert_chain(self.pem("client"), self.key("client"))
        context.set_alpn_protocols(["h2"])
        host, _, port = self.address(name).rpartition(":")
        _, writer = await asyncio.open_connection(host, int(port), ssl=context, server_hostname=host)
        try:
            found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            return found
        finally:
            writer.close()


@asynccontextmanager
async def secured(folder: Path) -> AsyncIterator[Secured]:
    made = Secured(folder)
    try:
        made.cluster.start()
        await made.set_up()
        made.start(*SERVICES)
        await made.until_ready(*SERVICES)
        yield made
    finally:
        made.close()
        made.cluster.stop()


async def test_certificates_are_renewed_during_jobs_without_loss(tmp_path: Path) -> None:
    async with secured(tmp_path / "secured") as made, AsyncClient(made.client(made.token())) as client:
        jobs = [str((await client.run(suite_spec("demo", endpoint="baseline", model=MODELS[0]))).job_id)]
        before = {name: await made.shown(name) for name in ("results", "evaluator-1")}
        certificates.renew(made.certificates)
        # Servers show them to new connections at once.
        for name, old in before.items():
            assert await made.shown(name) != old, name
        # NATS and the connections of services, one after the other.
        for node in made.cluster.nodes:
            node.reload()
        for name, model in zip(SERVICES, (*MODELS[1:], *MODELS), strict=False):
            jobs.append(str((await client.run(suite_spec("demo", endpoint="baseline", model=model))).job_id))
            made.end(name, signal.SIGTERM)
            made.start(name)
            await made.until_ready(name)
        for job_id in jobs:
            ended = await client.wait(job_id, timeout_s=180)
            assert ended.state == job_pb2.Job.STATE_COMPLETED, ended
            items = [(item.task, item.result.item, item.result.repeat) async for item in client.items(job_id)]
            assert len(items) == len(set(items)) == ITEMS
        for node in made.cluster.nodes:
            assert "Reloaded: tls" in node._log.read_text()
            assert node.violations == []
