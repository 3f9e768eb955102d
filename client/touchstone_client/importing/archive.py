"""Members of a ZIP archive as texts of bounded size, including Zstandard, which Inspect writes."""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO

_ZSTANDARD = 93
_LOCAL = struct.Struct("<4s5H3I2H")
_SIGNATURE = b"PK\x03\x04"
_ENCRYPTED = 0x1
_CHUNK = 1024 * 1024
_MOST_MEMBERS = 4_000_000


class Archive:
    """An open archive. Raises ValueError for an archive that cannot be read or is too large."""

    def __init__(self, file: Path, most_member: int, most_total: int) -> None:
        self._file: IO[bytes] = file.open("rb")
        self._most_member = most_member
        self._left = most_total
        try:
            self._zip = zipfile.ZipFile(self._file)
        except (zipfile.BadZipFile, ValueError, struct.error, EOFError) as error:
            self._file.close()
            raise ValueError(f"it is not a ZIP archive ({error})") from None
        if len(self._zip.infolist()) > _MOST_MEMBERS:
            self.close()
            raise ValueError(f"it has more than {_MOST_MEMBERS:,} members")

    def close(self) -> None:
        if hasattr(self, "_zip"):
            self._zip.close()
        self._file.close()

    def names(self) -> list[str]:
        """Each once, in the order of their last writing: the last of several with one name counts."""
        return list(self._zip.NameToInfo)

    def read(self, name: str) -> bytes:
        info = self._zip.NameToInfo[name]
        if info.flag_bits & _ENCRYPTED:
            raise ValueError(f"{name} is encrypted")
        try:
            if info.compress_type == _ZSTANDARD:
                return self._bounded(name, self._zstandard(info), info.CRC)
            with self._zip.open(info) as member:
                return self._bounded(name, member, None)
        except (zipfile.BadZipFile, NotImplementedError, zlib.error, EOFError, OSError, struct.error) as error:
            raise ValueError(f"{name} cannot be unpacked ({error})") from None

    def _bounded(self, name: str, member: IO[bytes], checksum: int | None) -> bytes:
        """Sizes in the archive are not trusted."""
        pieces: list[bytes] = []
        size, found = 0, 0
        with member:
            while piece := member.read(_CHUNK):
                size += len(piece)
                self._left -= len(piece)
                if size > self._most_member or self._left < 0:
                    raise ValueError(f"{name} is larger than {self._most_member // 1024**2} MB when unpacked")
                found = zlib.crc32(piece, found)
                pieces.append(piece)
        if checksum is not None and found != checksum:
            raise ValueError(f"{name} is damaged")
        return b"".join(pieces)

    def _zstandard(self, info: zipfile.ZipInfo) -> IO[bytes]:
        # Python's zipfile reads these from 3.14 on.
        try:
            import pyarrow
        except ModuleNotFoundError as error:
            raise ValueError(
                f"{info.filename} is packed with Zstandard. Run: pip install 'touchstone-client[inspect]'"
            ) from error

        self._file.seek(info.header_offset)
        header = _LOCAL.unpack(self._file.read(_LOCAL.size))
        if header[0] != _SIGNATURE:
            raise ValueError(f"{info.filename} is not in its place")
        self._file.seek(header[9] + header[10], 1)
        if info.compress_size > self._most_member:
            raise ValueError(f"{info.filename} has more than {self._most_member // 1024**2} MB")
        packed = pyarrow.BufferReader(self._file.read(info.compress_size))
        unpacked: IO[bytes] = pyarrow.CompressedInputStream(packed, "zstd")
        return unpacked
