"""`touchstone restore`: a backup into a stopped installation's state directory.

A note in the state directory says that a restore is under way, and Touchstone does not start while it is there. So
after an interruption at any step, the restore is simply run again. Earlier files are kept aside.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack, suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import nats.errors
import nats.js.errors

from deploy.local.recovery import exchange, losses
from deploy.local.recovery.offline_nats import copied_nats, offline_nats
from deploy.local.recovery.streams import bring_over, stream_faults
from deploy.local.settings import LaunchError
from deploy.local.state import StateDir
from services import bus
from services.errors import TouchstoneError
from services.results.backups import manifest
from services.results.backups.rebuilding import add_archived, complete, keep
from services.results.intake.writes import Mark
from services.results.stores.store import Store, fetch, open_store, s3_url
from services.words.refusals import counted

Say = Callable[[str], None]

_COPY = "nats.copy"
_BUCKET = "KV_"
"""The prefix of the names of buckets' streams."""
_SLACK = timedelta(milliseconds=1)
"""A message's time has fewer digits than a stream's."""


def restore(place: str, state_dir: Path, say: Say, archive: Store | None = None) -> None:
    """Restores the streams unless the present ones can be read, and the database unless only the streams are damaged.
    Then adds what an archive has beyond it.

    Raises LaunchError when Touchstone runs or the backup is damaged, InvalidRequestError for a place that is not a
    backup, and UnavailableError and OSError when it must be run again, which `require_whole` then says.
    """
    backup = open_store(place, s3_url())
    holds = manifest.read(backup)
    if wrong := list(manifest.faults(backup, holds)):
        raise LaunchError(f"The backup {backup.place} is damaged: {'; '.join(wrong)}. Choose another backup.")
    state = StateDir(state_dir.absolute())
    try:
        state.reap()
        asyncio.run(_restore(backup, holds, state, say, archive))
    finally:
        state.close()


async def _restore(backup: Store, holds: manifest.Manifest, state: StateDir, say: Say, archive: Store | None) -> None:
    source = exchange.streams_of(state.path, "restore")
    again = (state.path / exchange.NOTE).exists()
    of_archive = f" --archive {archive.place}" if archive is not None else ""
    fresh = exchange.begin(state, f"touchstone restore {backup.place}{of_archive} --state-dir {state.path}")
    say(f"Restoring the backup of {holds.made_at}.")
    whole, cut, damaged = source == state.path / "nats", False, set[str]()
    given_up: Mark | None = None
    async with AsyncExitStack() as stack:
        surviving: bus.Bus | None = None
        if source is not None:
            surviving = await stack.enter_async_context(copied_nats(source, state.path / _COPY))
            found = await stream_faults(surviving)
            faults = [f"The stream {stream} {fault}." for stream, fault in found]
            # Streams that only lack their description can then be read again.
            with suppress(TouchstoneError, nats.errors.Error, nats.js.errors.Error):
                await surviving.ensure(_most_bytes(holds))
            now = await losses.reaches(surviving)
            found += losses.losses(losses.read(state.path), now)
            lost = [fault for _, fault in found[len(faults) :]] + losses.noted(state.path)
            for fault in (*faults, *lost):
                say(fault)
            damaged = {stream for stream, _ in found}
            damaged |= {stream for stream in bus.BACKED_UP if any(f"The stream {stream} " in fault for fault in lost)}
            whole, cut = whole and not faults and not lost, bool(lost)
            if whole:
                given_up = await _given_up(surviving)
        if whole:
            say(
                "The streams can be read and are kept: at the next start, Touchstone takes from them what came "
                "after the backup."
            )
        else:
            await _restore_streams(backup, holds, fresh, surviving, cut, damaged, say)
    database = fresh / exchange.DATABASE.name
    # An interrupted restore may already have put both in place, the database with changes after the backup.
    if (whole and not again) or not await asyncio.to_thread(keep, state.path / exchange.DATABASE, database):
        present = state.path / exchange.DATABASE
        await asyncio.to_thread(
            complete,
            partial(fetch, backup, manifest.DATABASE),
            database,
            present,
            present.parent / "jobs",
            given_up,
            say,
            archive,
        )
    else:
        say("The database can be read and is kept: it has what came after the backup.")
        if archive is not None:
            await asyncio.to_thread(add_archived, database, archive, say)
    os.chmod(database, 0o600)
    exchange.sync(fresh)
    aside = exchange.aside_of(state.path, "restore")
    # In this order: while the old streams are there, a repeated restore finds their damage.
    exchange.put_database(state.path, database, aside)
    exchange.put_streams(state.path, fresh / "nats", aside)
    if not whole:
        losses.forget(state.path)
    exchange.end(state, fresh)
    if aside.exists():
        say(f"The previous files are in {aside}. Delete it when you no longer need it.")
    say("Restored. Start Touchstone.")


async def _given_up(surviving: bus.Bus) -> Mark:
    """The last position that RESULTS no longer has. Raises NATS's errors."""
    info = await surviving.js.stream_info(bus.RESULTS)
    created = info.created.isoformat() if info.created is not None else ""
    return Mark(bus.RESULTS, created, info.state.first_seq - 1)


def _most_bytes(holds: manifest.Manifest) -> int:
    configs = [part.stream["config"] for part in holds.streams]
    return next(int(config["max_bytes"]) for config in configs if config["name"] == bus.RESULTS)


async def _restore_streams(
    backup: Store,
    holds: manifest.Manifest,
    fresh: Path,
    surviving: bus.Bus | None,
    cut: bool,
    damaged: Collection[str],
    say: Say,
) -> None:
    """All streams of the backup, each with the later messages of the surviving ones. `cut`: these may have lost their
    ends, and received messages since."""
    async with offline_nats(fresh / "nats") as target:
        for part in holds.streams:
            stream, state = part.stream["config"]["name"], part.stream["state"]
            with backup.open(part.file) as file:
                await bus.restore_stream(target, dict(part.stream), file)
            if surviving is None:
                continue
            since = datetime.fromisoformat(state["last_ts"]) + _SLACK if cut else None
            try:
                later = await bring_over(surviving, target, stream, state["last_seq"], since)
                if stream not in damaged:
                    await _delete_again(surviving, target, stream)
            except (TouchstoneError, OSError, nats.errors.Error, nats.js.errors.Error) as error:
                say(f"Messages of {stream} after the backup cannot be read: {error or type(error).__name__}.")
                continue
            if later:
                say(f"{stream} had {counted(later, 'message')} after the backup. The restore kept them.")
    say("The streams were restored.")


async def _delete_again(source: bus.Bus, target: bus.Bus, stream: str) -> None:
    """Deletes keys that were deleted after the backup. NATS keeps the marker of a deleted key only for a minute."""
    if not stream.startswith(_BUCKET):
        return
    bucket = stream.removeprefix(_BUCKET)
    there = {key async for key, _ in source.kv_all(bucket, headers_only=True)}
    for key in [key async for key, _ in target.kv_all(bucket, headers_only=True)]:
        if key not in there:
            await target.kv_delete(bucket, key)
