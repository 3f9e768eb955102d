"""What a folder and a bucket have in common: files with names such as `jobs/x/a.parquet`, which appear whole or not at
all. Calls block, and raise OSError."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Protocol

from services import environment
from services.errors import InvalidRequestError
from services.results.stores.folder import Folder

PIECE_BYTES = 1024 * 1024
_BUCKETS = "s3://"


class Store(Protocol):
    """`place` is a folder's path, or a bucket with its prefix as `s3://bucket/prefix`."""

    place: str

    def names(self, folder: str) -> list[str]:
        """Names of the files directly in a folder of the store, sorted; none where it is missing."""

    def folders(self, folder: str) -> list[str]:
        """Names of the folders directly in a folder of the store, sorted; none where it is missing."""

    def open(self, name: str) -> AbstractContextManager[IO[bytes]]:
        """The file, to be read from its beginning to its end. Raises FileNotFoundError."""

    def create(self, name: str) -> AbstractContextManager[IO[bytes]]:
        """A file to be written. It is there once the context ends, and not if that ends with an error. A file of this
        name is replaced."""

    def path(self, name: str) -> Path | None:
        """Where the file is, or would be, on this machine; None in a bucket."""

    def remove_folder(self, folder: str) -> None:
        """Removes a folder with everything in it, if it is there."""


def is_bucket(place: str) -> bool:
    return place.startswith(_BUCKETS)


def check_bucket(what: str, place: str) -> str:
    """A bucket with its prefix, without a slash at the end. Raises InvalidRequestError, whose sentence begins with
    `what`."""
    bucket = place.removeprefix(_BUCKETS).partition("/")[0]
    if not bucket or set(place) & set("@?#") or "//" in place.removeprefix(_BUCKETS):
        # Not shown: somebody may have put a key into it.
        raise InvalidRequestError(
            f"{what} must be a bucket such as s3://bucket/prefix. Keys of the store belong in AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or in the files of AWS's command line."
        )
    return place.rstrip("/")


def s3_url() -> str:
    """Where an S3-compatible store answers; "" for Amazon's."""
    return environment.url("TOUCHSTONE_S3_URL", "", ("https", "http"))


def open_store(place: str, url: str) -> Store:
    """The store of a place; `url` is as of `s3_url`. Raises InvalidRequestError for a place that cannot be right."""
    if is_bucket(place):
        # The library for S3 takes memory and threads.
        from services.results.stores.bucket import Bucket

        return Bucket(check_bucket("The place", place), url)
    return Folder(Path(place))


def path_of(store: Store, name: str) -> str:
    """How people find a file of the store."""
    return f"{store.place}/{name}"


def read_bytes(store: Store, name: str) -> bytes:
    with store.open(name) as file:
        return file.read()


def write_bytes(store: Store, name: str, content: bytes) -> None:
    with store.create(name) as file:
        file.write(content)


def put(store: Store, name: str, source: Path) -> Counted:
    """Copies a local file into the store."""
    with source.open("rb") as opened, store.create(name) as file:
        counted = Counted(file)
        shutil.copyfileobj(opened, counted, PIECE_BYTES)
    return counted


class Counted:
    """A file that is being written, whose size and SHA-256 are counted."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._digest = file, hashlib.sha256()
        self.bytes = 0

    @property
    def sha256(self) -> str:
        """In hexadecimal digits."""
        return self._digest.hexdigest()

    def write(self, piece: bytes) -> int:
        self._digest.update(piece)
        self.bytes += len(piece)
        return self._file.write(piece)


def pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(PIECE_BYTES):
        yield piece


def sha256_of(store: Store, name: str) -> str:
    """Of the bytes of a file of the store, in hexadecimal digits."""
    digest = hashlib.sha256()
    with store.open(name) as file:
        for piece in pieces(file):
            digest.update(piece)
    return digest.hexdigest()


def fetch(store: Store, name: str, target: Path) -> str:
    """Copies a file of the store to a local one; returns the SHA-256 of its bytes in hexadecimal digits."""
    digest = hashlib.sha256()
    with store.open(name) as file, target.open("wb") as written:
        for piece in pieces(file):
            digest.update(piece)
            written.write(piece)
    return digest.hexdigest()
