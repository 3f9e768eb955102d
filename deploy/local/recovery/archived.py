"""`touchstone restore --archive PLACE`: archived jobs into a stopped installation, without a backup."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from deploy.local.recovery import exchange
from deploy.local.settings import LaunchError
from deploy.local.state import StateDir
from services.errors import UnavailableError
from services.results.backups.rebuilding import add_archived, keep
from services.results.stores import store

Say = Callable[[str], None]

_COMMAND = "touchstone restore --archive "


def opened(place: str) -> store.Store | None:
    """The archive, None without a place. Raises InvalidRequestError."""
    return store.open_store(place, store.s3_url()) if place else None


def restore_archive(place: str, state_dir: Path, only: Sequence[str], say: Say) -> None:
    """Adds an archive's jobs, or `only` these, to the database, which is created if there is none. Streams stay as they
    are; the next start reads them from the beginning.

    Raises LaunchError when Touchstone runs or the database is damaged, UnavailableError and OSError when it must be run
    again.
    """
    archive = opened(place)
    assert archive is not None
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    state = StateDir(state_dir.absolute())
    try:
        state.reap()
        _require_own(state.path)
        present = state.path / exchange.DATABASE
        jobs = "".join(f" --job {job_id}" for job_id in only)
        fresh = exchange.begin(state, f"{_COMMAND}{archive.place}{jobs} --state-dir {state.path}")
        made = fresh / present.name
        try:
            if os.path.lexists(present) and not keep(present, made):
                raise LaunchError(
                    f"{present} is damaged. Run `touchstone repair --archive {archive.place} --state-dir "
                    f"{state.path}`, which also takes what can be read of it."
                )
            add_archived(made, archive, say, only)
        except (LaunchError, UnavailableError):
            # Nothing has changed yet.
            exchange.end(state, fresh)
            raise
        os.chmod(made, 0o600)
        exchange.sync(fresh)
        aside = exchange.aside_of(state.path, "restore")
        exchange.put_database(state.path, made, aside)
        exchange.end(state, fresh)
        if aside.exists():
            say(f"The previous files are in {aside}. Delete it when you no longer need it.")
        say("Restored. Start Touchstone.")
    finally:
        state.close()


def _require_own(state_dir: Path) -> None:
    """Raises LaunchError while another command is unfinished."""
    note = state_dir / exchange.NOTE
    if not note.is_file() or not note.read_text().startswith(_COMMAND):
        exchange.require_whole(state_dir)
