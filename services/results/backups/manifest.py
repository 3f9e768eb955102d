"""The content of a backup. A folder without a manifest is not a backup: the manifest is written last, whole or not at
all."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from services.errors import InvalidRequestError
from services.results.stores.folder import sync_folder

FILE = "manifest.json"
DATABASE = "touchstone.duckdb"
_FORMAT = 1
_PIECE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a backup. `stream` has its configuration and state where the file is a stream's."""

    file: str
    bytes: int
    sha256: str
    stream: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manifest:
    """`made_at` is in UTC, `touchstone` the version that made it."""

    made_at: str
    touchstone: str
    parts: Sequence[Part]

    @property
    def streams(self) -> list[Part]:
        return [part for part in self.parts if part.stream]


def part(folder: Path, file: str, stream: Mapping[str, Any] | None = None) -> Part:
    """A file that is there, synced to disk by this call."""
    digest, size = hashlib.sha256(), 0
    with (folder / file).open("rb") as opened:
        os.fsync(opened.fileno())
        while piece := opened.read(_PIECE_BYTES):
            digest.update(piece)
            size += len(piece)
    return Part(file, size, digest.hexdigest(), stream or {})


def write(folder: Path, manifest: Manifest) -> None:
    """Makes the folder a backup."""
    fresh = folder / f"{FILE}.new"
    with fresh.open("w") as opened:
        json.dump({"format": _FORMAT, **asdict(manifest)}, opened, indent=1)
        opened.flush()
        os.fsync(opened.fileno())
    fresh.replace(folder / FILE)
    sync_folder(folder)
    sync_folder(folder.parent)


def read(folder: Path) -> Manifest:
    """Raises InvalidRequestError for a folder that is not a backup, or one of a newer version."""
    try:
        told = json.loads((folder / FILE).read_text())
        if told["format"] != _FORMAT:
            raise InvalidRequestError(
                f"{folder} was made by Touchstone {told['touchstone']} in a format that this version does not know. "
                "Use that version or a later one."
            )
        parts = [Part(each["file"], each["bytes"], each["sha256"], each["stream"]) for each in told["parts"]]
        return Manifest(told["made_at"], told["touchstone"], parts)
    except FileNotFoundError as error:
        raise InvalidRequestError(f"{folder} is not a backup: it has no {FILE}. Choose another folder.") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidRequestError(
            f"The manifest of {folder} cannot be read ({error}). Choose another backup."
        ) from error


def faults(folder: Path, manifest: Manifest) -> Iterator[str]:
    """What is wrong with a backup's files, in words."""
    for wanted in manifest.parts:
        try:
            found = part(folder, wanted.file, wanted.stream)
        except OSError as error:
            yield f"{wanted.file} cannot be read: {error.strerror}"
            continue
        if found != wanted:
            yield f"{wanted.file} has changed since it was written"
