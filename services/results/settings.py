"""The results service's settings, read from the environment once."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from services import bus, rpc
from services.errors import InvalidRequestError
from services.results import visibility
from services.results.datasets.frames import Limits
from services.results.datasets.limits import STORE_BYTES, UploadLimits

ANSWERS_MAX_BYTES = 20 * 10**9


@dataclass(frozen=True, slots=True)
class Settings:
    """`listen` is the host:port that gRPC binds; `database` the DuckDB file, made with its folder when absent;
    `backups` the folder of backups.

    `reads` is "open", or "own" where users may read their own jobs only. Texts of finished jobs' answers take at most
    `answers_max_bytes`, 0 meaning as much as comes; datasets at most `datasets_max_bytes`, 0 likewise.
    """

    listen: str
    database: Path
    backups: Path
    bus: bus.Settings
    rpc: rpc.Settings
    reads: str = visibility.OPEN
    answers_max_bytes: int = ANSWERS_MAX_BYTES
    datasets_max_bytes: int = STORE_BYTES
    uploads: UploadLimits = field(default_factory=UploadLimits)

    @classmethod
    def from_env(cls) -> Settings:
        """Raises InvalidRequestError when the variables contradict each other or hold what they may not."""
        reads = os.environ.get("TOUCHSTONE_READS", visibility.OPEN)
        if reads not in (visibility.OPEN, visibility.OWN):
            raise InvalidRequestError(f"TOUCHSTONE_READS is {reads!r}; it may be open or own.")
        state = Path(os.environ.get("TOUCHSTONE_STATE_DIR", "var"))
        return cls(
            listen=os.environ.get("TOUCHSTONE_RESULTS_LISTEN", "127.0.0.1:8052"),
            database=state / "results" / "touchstone.duckdb",
            backups=Path(os.environ.get("TOUCHSTONE_BACKUP_DIR") or state / "backups"),
            bus=bus.Settings.from_env(),
            rpc=rpc.Settings.from_env(),
            reads=reads,
            answers_max_bytes=_bytes("TOUCHSTONE_ANSWERS_MAX_BYTES", ANSWERS_MAX_BYTES),
            datasets_max_bytes=_bytes("TOUCHSTONE_DATASETS_MAX_BYTES", STORE_BYTES),
            uploads=_uploads(),
        )


def _bytes(name: str, default: int) -> int:
    text = os.environ.get(name, str(default))
    if not text.isdecimal():
        raise InvalidRequestError(f"{name} is {text!r}; it is a number of bytes, or 0 for no bound.")
    return int(text)


def _uploads() -> UploadLimits:
    known = Limits()
    file = Limits(
        file_bytes=_most("TOUCHSTONE_UPLOAD_MAX_BYTES", known.file_bytes),
        rows=_most("TOUCHSTONE_UPLOAD_MAX_ROWS", known.rows),
        ratio=_most("TOUCHSTONE_UPLOAD_MAX_RATIO", known.ratio),
    )
    return UploadLimits(file, at_once=_most("TOUCHSTONE_UPLOADS_AT_ONCE", UploadLimits().at_once))


def _most(name: str, default: int) -> int:
    text = os.environ.get(name, str(default))
    if not text.isdecimal() or not int(text):
        raise InvalidRequestError(f"{name} is {text!r}; it is a whole number, 1 or more.")
    return int(text)
