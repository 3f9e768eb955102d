"""Makes backups of a running installation, on request over NATS: anyone with access to NATS may ask.

The order matters. The database comes first, so that the streams have everything that it lacks. JOBS comes before
RESULTS and AUDIT: then its outbox has every event that AUDIT lacks, and RESULTS every answer that its ledgers lack.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import re
import shutil
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

import services
from services import bus
from services.errors import ConflictError, TouchstoneError, UnavailableError
from services.results.backups import manifest
from services.results.storage.database import Database
from services.results.stores.store import Counted, Store, open_store, path_of, put

log = logging.getLogger(__name__)

_NAME = "%Y-%m-%dT%H-%M-%SZ"
_MADE_HERE = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ")
_MOST_S = 4 * 3600.0
_LOOK_EVERY_S = 2.0
_AT_WORK = b"+"
_LOST_AFTER = 2
"""Looks in a row. The answer may be on its way at the first."""
_SILENT_S = 60.0
"""A service that is silent for this long is frozen."""


class Backups:
    """Backups in a place, a folder or a bucket, one at a time. A bucket gets the database from `scratch`, a folder into
    which it may be copied. `holding` is held meanwhile: messages that are stored nowhere else must not be purged."""

    def __init__(self, connection: bus.Bus, database: Database, place: str, s3_url: str, scratch: Path) -> None:
        self._bus, self._database = connection, database
        self._place, self._url, self._scratch = place, s3_url, scratch.absolute()
        self.holding = asyncio.Lock()
        self._making = False

    async def serve(self) -> None:
        """Makes a backup for each request, until cancelled."""
        tasks: dict[asyncio.Task[None], bytes] = {}

        async def on_request(msg: Msg) -> None:
            task = asyncio.create_task(self._answer(msg))
            tasks[task] = msg.data
            task.add_done_callback(tasks.pop)

        process = uuid.uuid4().hex.encode()

        async def on_who(msg: Msg) -> None:
            with suppress(nats.errors.Error, OSError):
                await msg.respond(process + (_AT_WORK if msg.data and msg.data in tasks.values() else b""))

        client = self._bus.client
        # Last the process's identity, which the caller asks for before the backup.
        subscriptions = [
            await client.subscribe(bus.BACKUPS, cb=on_request),
            await client.subscribe(bus.BACKUPS_BY, cb=on_who),
        ]
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await bus.end_tasks(list(tasks))
            for subscription in subscriptions:
                with suppress(nats.errors.Error, OSError):
                    await subscription.unsubscribe()

    async def _answer(self, msg: Msg) -> None:
        try:
            answer = {"folder": await self.make()}
        except TouchstoneError as error:
            answer = {"error": error.message}
        except OSError as error:
            why = error.strerror or str(error).partition("\n")[0] or type(error).__name__
            answer = {"error": f"The backup cannot be written: {why}. Make sure that {self._place} has room."}
        except Exception:
            log.exception("a backup failed")
            answer = {"error": "The backup failed. The log of the results service says why."}
        with suppress(nats.errors.Error, OSError):
            await msg.respond(json.dumps(answer).encode())

    async def make(self) -> str:
        """Makes a backup and returns its place. Raises ConflictError while another is made, UnavailableError and
        OSError."""
        # `holding` does not say this: the purge takes it for a moment too.
        if self._making:
            raise ConflictError("Another backup is being made. Wait for it.")
        self._making = True
        try:
            async with self.holding:
                return await self._make()
        finally:
            self._making = False

    async def _make(self) -> str:
        all_of_them = await asyncio.to_thread(open_store, self._place, self._url)
        await asyncio.to_thread(_drop_unfinished, all_of_them)
        now = datetime.now(UTC)
        name = now.strftime(_NAME)
        store = await asyncio.to_thread(open_store, path_of(all_of_them, name), self._url)
        try:
            await self._fill(store, now)
        except BaseException:
            with suppress(OSError):
                await asyncio.shield(asyncio.to_thread(all_of_them.remove_folder, name))
            raise
        log.info("made the backup %s", store.place)
        return store.place

    async def _fill(self, store: Store, now: datetime) -> None:
        parts = [await self._copy_database(store)]
        for stream in bus.BACKED_UP:
            file = f"{stream}.stream"
            async with _created(store, file) as counted:
                head = await bus.save_stream(self._bus, stream, counted.write)
            parts.append(manifest.Part(file, counted.bytes, counted.sha256, head))
        made = manifest.Manifest(now.isoformat(timespec="seconds"), services.__version__, parts)
        await asyncio.to_thread(manifest.write, store, made)

    async def _copy_database(self, store: Store) -> manifest.Part:
        """DuckDB writes to this machine alone, so the file gets into a bucket by way of `scratch`."""
        local = store.path(manifest.DATABASE)
        copy = local or self._scratch / manifest.DATABASE
        await asyncio.to_thread(shutil.rmtree, self._scratch, ignore_errors=True)
        await asyncio.to_thread(copy.parent.mkdir, mode=0o700, parents=True, exist_ok=True)
        try:
            await self._database.copy(copy)
            if local is None:
                counted = await asyncio.to_thread(put, store, manifest.DATABASE, copy)
                return manifest.Part(manifest.DATABASE, counted.bytes, counted.sha256)
            return await asyncio.to_thread(_part, local)
        finally:
            await asyncio.to_thread(shutil.rmtree, self._scratch, ignore_errors=True)


def _part(path: Path) -> manifest.Part:
    """A file that something else wrote, synced to disk by this call."""
    os.chmod(path, 0o600)
    with path.open("rb") as file:
        os.fsync(file.fileno())
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return manifest.Part(path.name, path.stat().st_size, digest)


def _drop_unfinished(backups: Store) -> None:
    """Backups that a crash left without a manifest."""
    for name in backups.folders(""):
        if _MADE_HERE.fullmatch(name) and manifest.FILE not in backups.names(name):
            log.warning("removed %s, an incomplete backup", path_of(backups, name))
            backups.remove_folder(name)


@asynccontextmanager
async def _created(store: Store, name: str) -> AsyncIterator[Counted]:
    """As `Store.create`, which blocks."""
    context = store.create(name)
    counted = Counted(await asyncio.to_thread(context.__enter__))
    try:
        yield counted
    except BaseException as error:
        await asyncio.to_thread(context.__exit__, type(error), error, error.__traceback__)
        raise
    await asyncio.to_thread(context.__exit__, None, None, None)


async def _who(client: Client, request: bytes) -> tuple[bytes, bool]:
    """The process that makes backups, empty where there is none, and whether it is at work on this request."""
    try:
        told = (await client.request(bus.BACKUPS_BY, request, timeout=_SILENT_S)).data
    except nats.errors.NoRespondersError:
        return b"", False
    return told.removesuffix(_AT_WORK), told.endswith(_AT_WORK)


async def backup_of() -> str:
    """Asks the running results service for a backup; returns its folder on that machine. Raises UnavailableError with
    the reason, also when that process ends first, or when the request or its answer was lost on the way."""
    settings = bus.Settings.from_env()
    connection = await bus.connect(settings.url, "backup", settings.login, timeout_s=5)
    client = connection.client
    try:
        maker = (await client.request(bus.BACKUPS_BY, timeout=_SILENT_S)).data
        request = uuid.uuid4().hex.encode()
        asked = asyncio.create_task(client.request(bus.BACKUPS, request, timeout=_MOST_S))
        idle = 0
        try:
            while not (await asyncio.wait([asked], timeout=_LOOK_EVERY_S))[0]:
                process, at_work = await _who(client, request)
                if asked.done():
                    break
                if process != maker:
                    raise UnavailableError("The results service ended before the backup was complete. Try again.")
                idle = 0 if at_work else idle + 1
                if idle == _LOST_AFTER:
                    raise UnavailableError(
                        "The request for a backup, or its answer, was lost. If the newest backup is not from now, try "
                        "again."
                    )
            answer = asked.result()
        finally:
            asked.cancel()
    except nats.errors.NoRespondersError as error:
        raise UnavailableError("The results service is not running. Start Touchstone, then try again.") from error
    except (nats.errors.Error, OSError) as error:
        raise UnavailableError(
            "NATS stopped answering. Check the log of the results service, then try again."
        ) from error
    finally:
        await connection.close()
    told = json.loads(answer.data)
    if "error" in told:
        raise UnavailableError(told["error"])
    return str(told["folder"])
