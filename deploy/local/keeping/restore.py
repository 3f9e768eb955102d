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
from datetime import UTC, datetime
from pathlib import Path

import nats.errors
import nats.js.errors

from deploy.local.keeping.offline_nats import offline_nats
from deploy.local.keeping.streams import bring_over, has_streams, stream_faults
from deploy.local.settings import LaunchError
from deploy.local.state import StateDir
from services import bus
from services.errors import TouchstoneError
from services.results.backups import manifest

Say = Callable[[str], None]

NOTE = "restoring"
_NEW, _COPY = "restored.new", "nats.copy"
_DATABASE = Path("results") / "touchstone.duckdb"


def require_whole(state_dir: Path) -> None:
    """Raises LaunchError while a restore is unfinished."""
    if (note := state_dir / NOTE).exists():
        raise LaunchError(
            f"A restore into {state_dir} was cut short. Run it again, then start: "
            f"touchstone restore {note.read_text().strip()} --state-dir {state_dir}"
        )


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
    fresh = state.path / _NEW
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    state.write_private(NOTE, f"{backup}\n")
    manifest.sync_folder(state.path)
    say(f"Restoring the backup of {holds.made_at}.")
    shutil.copyfile(backup / manifest.DATABASE, fresh / _DATABASE.name)
    os.chmod(fresh / _DATABASE.name, 0o600)
    async with AsyncExitStack() as stack:
        store, copy = state.path / "nats", state.path / _COPY
        stack.callback(shutil.rmtree, copy, ignore_errors=True)
        shutil.rmtree(copy, ignore_errors=True)
        surviving: bus.Bus | None = None
        faults: list[tuple[str, str]] = []
        if has_streams(store):
            # On a copy: a server cuts off what it cannot read.
            shutil.copytree(store, copy)
            surviving = await stack.enter_async_context(offline_nats(copy))
            faults = await stream_faults(surviving)
            for stream, fault in faults:
                say(f"The stream {stream} {fault}.")
        if surviving is not None and not faults:
            say("The streams can be read, and stay: what came after the backup is taken from them at the next start.")
        else:
            await _restore_streams(backup, holds, fresh, surviving, say)
    _sync(fresh)
    aside = _exchange(state.path, fresh)
    (state.path / NOTE).unlink()
    manifest.sync_folder(state.path)
    if aside is not None:
        say(f"What was there before is in {aside}. Delete it when it is not needed any more.")
    say("Restored. Start Touchstone.")


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


def _exchange(state_dir: Path, fresh: Path) -> Path | None:
    """Puts the new files in the place of the old ones; where the old ones are now."""
    aside = state_dir / f"before-restore-{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}"
    pairs = [(fresh / _DATABASE.name, state_dir / _DATABASE)]
    if (fresh / "nats").exists():
        pairs.append((fresh / "nats", state_dir / "nats"))
    log = state_dir / _DATABASE.with_suffix(".duckdb.wal")
    for old in (log, *(place for _, place in pairs)):
        if old.exists():
            aside.mkdir(mode=0o700, exist_ok=True)
            old.replace(_free(aside / old.name))
    (state_dir / _DATABASE).parent.mkdir(exist_ok=True)
    for new, place in pairs:
        new.replace(place)
        manifest.sync_folder(place.parent)
    shutil.rmtree(fresh, ignore_errors=True)
    return aside if aside.exists() else None


def _free(path: Path) -> Path:
    while path.exists():
        path = path.with_name(f"{path.name}.1")
    return path


def _sync(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            manifest.sync_folder(path)
        else:
            with path.open("rb") as file:
                os.fsync(file.fileno())
    manifest.sync_folder(folder)
