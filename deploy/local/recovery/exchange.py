"""The note in a state directory that a restore or a repair is under way, and the place for its old files."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from deploy.local.recovery.streams import has_streams
from deploy.local.settings import LaunchError
from deploy.local.state import StateDir
from services.results.stores.folder import sync_folder

NOTE = "restoring"
DATABASE = Path("results") / "touchstone.duckdb"
_NEW = "restored.new"


def require_whole(state_dir: Path) -> None:
    """Raises LaunchError while a restore or a repair is unfinished."""
    if os.path.lexists(note := state_dir / NOTE):
        command = "touchstone restore BACKUP"
        with suppress(OSError, ValueError):
            command = note.read_text().strip() or command
        raise LaunchError(f"A change of {state_dir} was interrupted. Run this again, then start: {command}")


def begin(state: StateDir, command: str) -> Path:
    """An empty folder for the new files. From here on nothing starts until `end`, as `command` has to be run again."""
    fresh = state.path / _NEW
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    state.write_private(NOTE, f"{command}\n")
    sync_folder(state.path)
    return fresh


def end(state: StateDir, fresh: Path) -> None:
    shutil.rmtree(fresh, ignore_errors=True)
    (state.path / NOTE).unlink()
    sync_folder(state.path)


def put_database(state_dir: Path, fresh: Path, aside: Path) -> None:
    """Puts the new database in the place of the old one, which stays in `aside` under a second name until it is
    replaced. So there is a database at every moment, and the old one keeps its log."""
    place = state_dir / DATABASE
    log = place.with_suffix(".duckdb.wal")
    place.parent.mkdir(exist_ok=True)
    for old in (place, log):
        if old.exists():
            aside.mkdir(mode=0o700, exist_ok=True)
            kept = free(aside / old.name)
            if old.is_file():
                os.link(old, kept)
            else:
                old.replace(kept)
    sync_folder(state_dir)
    fresh.replace(place)
    log.unlink(missing_ok=True)
    sync_folder(place.parent)


def streams_of(state_dir: Path, why: str) -> Path | None:
    """The present streams, or those that were put aside if the exchange was interrupted just then."""
    if has_streams(state_dir / "nats"):
        return state_dir / "nats"
    asides = sorted(state_dir.glob(f"before-{why}-*/nats")) if (state_dir / NOTE).exists() else []
    return asides[-1] if asides else None


def put_streams(state_dir: Path, fresh: Path, aside: Path) -> None:
    """Puts the new streams, if any, in the place of the old ones, which go to `aside`."""
    if not fresh.exists():
        return
    place = state_dir / "nats"
    if place.exists():
        aside.mkdir(mode=0o700, exist_ok=True)
        place.replace(free(aside / place.name))
    fresh.replace(place)
    sync_folder(state_dir)


def aside_of(state_dir: Path, why: str) -> Path:
    """The folder for old files; not created yet."""
    return state_dir / f"before-{why}-{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}"


def free(path: Path) -> Path:
    while path.exists():
        path = path.with_name(f"{path.name}.1")
    return path


def sync(folder: Path) -> None:
    """Flushes a folder and all of its files to disk."""
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            sync_folder(path)
        else:
            with path.open("rb") as file:
                os.fsync(file.fileno())
    sync_folder(folder)
