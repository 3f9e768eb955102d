"""`touchstone repair`: without a backup, rebuilds a damaged or lost database from what can be read, and streams that
NATS cannot open."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from deploy.local.recovery import exchange
from deploy.local.recovery.streams import has_streams
from deploy.local.recovery.unreadable_streams import mend_streams
from deploy.local.settings import LaunchError
from deploy.local.state import StateDir
from services.results.backups.rebuilding import rebuild
from services.results.storage import archived_items
from services.results.stores.store import Store

Say = Callable[[str], None]


def repair(state_dir: Path, say: Say, archive: Store | None = None) -> None:
    """Builds the database from its readable parts, the files of finished jobs, and an archive; the streams add the rest
    at the next start. Raises LaunchError when Touchstone runs, there is nothing to repair, or an archive is needed;
    UnavailableError and OSError when the disk refuses or the archive cannot be reached."""
    if not (state_dir / "results").is_dir() and not has_streams(state_dir / "nats"):
        raise LaunchError(f"There is nothing to repair in {state_dir}. Set --state-dir to the state directory.")
    state = StateDir(state_dir.absolute())
    try:
        state.reap()
        if archive is None:
            _require_no_archive(state.path)
        of_archive = f" --archive {archive.place}" if archive is not None else ""
        fresh = exchange.begin(state, f"touchstone repair{of_archive} --state-dir {state.path}")
        place = state.path / exchange.DATABASE
        made = fresh / place.name
        rebuild(place, place.parent / "jobs", made, say, archive)
        os.chmod(made, 0o600)
        with made.open("rb") as file:
            os.fsync(file.fileno())
        aside = exchange.aside_of(state.path, "repair")
        source, streams = exchange.streams_of(state.path, "repair"), fresh / "nats"
        if source is not None:
            mended = asyncio.run(mend_streams(source, streams, say))
            if mended or source != state.path / "nats":
                exchange.sync(streams)
                exchange.put_streams(state.path, streams, aside)
        exchange.put_database(state.path, made, aside)
        exchange.end(state, fresh)
        if aside.exists():
            say(f"The damaged files are in {aside}. Delete them when you no longer need them.")
        say("Repaired. Start Touchstone: it reads the streams from the start and recomputes lost results.")
    finally:
        state.close()


def _require_no_archive(state_dir: Path) -> None:
    """Raises LaunchError if items of finished jobs are in an archive alone."""
    marker = archived_items.marker_of(state_dir / exchange.DATABASE)
    if marker.is_file():
        place = marker.read_text()
        raise LaunchError(
            f"Items of finished jobs are in the archive {place}. Run `touchstone repair --archive {place} --state-dir "
            f"{state_dir}`. If that archive is lost, and these items with it, delete {marker} first."
        )
