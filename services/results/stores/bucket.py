"""A bucket of an S3-compatible store. Its keys come from the environment or from files, as for AWS's command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

_CONNECT_S, _REQUEST_S, _TRIES = 5.0, 30.0, 3


class Bucket:
    """`place` as `s3://bucket/prefix`; `url` is where the store answers, "" for Amazon's. An object appears when its
    last byte is there."""

    def __init__(self, place: str, url: str) -> None:
        self.place = place
        self._prefix = place.removeprefix("s3://")
        self._name = self._prefix.partition("/")[0]
        address = urlsplit(url)
        self._files = fs.S3FileSystem(
            endpoint_override=address.netloc or None,
            scheme=address.scheme or "https",
            connect_timeout=_CONNECT_S,
            request_timeout=_REQUEST_S,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_TRIES),
            background_writes=False,
        )

    def names(self, folder: str) -> list[str]:
        return [info.base_name for info in self._listed(folder) if info.type is fs.FileType.File]

    def folders(self, folder: str) -> list[str]:
        return [info.base_name for info in self._listed(folder) if info.type is fs.FileType.Directory]

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        with _as_os_errors(), self._files.open_input_stream(f"{self._prefix}/{name}", compression=None) as file:
            yield file

    @contextmanager
    def create(self, name: str) -> Iterator[IO[bytes]]:
        path = f"{self._prefix}/{name}"
        with _as_os_errors():
            file = self._files.open_output_stream(path, compression=None)
            try:
                yield file
                file.close()
            except BaseException:
                # The library has no way to give a write up: closing it stores what has come so far.
                with suppress(OSError, pa.ArrowException):
                    file.close()
                with suppress(OSError, pa.ArrowException):
                    self._files.delete_file(path)
                raise

    def path(self, name: str) -> None:
        return None

    def remove_folder(self, folder: str) -> None:
        with _as_os_errors(), suppress(FileNotFoundError):
            self._files.delete_dir(f"{self._prefix}/{folder}")

    def _listed(self, folder: str) -> list[fs.FileInfo]:
        place = f"{self._prefix}/{folder}".rstrip("/")
        with _as_os_errors():
            listed = self._files.get_file_info(fs.FileSelector(place, allow_not_found=True))
            # A bucket that is missing looks like an empty one.
            if not listed and self._files.get_file_info(self._name).type is fs.FileType.NotFound:
                raise FileNotFoundError(f"There is no bucket {self._name}, or its keys may not see it")
        return sorted(listed, key=lambda info: info.base_name)


@contextmanager
def _as_os_errors() -> Iterator[None]:
    try:
        yield
    except pa.ArrowException as error:
        if isinstance(error, OSError):
            raise
        raise OSError(str(error).splitlines()[0][:300]) from error
