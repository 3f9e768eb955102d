"""The content of a backup. A folder without a manifest is not a backup: the manifest is written last, whole or not at
all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from services.errors import InvalidRequestError
from services.results.stores.store import Store, pieces, read_bytes, write_bytes

FILE = "manifest.json"
DATABASE = "touchstone.duckdb"
_FORMAT = 1


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


def write(store: Store, manifest: Manifest) -> None:
    """Makes the store's place a backup."""
    write_bytes(store, FILE, json.dumps({"format": _FORMAT, **asdict(manifest)}, indent=1).encode())


def read(store: Store) -> Manifest:
    """Raises InvalidRequestError for a place that is not a backup, or one of a newer version."""
    folder = store.place
    try:
        told = json.loads(read_bytes(store, FILE))
        if told["format"] != _FORMAT:
            raise InvalidRequestError(
                f"{folder} was made by Touchstone {told['touchstone']} in a format that this version does not know. "
                "Use that version or a later one."
            )
        parts = [Part(each["file"], each["bytes"], each["sha256"], each["stream"]) for each in told["parts"]]
        return Manifest(told["made_at"], told["touchstone"], parts)
    except FileNotFoundError as error:
        raise InvalidRequestError(f"{folder} is not a backup: it has no {FILE}. Choose another place.") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidRequestError(
            f"The manifest of {folder} cannot be read ({error}). Choose another backup."
        ) from error


def faults(store: Store, manifest: Manifest) -> Iterator[str]:
    """What is wrong with a backup's files, in words. Reads all of them."""
    for wanted in manifest.parts:
        digest, size = hashlib.sha256(), 0
        try:
            with store.open(wanted.file) as file:
                for piece in pieces(file):
                    digest.update(piece)
                    size += len(piece)
        except OSError as error:
            yield f"{wanted.file} cannot be read: {error.strerror or error}"
            continue
        if (size, digest.hexdigest()) != (wanted.bytes, wanted.sha256):
            yield f"{wanted.file} has changed since it was written"
