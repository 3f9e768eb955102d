"""A folder as a store. Only the account that writes there can read the files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_FRESH = ".new"


class Folder:
    """The folder is created with the first file."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self.place = str(self._path)

    def names(self, folder: str) -> list[str]:
        return sorted(path.name for path in self._listed(folder) if path.suffix != _FRESH and not _is_folder(path))

    def folders(self, folder: str) -> list[str]:
        return sorted(path.name for path in self._listed(folder) if _is_folder(path))

    def open(self, name: str) -> IO[bytes]:
        return (self._path / name).open("rb")

    @contextmanager
    def create(self, name: str) -> Iterator[IO[bytes]]:
        path = self._path / name
        new = [parent for parent in (path.parent, *path.parent.parents) if not parent.exists()]
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = path.with_name(f"{path.name}{_FRESH}")
        try:
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
        for parent in (path.parent, *(made.parent for made in new)):
            sync_folder(parent)

    def path(self, name: str) -> Path:
        return self._path / name

    def remove_folder(self, folder: str) -> None:
        if (self._path / folder).exists():
            shutil.rmtree(self._path / folder)

    def _listed(self, folder: str) -> list[Path]:
        try:
            return list((self._path / folder).iterdir())
        except FileNotFoundError:
            return []


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def sync_folder(folder: Path) -> None:
    """Flushes new and changed names of files to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
