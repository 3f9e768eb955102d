"""The NATS that the repository installs accepts the chart's configuration, and does what services ask of it."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import nats
import pytest

from deploy.local.ports import free_port
from services.bus.connection import require_sync
from tests.chart.rendered import Object, component, config_files, container, of_kind, render, values_files
from tests.nats_server import binary
from tests.waiting import until

FILES = values_files()
TOKEN = "0123456789"
"""NATS would read this as a number."""


def node(values: Object) -> tuple[Object, list[Object]]:
    objects = render(values)
    (found,) = [one for one in of_kind(objects, "StatefulSet") if component(one) == "nats"]
    return found, objects


def configuration(values: Object) -> str:
    workload, objects = node(values)
    ((path, text),) = config_files(workload, objects)
    assert container(workload)["command"] == ["nats-server", "--config", str(path)]
    return text


def variables() -> dict[str, str]:
    return {**os.environ, "POD_NAME": "trial-nats-0", "QUOTED_TOKEN": f'"{TOKEN}"'}


def gigabytes(text: str) -> float:
    number, unit = text.rstrip("BGMTi"), text.strip("0123456789")
    return float(number) * {"GB": 1e9, "TB": 1e12, "Gi": 2**30, "Ti": 2**40}[unit] / 1e9


@pytest.mark.parametrize("file", FILES)
def test_nats_accepts_the_configuration(file: str, tmp_path: Path) -> None:
    path = tmp_path / "nats.conf"
    path.write_text(configuration(FILES[file]))
    command = [binary(), "-t", "--config", str(path)]
    tried = subprocess.run(command, env=variables(), capture_output=True, text=True, check=False, timeout=30)
    assert tried.returncode == 0, tried.stderr


@pytest.mark.parametrize("file", FILES)
def test_nats_stores_less_than_its_volume_has(file: str) -> None:
    workload, objects = node(FILES[file])
    ((_, text),) = config_files(workload, objects)
    stored = text.partition("max_file_store: ")[2].split()[0]
    size = workload["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"]
    assert gigabytes(stored) < 0.95 * gigabytes(size)


def test_a_node_syncs_every_write_and_takes_its_token(tmp_path: Path) -> None:
    port, monitor = free_port(), free_port()
    text = configuration(FILES["small"])
    for there, here in (
        ("0.0.0.0:4222", f"127.0.0.1:{port}"),
        ("0.0.0.0:8222", f"127.0.0.1:{monitor}"),
        ("/run/nats", str(tmp_path)),
        ("/var/lib/nats", str(tmp_path / "streams")),
    ):
        assert there in text
        text = text.replace(there, here)
    (tmp_path / "nats.conf").write_text(text)
    command = [binary(), "--config", str(tmp_path / "nats.conf")]
    process = subprocess.Popen(command, env=variables(), stderr=subprocess.DEVNULL)
    try:
        asyncio.run(use(tmp_path, port, monitor))
    finally:
        process.terminate()
        process.wait(30)


async def use(folder: Path, port: int, monitor: int) -> None:
    await until((folder / "nats.pid").exists)
    client = await nats.connect(f"nats://{TOKEN}@127.0.0.1:{port}", connect_timeout=10)
    assert client.max_payload == 2**20
    await client.close()
    await require_sync(f"http://127.0.0.1:{monitor}", all_nodes=True)
