"""Backups in an S3-compatible store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local.recovery.restore import restore
from deploy.local.settings import LaunchError
from services import bus
from services.errors import InvalidRequestError
from services.results.backups import manifest
from tests.integration.test_backup_during_ingest import backed_up_and_restored
from tests.integration.test_backups import Installation, begun
from tests.integration.test_results_service import publish
from tests.s3.server import BUCKET, KEYS, S3Server

pytestmark = pytest.mark.s3
PLACE = f"s3://{BUCKET}/backups"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    made = S3Server(tmp_path)
    for name, value in (KEYS | {"TOUCHSTONE_BACKUP_DIR": PLACE, "TOUCHSTONE_S3_URL": made.url}).items():
        monkeypatch.setenv(name, value)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def made(server: S3Server, tmp_path: Path) -> Iterator[Installation]:
    installation = Installation(tmp_path)
    yield installation
    if installation.service.process is not None and installation.service.process.poll() is None:
        installation.service.end()
    installation.nats.kill()


async def test_a_backup_during_ingest_has_no_gap(made: Installation, server: S3Server) -> None:
    place = await backed_up_and_restored(made)
    assert place.startswith(f"{PLACE}/20")
    assert not (made.state / "backups").exists()
    assert not (made.state / "results" / "backing-up").exists()
    log = made.service.log.read_text()
    assert not any(key in log for key in (KEYS["AWS_ACCESS_KEY_ID"], KEYS["AWS_SECRET_ACCESS_KEY"]))


async def test_a_damaged_or_incomplete_backup_is_refused_and_goes_with_the_next(
    made: Installation, server: S3Server
) -> None:
    connection = await begun(made)
    await publish(connection, "early", range(3))
    await made.hears()

    async def backup() -> str:
        answer = json.loads((await connection.client.request(bus.BACKUPS, timeout=120)).data)
        return str(answer.get("folder") or answer["error"])

    place = await backup()
    name = place.removeprefix(f"s3://{BUCKET}/")
    objects = await asyncio.to_thread(server.objects, name)
    assert set(objects) == {manifest.FILE, manifest.DATABASE, *(f"{stream}.stream" for stream in bus.BACKED_UP)}
    server.put("backups/2026-11-01T00-00-00Z/touchstone.duckdb", b"cut short")
    server.put(f"{name}/AUDIT.stream", objects["AUDIT.stream"][:-1])
    await asyncio.sleep(1.1)
    assert (await backup()).startswith(PLACE)
    assert await asyncio.to_thread(server.objects, "backups/2026-11-01T00-00-00Z") == {}
    server.stop()
    assert "The backup cannot be written" in await backup()
    await connection.close()
    await made.stop()
    await asyncio.to_thread(server.start)
    for file, content in objects.items():
        server.put(f"{name}/{file}", content if file != "AUDIT.stream" else content[:-1])
    with pytest.raises(LaunchError, match=rf"The backup {place} is damaged: AUDIT.stream has changed"):
        await asyncio.to_thread(restore, place, made.state, print)
    with pytest.raises(InvalidRequestError, match="is not a backup"):
        await asyncio.to_thread(restore, f"{PLACE}/2026-11-01T00-00-00Z", made.state, print)
