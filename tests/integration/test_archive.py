"""An archive that a running results service writes, and an installation that is restored from it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local.recovery.archived import restore_archive
from deploy.local.recovery.check import check
from deploy.local.recovery.exchange import NOTE
from deploy.local.recovery.repair import repair
from deploy.local.settings import LaunchError
from services import rpc
from services.errors import UnavailableError
from services.results.archive import versions
from services.results.stores.folder import Folder
from tests.integration.test_backups import Installation, begun
from tests.integration.test_results_recovery import check_all_within, said_all
from tests.waiting import until
from touchstone.v1 import results_service_pb2_grpc

pytestmark = pytest.mark.stack


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Installation]:
    installation = Installation(tmp_path)
    installation.service.environment["TOUCHSTONE_ARCHIVE"] = str(tmp_path / "archive")
    yield installation
    if installation.service.process is not None and installation.service.process.poll() is None:
        installation.service.end()
    installation.nats.kill()


async def test_an_installation_that_lost_everything_comes_back_from_its_archive(
    made: Installation, tmp_path: Path
) -> None:
    place, store = str(tmp_path / "archive"), Folder(tmp_path / "archive")
    async with rpc.channel(made.service.address) as channel:
        stub = results_service_pb2_grpc.ResultsServiceStub(channel)
        connection = await begun(made)
        await said_all(stub, connection)

        def tables(job_id: str) -> set[str]:
            newest = versions.manifests(store.names(f"jobs/{job_id}"))[:1]
            return {file.table for name in newest for file in versions.read(store, job_id, name).files}

        # Half a minute after somebody has said something.
        await until(lambda: "annotations" in tables("old") and "marks" in tables("new"), within=120)
        await connection.close()
        await made.stop()

        for folder in ("results", "nats/jetstream"):
            shutil.rmtree(made.state / folder)
        (tmp_path / "file").touch()
        with pytest.raises(UnavailableError, match="cannot be read"):
            await asyncio.to_thread(restore_archive, str(tmp_path / "file"), made.state, (), made.said.append)
        assert not (made.state / NOTE).exists(), "nothing has changed"
        await asyncio.to_thread(restore_archive, place, made.state, (), made.said.append)
        assert made.said[-2:] == [f"2 jobs restored from the archive {place}.", "Restored. Start Touchstone."]
        made.start()
        await check_all_within(stub)
        await made.stop()
        assert await asyncio.to_thread(check, made.state, made.said.append, store) == 0, made.said

        database = made.service.database
        shutil.rmtree(database.parent / "jobs")
        database.write_bytes(b"\0" * 12_288 + database.read_bytes()[12_288:])
        with pytest.raises(LaunchError, match="repair --archive"):
            await asyncio.to_thread(restore_archive, place, made.state, (), made.said.append)
        await asyncio.to_thread(repair, made.state, made.said.append, store)
        made.start()
        await check_all_within(stub)
        await made.stop()
        (manifest,) = versions.manifests(store.names("jobs/old"))[:1]
        (tmp_path / "archive" / "jobs" / "old" / manifest).write_bytes(b"{}")
        assert await asyncio.to_thread(check, made.state, made.said.append, store) == 1
        assert manifest in made.said[-1]
