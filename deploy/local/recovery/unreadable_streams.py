"""Streams that NATS cannot open, because the file that describes one or one of its consumers is damaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import nats.errors
import nats.js.errors

from deploy.local.recovery.offline_nats import offline_nats
from services import bus
from services.words.refusals import counted

Say = Callable[[str], None]

_RESULTS_BYTES = 2 * 1024**3
"""The description of a RESULTS stream that has to be written again."""


async def mend_streams(source: Path, fresh: Path, say: Say) -> bool:
    """Copies the streams to `fresh`. Streams that cannot be opened get a new description there, around their messages.
    Returns whether there were any. Services recreate the consumers."""
    folders = _copy(source, fresh)
    configs = {config.name: config for config in bus.stream_configs(_RESULTS_BYTES) if config.name in folders}
    async with offline_nats(fresh) as connection:
        closed = [config for name, config in configs.items() if not await _opens(connection, str(name))]
    if not closed:
        return False
    for config in closed:
        for file in ("meta.inf", "meta.sum"):
            (folders[str(config.name)] / file).unlink(missing_ok=True)
        shutil.rmtree(folders[str(config.name)] / "obs", ignore_errors=True)
    async with offline_nats(fresh) as connection:
        for config in closed:
            await connection.js.add_stream(config)
            state = (await connection.js.stream_info(str(config.name))).state
            say(
                f"NATS could not open the stream {config.name}. It was repaired, and has "
                f"{counted(state.messages, 'message')}."
            )
    return True


def _copy(source: Path, fresh: Path) -> dict[str, Path]:
    """Folders of streams by name."""
    shutil.copytree(source, fresh)
    return {folder.name: folder for folder in fresh.glob("jetstream/*/streams/*")}


async def _opens(connection: bus.Bus, stream: str) -> bool:
    try:
        await connection.js.stream_info(stream)
    except (nats.js.errors.APIError, nats.errors.Error):
        return False
    return True
