"""The NATS that the repository installs accepts the chart's configuration, and does what services ask of it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import nats
import pytest

from deploy.local.ports import free_port
from services.bus.connection import require_sync
from tests.chart.rendered import (
    SEEDS,
    Object,
    component,
    config_files,
    container,
    environ,
    of_kind,
    pod,
    render,
    values_files,
)
from tests.chart.settings import certificate
from tests.nats_server import binary
from tests.waiting import until

FILES = values_files()
TOKEN = "0123456789"
"""NATS would read this as a number."""


def node(values: Object) -> tuple[Object, list[Object]]:
    objects = render(values)
    (found,) = [one for one in of_kind(objects, "StatefulSet") if component(one) == "nats"]
    return found, objects


def prepared(values: Object, folder: Path, ports: Mapping[str, int] | None = None) -> list[str]:
    """Writes a node's files into the folder, with everything that it names there; returns the command that starts it.
    `ports` are used instead of the chart's."""
    workload, objects = node(values)
    moved = {f'"{path}/': f'"{folder}/' for path in ("/etc/nats-tls", "/run/nats", "/var/lib")}
    moved |= {f"0.0.0.0:{there}": f"127.0.0.1:{here}" for there, here in (ports or {}).items()}
    for path, text in config_files(workload, objects):
        for there, here in moved.items():
            text = text.replace(there, here)
        (folder / path.name).write_text(text)
    for name, text in zip(("tls.crt", "tls.key", "ca.crt"), certificate(), strict=True):
        (folder / name).write_text(text)
    assert container(workload)["command"] == ["nats-server", "--config", "/etc/nats/nats.conf"]
    return [binary(), "--config", str(folder / "nats.conf")]


def variables() -> dict[str, str]:
    return {**os.environ, "POD_NAME": "trial-nats-0", "QUOTED_TOKEN": f'"{TOKEN}"'}


def gigabytes(text: str) -> float:
    number, unit = text.rstrip("BGMTi"), text.strip("0123456789")
    return float(number) * {"GB": 1e9, "TB": 1e12, "Gi": 2**30, "Ti": 2**40}[unit] / 1e9


@pytest.mark.parametrize("file", FILES)
def test_nats_accepts_the_configuration(file: str, tmp_path: Path) -> None:
    command = [*prepared(FILES[file], tmp_path), "-t"]
    tried = subprocess.run(command, env=variables(), capture_output=True, text=True, check=False, timeout=30)
    assert tried.returncode == 0, tried.stderr


@pytest.mark.parametrize("file", FILES)
def test_nats_stores_less_than_its_volume_has(file: str) -> None:
    workload, objects = node(FILES[file])
    text = dict(config_files(workload, objects))[Path("/etc/nats/nats.conf")]
    stored = text.partition("max_file_store: ")[2].split()[0]
    size = workload["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"]
    assert gigabytes(stored) < 0.95 * gigabytes(size)


@contextmanager
def running(values: Object, folder: Path) -> Iterator[tuple[int, int, subprocess.Popen[bytes]]]:
    """A single node: its ports for clients and for its state, and its process."""
    port, monitor = free_port(), free_port()
    command = prepared(values, folder, {"4222": port, "8222": monitor})
    process = subprocess.Popen(command, env=variables(), stderr=subprocess.DEVNULL)
    try:
        asyncio.run(until((folder / "nats.pid").exists))
        yield port, monitor, process
    finally:
        process.terminate()
        process.wait(30)


def test_a_node_syncs_every_write_and_takes_its_token(tmp_path: Path) -> None:
    async def use(port: int, monitor: int) -> None:
        client = await nats.connect(f"nats://{TOKEN}@127.0.0.1:{port}", connect_timeout=10)
        assert client.max_payload == 2**20
        await client.close()
        await require_sync(f"http://127.0.0.1:{monitor}", all_nodes=True)

    with running(FILES["small"], tmp_path) as (port, monitor, _):
        asyncio.run(use(port, monitor))


@pytest.mark.stack
def test_a_stopping_node_sends_its_clients_away_first(tmp_path: Path) -> None:
    """Kubernetes runs the command, and then sends SIGTERM at once."""
    workload, _ = node(FILES["small"])
    command = container(workload)["lifecycle"]["preStop"]["exec"]["command"]
    assert command[:2] == ["nats-server", "--signal"]

    async def stop(port: int, process: subprocess.Popen[bytes]) -> float:
        left = asyncio.Event()

        async def closed() -> None:
            left.set()

        await nats.connect(f"nats://{TOKEN}@127.0.0.1:{port}", allow_reconnect=False, closed_cb=closed)
        began = time.monotonic()
        signal = command[2].replace("/run/nats", str(tmp_path))
        ran = await asyncio.create_subprocess_exec(binary(), "--signal", signal)
        assert await ran.wait() == 0
        process.terminate()
        await left.wait()
        await until(lambda: process.poll() is not None)
        return time.monotonic() - began

    with running(FILES["small"], tmp_path) as (port, _, process):
        taken = asyncio.run(stop(port, process))
    # The ten seconds before it sends the first one away show that SIGTERM did not end it.
    assert 9 < taken < pod(workload)["terminationGracePeriodSeconds"] - 10


@pytest.mark.stack
def test_the_job_sets_up_a_node_with_users_and_tls(tmp_path: Path) -> None:
    nats_values = {**FILES["small"]["nats"], **FILES["rights"]["nats"]}
    values = {**FILES["small"], **FILES["tls"], "nats": nats_values}
    with running(values, tmp_path) as (port, monitor, _):
        (job,) = of_kind(render(values), "Job")
        (tmp_path / "seed").write_text(SEEDS["setup"])
        given = {}
        for variable, value in environ(job).items():
            for there, here in (
                ("/etc/touchstone/tls/", f"{tmp_path}/"),
                ("/etc/touchstone/nats/", f"{tmp_path}/"),
                ("trial-nats-0.trial-nats.bench.svc:4222", f"localhost:{port}"),
                ("trial-nats-0.trial-nats.bench.svc:8222", f"127.0.0.1:{monitor}"),
            ):
                value = value.replace(there, here)
            given[variable] = value
        command = [sys.executable, *container(job)["command"][1:]]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("TOUCHSTONE_")}
        ran = subprocess.run(
            command, env={**inherited, **given}, capture_output=True, text=True, check=False, timeout=120
        )
        assert ran.returncode == 0, ran.stderr
        assert "every stream is there" in ran.stdout
