"""`touchstone check`: reads everything that is stored, and says what is wrong and what to do."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import duckdb

from deploy.local.recovery import losses
from deploy.local.recovery.exchange import DATABASE
from deploy.local.recovery.offline_nats import copied_nats
from deploy.local.recovery.streams import has_stream, has_streams, stream_faults
from deploy.local.settings import LaunchError
from deploy.local.state import StateDir
from services import bus
from services.bus.contract import object_stream
from services.errors import TouchstoneError, UnavailableError
from services.results.archive.restoring import faults, lost_items
from services.results.backups.checking import database_faults
from services.results.storage.database import not_a_database
from services.results.storage.job_files import is_whole
from services.results.stores.store import Store

Say = Callable[[str], None]

_COPY = "check.copy"
_OF_DATABASE = "Stop Touchstone, then run `touchstone restore BACKUP` or `touchstone repair`."
_OF_STREAMS = (
    "Stop Touchstone, then run `touchstone restore BACKUP`. Without a backup, just start it: lost jobs end as failed."
)
_OF_DESCRIPTIONS = "Stop Touchstone, then run `touchstone restore BACKUP`, or `touchstone repair` without a backup."
_OF_LOSSES = (
    f"Stop Touchstone, then run `touchstone restore BACKUP`. Without a backup, delete the file {losses.NOTE} in the "
    "state directory: lost data does not come back."
)
_OF_JOB_FILES = (
    "A repair does not use it. If the database is intact, delete it: Touchstone writes it again after the next start."
)
_OF_DATASETS = "Upload the dataset again, or restore a backup."


def check(state_dir: Path, say: Say, archive: Store | None = None) -> int:
    """Prints a sentence for each fault and returns their number. While Touchstone runs, it reads streams, datasets and
    an archive only.

    Raises LaunchError without a state directory, UnavailableError when NATS does not answer or the archive cannot be
    reached.
    """
    if not state_dir.is_dir():
        raise LaunchError(f"The state directory {state_dir} does not exist. Set --state-dir.")
    lost = losses.noted(state_dir)
    for loss in lost:
        say(f"{loss} {_OF_LOSSES}")
    return len(lost) + _check(state_dir, say, archive) + (_check_archive(archive, say) if archive is not None else 0)


def _check(state_dir: Path, say: Say, archive: Store | None) -> int:
    try:
        state = StateDir(state_dir.absolute())
    except LaunchError:
        say("Touchstone is running. Stop it to check the database; each backup also copies all of it.")
        return asyncio.run(_say_all(_running(), say))
    try:
        found = [*_database(state.path, archive), *_job_files(state.path / DATABASE.parent / "jobs")]
        for fault in found:
            say(fault)
        return len(found) + asyncio.run(_say_all(_stopped(state.path / "nats"), say))
    finally:
        state.close()


def _check_archive(archive: Store, say: Say) -> int:
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        try:
            for fault in faults(archive, Path(folder) / "archived"):
                say(fault)
                count += 1
        except OSError as error:
            raise UnavailableError(f"The archive {archive.place} cannot be read: {error}.") from error
    return count


async def _say_all(faults: AsyncIterator[str], say: Say) -> int:
    count = 0
    async for fault in faults:
        say(fault)
        count += 1
    return count


async def _stopped(store: Path) -> AsyncIterator[str]:
    if not has_streams(store):
        yield f"There are no streams in {store}. {_OF_STREAMS}"
        return
    async with copied_nats(store, store.with_name(f"{store.name}-{_COPY}")) as connection:
        said = set()
        async for fault in _streams(connection):
            stream = fault.removeprefix("The stream ").split(" ")[0]
            said.add(stream)
            described = f"The stream {stream} is missing." not in fault or not has_stream(store, stream)
            yield fault if described else f"The stream {stream} is damaged, and NATS cannot open it. {_OF_DESCRIPTIONS}"
        for stream, loss in losses.losses(losses.read(store.parent), await losses.reaches(connection)):
            if stream not in said:
                yield f"{loss} {_OF_STREAMS}"


async def _running() -> AsyncIterator[str]:
    settings = bus.Settings.from_env()
    connection = await bus.connect(settings.url, "check", settings.login, timeout_s=5)
    try:
        async for found in _streams(connection):
            yield found
    finally:
        await connection.close()


def _database(state_dir: Path, archive: Store | None) -> list[str]:
    """On a copy: opening a database writes its log into it."""
    place = state_dir / DATABASE
    log = place.with_suffix(".duckdb.wal")
    if not place.is_file():
        return [f"There is no database {place}. {_OF_DATABASE}"]
    if why := not_a_database(place):
        return [f"{place} cannot be read: {why}. {_OF_DATABASE}"]
    copy = place.with_name(_COPY)
    copied = [copy, copy.with_name(f"{_COPY}.wal")]
    try:
        shutil.copyfile(place, copy)
        if log.exists():
            shutil.copyfile(log, copied[1])
        with duckdb.connect(str(copy)) as connection:
            found = [f"{place}: {fault}. {_OF_DATABASE}" for fault in database_faults(connection)]
            return [*found, *(_lost_items(connection, archive) if archive is not None else [])]
    except duckdb.Error as error:
        text = str(error).splitlines()[0][:200].replace(str(copy), str(place))
        return [f"{place} cannot be read: {text}. {_OF_DATABASE}"]
    finally:
        for path in copied:
            path.unlink(missing_ok=True)


def _lost_items(connection: duckdb.DuckDBPyConnection, archive: Store) -> list[str]:
    try:
        return list(lost_items(connection, archive))
    except OSError as error:
        raise UnavailableError(f"The archive {archive.place} cannot be read: {error}.") from error


def _job_files(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*.parquet")):
        try:
            fault = "" if is_whole(path) else "is damaged"
        except OSError as error:
            fault = f"cannot be read ({error.strerror})"
        if fault:
            yield f"{path} {fault}. {_OF_JOB_FILES}"


async def _streams(connection: bus.Bus) -> AsyncIterator[str]:
    faults = await stream_faults(connection)
    for stream, fault in faults:
        yield f"The stream {stream} {fault}. {_OF_STREAMS}"
    if any(stream == object_stream(bus.DATASETS) and fault == "is missing" for stream, fault in faults):
        return
    store = bus.Datasets(connection)
    known: set[str] = set()
    for dataset_id in sorted(await store.list()):
        try:
            manifest = await store.get_manifest(dataset_id)
            for shard in manifest.shards if manifest is not None and not manifest.deleting else ():
                if shard.digest not in known:
                    await store.get_shard(shard.digest)
                    known.add(shard.digest)
        except TouchstoneError as error:
            yield f"The dataset {dataset_id}: {error.message} {_OF_DATASETS}"
