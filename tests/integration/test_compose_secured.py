"""deploy/compose/secured.yml: with the files that its documentation makes, NATS and the services accept each other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.local.ports import free_port
from services import bus, rpc
from services.errors import InvalidRequestError
from tests.nats_server import binary
from tests.stack import until
from tests.unit.test_compose import DEFAULT, FOLDER, environment, services

PLACE = "/etc/touchstone/"
CALLERS = {*DEFAULT - {"nats"}, "replica"}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder `secured`."""
    folder = tmp_path_factory.mktemp("compose") / "secured"
    hosts = [word for name in ("nats", "results", "scheduler") for word in ("--host", name)]
    python("deploy.certificates", str(folder), *hosts)
    python("services.bus", "keys", str(folder))
    (folder / "users.conf").write_text(python("services.bus", "rights", str(folder)))
    return folder


def python(*words: str, **environ: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", *words], env=os.environ | environ, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def mounted(service: str, secured: Path, folder: Path) -> None:
    """Puts what the service finds at /etc/touchstone into the folder."""
    folder.mkdir()
    for volume in services("secured.yml")[service]["volumes"]:
        source, target, mode = volume.split(":")
        assert mode == "ro"
        found = secured.parent / source if "/secured/" in source else FOLDER / source
        (folder / target.removeprefix(PLACE)).write_bytes(found.read_bytes())


def variables(service: str, secured: Path, folder: Path, url: str, monitor: str) -> dict[str, str]:
    """Those of secured.yml over those of compose.yml, for this machine."""
    mounted(service, secured, folder)
    usual = environment(service) if service in services() else {}
    given = {**usual, **environment(service, file="secured.yml")}
    given = {name: value.replace(PLACE, f"{folder}/") for name, value in given.items()}
    return {**given, "TOUCHSTONE_NATS_URL": url, "TOUCHSTONE_NATS_MONITOR_URL": monitor}


def start(config: Path, log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as opened:
        return subprocess.Popen([binary(), "--config", str(config)], stdout=opened, stderr=opened)


async def test_services_use_their_own_keys(secured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port, monitor_port = free_port(), free_port()
    monitor = f"http://127.0.0.1:{monitor_port}"
    mounted("nats", secured, tmp_path / "nats")
    config = tmp_path / "nats/nats-secured.conf"
    text = config.read_text().replace(PLACE, f"{tmp_path}/nats/").replace("/var/lib/touchstone", str(tmp_path))
    config.write_text(
        text.replace("0.0.0.0:4222", f"127.0.0.1:{port}").replace("0.0.0.0:8222", f"127.0.0.1:{monitor_port}")
    )
    server = start(config, tmp_path / "nats.log")
    try:
        until(lambda: "Server is ready" in (tmp_path / "nats.log").read_text(), 60)
        url = f"tls://127.0.0.1:{port}"
        said = python("services.bus", **variables("setup", secured, tmp_path / "setup", url, monitor))
        assert "NATS is set up" in said
        for service in CALLERS:
            given = variables(service, secured, tmp_path / service, url, monitor)
            with monkeypatch.context() as here:
                for name, value in given.items():
                    here.setenv(name, value)
                settings = bus.Settings.from_env()
                connected = await bus.connect(settings.url, service, settings.login)
                await connected.close()
                assert rpc.Tls.from_env().channel_credentials() is not None
                here.delenv("TOUCHSTONE_NATS_TLS_CERT")
                with pytest.raises(InvalidRequestError, match="TOUCHSTONE_NATS_TLS_CERT"):
                    bus.Settings.from_env()
    finally:
        server.terminate()
        server.wait(30)
    assert "Authorization Violation" not in (tmp_path / "nats.log").read_text()


def test_each_container_has_its_own_secrets_only() -> None:
    for service, made in services("secured.yml").items():
        secrets = {volume.partition(":")[0] for volume in made["volumes"] if ".seed:" in volume or ".key:" in volume}
        owner = {"setup": "client", "evaluator-gpu": "evaluator", "replica": "results"}.get(service, service)
        seed = service if service in ("setup", "replica") else owner
        expected = {f"./secured/{owner}.key"} | ({f"./secured/{seed}.seed"} if service != "nats" else set())
        assert secrets == expected, service
