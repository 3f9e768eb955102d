"""`touchstone restore`: a backup into a stopped installation's state directory.

A note in the state directory says that a restore is under way, and nothing starts while it is there. So a restore that
was cut short at any step is simply run again. What was there before is kept aside.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import nats.errors
import nats.js.errors

from deploy.local.keeping import exchange
from deploy.local.keeping.offline_nats import copied_nats, offline_nats
from deploy.local.keeping.streams import bring_over, has_streams, stream_faults
from deploy.local.settings import LaunchError
from deploy.local.state import StateDir
from services import bus
from services.errors import TouchstoneError
from services.results.backups import manifest

Say = Callable[[str], None]

_COPY = "nats.copy"


def restore(backup: Path, state_dir: Path, say: Say) -> None:
    """Restores the database, and the streams unless those that are there can be read.

    Raises LaunchError when Touchstone runs or the backup is damaged, InvalidRequestError for what is not a backup, and
    UnavailableError and OSError when it is to be run again, which `require_whole` says then.
    """
    holds = manifest.read(backup)
    if wrong := list(manifest.faults(backup, holds)):
        raise LaunchError(f"The backup {backup} is damaged: {'; '.join(wrong)}. Choose another one.")
    state = StateDir(state_dir.absolute())
    try:
        state.reap()
        asyncio.run(_restore(backup.absolute(), holds, state, say))
    finally:
        state.close()


async def _restore(backup: Path, holds: manifest.Manifest, state: StateDir, say: Say) -> None:
    source = _streams_of(state.path)
    fresh = exchange.begin(state, f"touchstone restore {backup} --state-dir {state.path}")
    say(f"Restoring the backup of {holds.made_at}.")
    database = fresh / exchange.DATABASE.name
    shutil.copyfile(backup / manifest.DATABASE, database)
    os.chmod(database, 0o600)
    async with AsyncExitStack() as stack:
        surviving: bus.Bus | None = None
        faults: list[tuple[str, str]] = []
        if source is not None:
            surviving = await stack.enter_async_context(copied_nats(source, state.path / _COPY))
            faults = await stream_faults(surviving)
            for stream, fault in faults:
                say(f"The stream {stream} {fault}.")
        if source == state.path / "nats" and not faults:
            say("The streams can be read, and stay: what came after the backup is taken from them at the next start.")
        else:
            await _restore_streams(backup, holds, fresh, surviving, say)
    exchange.sync(fresh)
    aside = exchange.aside_of(state.path, "restore")
    _put_streams(state.path, fresh / "nats", aside)
    exchange.put_database(state.path, database, aside)
    exchange.end(state, fresh)
    if aside.exists():
        say(f"What was there before is in {aside}. Delete it when it is not needed any more.")
    say("Restored. Start Touchstone.")


def _streams_of(state_dir: Path) -> Path | None:
    """The streams that are there; those that were put aside, after a restore that was cut short just then."""
    if has_streams(state_dir / "nats"):
        return state_dir / "nats"
    asides = sorted(state_dir.glob("before-restore-*/nats")) if (state_dir / exchange.NOTE).exists() else []
    return asides[-1] if asides else None


def _put_streams(state_dir: Path, fresh: Path, aside: Path) -> None:
    if not fresh.exists():
        return
    place = state_dir / "nats"
    if place.exists():
        aside.mkdir(mode=0o700, exist_ok=True)
        place.replace(exchange.free(aside / place.name))
    fresh.replace(place)
    manifest.sync_folder(state_dir)


async def _restore_streams(
    backup: Path, holds: manifest.Manifest, fresh: Path, surviving: bus.Bus | None, say: Say
) -> None:
    """All streams of the backup, each with what the surviving ones have after it."""
    async with offline_nats(fresh / "nats") as target:
        for part in holds.streams:
            stream = part.stream["config"]["name"]
            await bus.restore_stream(target, dict(part.stream), backup / part.file)
            if surviving is None:
                continue
            try:
                later = await bring_over(surviving, target, stream, part.stream["state"]["last_seq"])
            except (TouchstoneError, OSError, nats.errors.Error, nats.js.errors.Error) as error:
                say(f"What {stream} had after the backup cannot be read: {error or type(error).__name__}.")
                continue
            if later:
                say(f"{stream} had {later:,} messages after the backup, which were kept.")
    say("The streams were restored.")
