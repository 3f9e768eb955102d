"""The files of an archive:

    jobs/<job>/items.3f2a….parquet          rows of a table; the name has a digest of the bytes
    jobs/<job>/version-000001.9c41….json    a manifest: which files make up this version of the job
    deleted/<job>.json                      the job was deleted: nothing of it is read any more

Nothing is ever changed. A job that runs again, or of which people have said more, gets another version, which shares
the files that are the same. A manifest is written after its files, so a version is there whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from services.results.stores.store import Store, path_of, read_bytes, write_bytes

JOBS = "jobs"
DELETED = "deleted"
_JSON = ".json"
_FORMAT = 1
DIGITS = 16
_VERSION = re.compile(rf"version-(\d{{6}})\.([0-9a-f]{{{DIGITS}}})\.json")


class DamagedError(Exception):
    """A file of an archive is not what was written. The message names it and says what to do."""


@dataclass(frozen=True, slots=True)
class File:
    """Rows of a table, as a file of the job's folder. `sha256` in hexadecimal digits."""

    table: str
    file: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Version:
    """`schema` is the last migration of the database that wrote it, `touchstone` that version, `answers` says which
    answers it has: attempt, number, and number of infrastructure errors. `archived_at` is in UTC."""

    job_id: str
    number: int
    touchstone: str
    schema: int
    archived_at: str
    answers: str
    files: Sequence[File]

    def of(self, table: str) -> File | None:
        return next((file for file in self.files if file.table == table), None)


def folder_of(job_id: str) -> str:
    return f"{JOBS}/{job_id}"


def deletion_of(job_id: str) -> str:
    return f"{DELETED}/{job_id}{_JSON}"


def deleted(store: Store) -> list[str]:
    """The jobs that were deleted."""
    return [name.removesuffix(_JSON) for name in store.names(DELETED)]


def manifests(names: Sequence[str]) -> list[str]:
    """Those among the names of a job's folder that are manifests, the newest version first."""
    return sorted((name for name in names if _VERSION.fullmatch(name)), reverse=True)


def number_of(manifest: str) -> int:
    found = _VERSION.fullmatch(manifest)
    assert found is not None
    return int(found[1])


def is_same(files: Sequence[File], others: Sequence[File]) -> bool:
    return {file.file for file in files} == {file.file for file in others}


def write(store: Store, version: Version) -> None:
    """After the version's files."""
    content = json.dumps({"format": _FORMAT, **asdict(version)}, indent=1).encode()
    digest = hashlib.sha256(content).hexdigest()[:DIGITS]
    write_bytes(store, f"{folder_of(version.job_id)}/version-{version.number:06d}.{digest}.json", content)


def read(store: Store, job_id: str, manifest: str) -> Version:
    """Raises DamagedError, also for a format that only a newer Touchstone knows, and OSError."""
    name = f"{folder_of(job_id)}/{manifest}"
    found, content = _VERSION.fullmatch(manifest), read_bytes(store, name)
    if found is None or hashlib.sha256(content).hexdigest()[:DIGITS] != found[2]:
        raise damaged(store, name)
    told = json.loads(content)
    if told.pop("format") != _FORMAT:
        raise newer(store, name, told["touchstone"])
    files = [File(**each) for each in told.pop("files")]
    return Version(**told, files=files)


def damaged(store: Store, name: str) -> DamagedError:
    return _unread(store, name, "damaged, so nothing is taken from it")


def missing(store: Store, name: str) -> DamagedError:
    return _unread(store, name, "missing")


def _unread(store: Store, name: str, what: str) -> DamagedError:
    copy = "If you have a good copy of the file, put it there and run the command again."
    return DamagedError(f"{path_of(store, name)} is {what}. {copy}")


def newer(store: Store, name: str, touchstone: str) -> DamagedError:
    return DamagedError(
        f"{path_of(store, name)} was written by Touchstone {touchstone}, which is newer. "
        "Use that version or a later one."
    )


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
