"""The results service's settings, read from the environment once."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from services import bus, environment, rpc
from services.bus.room import measure
from services.errors import InvalidRequestError
from services.results import visibility
from services.results.datasets.frames import Limits
from services.results.datasets.uploading import STORE_BYTES, UploadLimits
from services.results.mlflow.settings import MlflowSettings
from services.results.stores import store
from services.telemetry import serving

ANSWERS_MAX_BYTES = 20 * 10**9


@dataclass(frozen=True, slots=True)
class Settings:
    """`listen` is the host:port that gRPC binds; `database` the DuckDB file, created with its folder if absent;
    `backups` the folder or bucket of backups.

    `reads` is "open", or "own" if users may read only their own jobs. Texts of finished jobs' answers take at most
    `answers_max_bytes`, and datasets `datasets_max_bytes`; 0 means no limit. `archive` is the folder or bucket of
    finished jobs, "" for none, and `s3_url` where buckets are, "" for Amazon's. Items of archived jobs leave the
    database `keep_items_days` after the job's end; 0 for never. At most every `replica_s` seconds, the
    database is copied for reads, which a process at `replica_listen` answers; 0 for never.
    """

    listen: str
    database: Path
    backups: str
    bus: bus.Settings
    rpc: rpc.Settings
    reads: str = visibility.OPEN
    answers_max_bytes: int = ANSWERS_MAX_BYTES
    datasets_max_bytes: int = STORE_BYTES
    uploads: UploadLimits = field(default_factory=UploadLimits)
    mlflow: MlflowSettings = field(default_factory=MlflowSettings)
    metrics: serving.Settings = field(default_factory=serving.Settings)
    archive: str = ""
    keep_items_days: float = 0
    s3_url: str = ""
    replica_s: float = 0
    replica_listen: str = ""

    @property
    def replica(self) -> Path:
        """The folder of copies for reads."""
        return self.database.parent / "replica"

    @property
    def scratch(self) -> Path:
        """A folder for the job that is being archived."""
        return self.database.parent / "archiving"

    @property
    def moving(self) -> Path:
        """A folder for items that leave the database or come back."""
        return self.database.parent / "moving"

    @property
    def backup_scratch(self) -> Path:
        """A folder for a copy of the database on its way to a bucket."""
        return self.database.parent / "backing-up"

    @property
    def written(self) -> tuple[Path, ...]:
        """Folders into which DuckDB may write, apart from its own."""
        backups = self.backup_scratch if store.is_bucket(self.backups) else Path(self.backups)
        return backups, self.job_files, self.scratch, self.moving, self.replica

    @property
    def job_files(self) -> Path:
        """The folder of files of finished jobs."""
        return self.database.parent / "jobs"

    @classmethod
    def from_env(cls) -> Settings:
        """Raises InvalidRequestError when the variables contradict each other or have invalid values."""
        state = environment.state_folder()
        return cls(
            listen=environment.listen("TOUCHSTONE_RESULTS_LISTEN", "127.0.0.1:8052"),
            database=state / "results" / "touchstone.duckdb",
            backups=_place("TOUCHSTONE_BACKUP_DIR", str(state / "backups")),
            bus=bus.Settings.from_env(),
            rpc=rpc.Settings.from_env(),
            reads=environment.choice("TOUCHSTONE_READS", visibility.OPEN, (visibility.OPEN, visibility.OWN)),
            answers_max_bytes=answers_bytes(measure(state, 0).total),
            datasets_max_bytes=_bytes("TOUCHSTONE_DATASETS_MAX_BYTES", STORE_BYTES),
            uploads=_uploads(),
            mlflow=MlflowSettings.from_env(),
            metrics=serving.Settings.from_env(),
            archive=_place("TOUCHSTONE_ARCHIVE", ""),
            keep_items_days=_keep_items_days(),
            s3_url=store.s3_url(),
            replica_s=environment.number("TOUCHSTONE_REPLICA_S", 0, 0, environment.LONG_S),
            replica_listen=environment.listen("TOUCHSTONE_REPLICA_LISTEN", "127.0.0.1:8054"),
        )


def answers_bytes(disk_bytes: int) -> int:
    """By default also at most a quarter of the disk. The database reuses the room of answers that were dropped, but its
    file never shrinks: on a disk that is already full, dropping them would not help."""
    most = _bytes("TOUCHSTONE_ANSWERS_MAX_BYTES", ANSWERS_MAX_BYTES)
    return min(most, disk_bytes // 4) if most == ANSWERS_MAX_BYTES else most


def _place(name: str, default: str) -> str:
    """A folder that is writable or can be created, or a bucket."""
    given = environment.text(name, default)
    if not given or store.is_bucket(given):
        return store.check_bucket(name, given) if given else ""
    return str(environment.writable(name, default))


def _keep_items_days() -> float:
    days = environment.number("TOUCHSTONE_KEEP_ITEMS_DAYS", 0, 0, 36_500)
    if days and not environment.text("TOUCHSTONE_ARCHIVE"):
        raise InvalidRequestError("TOUCHSTONE_KEEP_ITEMS_DAYS needs TOUCHSTONE_ARCHIVE: items leave for the archive.")
    return days


def _bytes(name: str, default: int) -> int:
    """0 means no bound."""
    return environment.whole(name, default, 0, environment.MOST_BYTES)


def _uploads() -> UploadLimits:
    known, limit = Limits(), environment.whole
    file = Limits(
        file_bytes=limit("TOUCHSTONE_UPLOAD_MAX_BYTES", known.file_bytes, 1, environment.MOST_BYTES),
        rows=limit("TOUCHSTONE_UPLOAD_MAX_ROWS", known.rows, 1, 2**31 - 1),
        ratio=limit("TOUCHSTONE_UPLOAD_MAX_RATIO", known.ratio, 1, 1_000_000),
    )
    return UploadLimits(file, at_once=limit("TOUCHSTONE_UPLOADS_AT_ONCE", UploadLimits().at_once, 1, 64))
