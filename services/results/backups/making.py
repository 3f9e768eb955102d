"""Makes backups of a running installation, on request over NATS: anyone with access to NATS may ask.

The order matters. The database comes first, so that the streams have everything that it lacks. JOBS comes before
RESULTS and AUDIT: then its outbox has every event that AUDIT lacks, and RESULTS every answer that its ledgers lack.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import shutil
import uuid
from contextlib import suppress
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

log = logging.getLogger(__name__)

_NAME = "%Y-%m-%dT%H-%M-%SZ"
_MADE_HERE = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ")
_MOST_S = 4 * 3600.0
_LOOK_EVERY_S = 2.0
_SILENT_S = 60.0
"""A service that is silent for this long is frozen."""


class Backups:
    """Backups in a folder of the state directory, one at a time. `holding` is held meanwhile: messages that are stored
    nowhere else must not be purged."""

    def __init__(self, connection: bus.Bus, database: Database, folder: Path) -> None:
        self._bus, self._database, self._folder = connection, database, folder
        self.holding = asyncio.Lock()
        self._making = False

    async def serve(self) -> None:
        """Makes a backup for each request, until cancelled."""
        tasks: set[asyncio.Task[None]] = set()

        async def on_request(msg: Msg) -> None:
            task = asyncio.create_task(self._answer(msg))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        process = uuid.uuid4().bytes

        async def on_who(msg: Msg) -> None:
            with suppress(nats.errors.Error, OSError):
                await msg.respond(process)

        client = self._bus.client
        # First the process's identity, which the caller asks for before the backup.
        subscriptions = [
            await client.subscribe(bus.BACKUPS_BY, cb=on_who),
            await client.subscribe(bus.BACKUPS, cb=on_request),
        ]
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await bus.end_tasks(tasks)
            for subscription in subscriptions:
                with suppress(nats.errors.Error, OSError):
                    await subscription.unsubscribe()

    async def _answer(self, msg: Msg) -> None:
        try:
            folder = await self.make()
            answer = {"folder": str(folder)}
        except TouchstoneError as error:
            answer = {"error": error.message}
        except OSError as error:
            answer = {"error": f"The backup cannot be written: {error.strerror}. Make room in {self._folder}."}
        with suppress(nats.errors.Error, OSError):
            await msg.respond(json.dumps(answer).encode())

    async def make(self) -> Path:
        """The folder of a new backup. Raises ConflictError while another is made, UnavailableError and OSError."""
        # `holding` does not say this: the purge takes it for a moment too.
        if self._making:
            raise ConflictError("Another backup is being made. Wait for it.")
        self._making = True
        try:
            async with self.holding:
                return await self._make()
        finally:
            self._making = False

    async def _make(self) -> Path:
        await asyncio.to_thread(self._drop_unfinished)
        now = datetime.now(UTC)
        folder = self._folder / now.strftime(_NAME)
        folder.mkdir(mode=0o700, parents=True)
        try:
            await self._fill(folder, now)
        except BaseException:
            await asyncio.shield(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))
            raise
        log.info("made the backup %s", folder)
        return folder

    async def _fill(self, folder: Path, now: datetime) -> None:
        await self._database.copy(folder / manifest.DATABASE)
        parts = [await _part(folder, manifest.DATABASE)]
        for stream in bus.BACKED_UP:
            file = f"{stream}.stream"
            head = await bus.save_stream(self._bus, stream, folder / file)
            parts.append(await _part(folder, file, head))
        made = manifest.Manifest(now.isoformat(timespec="seconds"), services.__version__, parts)
        await asyncio.to_thread(manifest.write, folder, made)

    def _drop_unfinished(self) -> None:
        """Folders that a crash left without a manifest."""
        for folder in self._folder.glob("*"):
            if _MADE_HERE.fullmatch(folder.name) and not (folder / manifest.FILE).exists():
                log.warning("removed %s, an incomplete backup", folder)
                shutil.rmtree(folder, ignore_errors=True)


async def _part(folder: Path, file: str, stream: bus.Head | None = None) -> manifest.Part:
    # Keys of webhooks are inside.
    os.chmod(folder / file, 0o600)
    return await asyncio.to_thread(manifest.part, folder, file, stream)


async def _who(client: Client) -> bytes:
    """The process that makes backups; empty where there is none."""
    try:
        return (await client.request(bus.BACKUPS_BY, timeout=_SILENT_S)).data
    except nats.errors.NoRespondersError:
        return b""


async def backup_of() -> str:
    """Asks the running results service for a backup; returns its folder on that machine. Raises UnavailableError with
    the reason, also when that process ends first."""
    settings = bus.Settings.from_env()
    connection = await bus.connect(settings.url, "backup", settings.login, timeout_s=5)
    client = connection.client
    try:
        maker = (await client.request(bus.BACKUPS_BY, timeout=_SILENT_S)).data
        asked = asyncio.create_task(client.request(bus.BACKUPS, timeout=_MOST_S))
        try:
            while not (await asyncio.wait([asked], timeout=_LOOK_EVERY_S))[0]:
                if await _who(client) != maker and not asked.done():
                    raise UnavailableError("The results service ended before the backup was complete. Try again.")
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
