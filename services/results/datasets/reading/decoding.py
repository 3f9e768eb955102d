"""Bytes as they were uploaded, as UTF-8: decompressed, without a byte order mark, within the limits."""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Iterator
from itertools import chain

from services.results.datasets.frames import Limits
from services.results.datasets.reading.faults import RefusedError
from services.words.sentences import counted

_STEP = 256 * 1024
_FREE_BYTES = 16 * 1024 * 1024
"""Decompressed bytes that are allowed at any ratio."""
_GZIP = b"\x1f\x8b"
_HEAD_BYTES = 8
_MARKS = (
    (codecs.BOM_UTF8, ""),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    # After UTF-32, whose little-endian mark begins with this one.
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_FOREIGN = (
    (b"PK\x03\x04", "a ZIP archive or an Excel workbook"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook"),
    (b"\x28\xb5\x2f\xfd", "compressed with Zstandard"),
    (b"BZh", "compressed with bzip2"),
    (b"\xfd7zXZ", "compressed with xz"),
    (b"7z\xbc\xaf", "a 7-Zip archive"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"%PDF", "a PDF document"),
    (_GZIP, "compressed with gzip twice"),
)


class Decoded:
    """Pieces of UTF-8. Iterating raises RefusedError if the rest of the file cannot be read; `taken` counts the
    received bytes, `bytes` the decompressed ones. Lines that are not UTF-8 are left for the lines' reader to name."""

    def __init__(self, pieces: Iterator[bytes], limits: Limits) -> None:
        self.bytes = self.taken = 0
        self._pieces = self._received(pieces)
        self._limits = limits

    def __iter__(self) -> Iterator[bytes]:
        head, pieces = _peeked(self._pieces)
        if head.startswith(_GZIP):
            head, pieces = _peeked(self._gunzipped(pieces))
        for magic, what in _FOREIGN:
            if head.startswith(magic):
                raise RefusedError(f"The file is {what}. Upload JSON Lines or CSV, plain or compressed with gzip.")
        pieces = self._counted(pieces)
        for mark, encoding in _MARKS:
            if head.startswith(mark):
                pieces = _without(mark, pieces)
                return self._recoded(pieces, encoding) if encoding else pieces
        return pieces

    def _received(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self.taken += len(piece)
            yield piece

    def _counted(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self.bytes += len(piece)
            self._check_size(self.bytes)
            yield piece

    def _check_size(self, size: int) -> None:
        if size > self._limits.file_bytes:
            raise RefusedError(
                f"The file has more than {counted(self._limits.file_bytes, 'byte')}. Upload it in parts."
            )

    def _gunzipped(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        inflate = _inflate()
        taken = given = 0
        for piece in pieces:
            taken += len(piece)
            # Decompressed bytes are counted elsewhere, and may be none at all.
            self._check_size(taken)
            while piece:
                if inflate.eof:
                    # Further members may follow, and padding after the last one.
                    piece = piece.lstrip(b"\0")
                    if not piece:
                        break
                    inflate = _inflate()
                try:
                    plain = inflate.decompress(piece, _STEP)
                    while len(plain) == _STEP:
                        given += self._within(len(plain), given, taken)
                        yield plain
                        plain = inflate.decompress(inflate.unconsumed_tail, _STEP)
                except zlib.error as error:
                    raise RefusedError("The gzip file is damaged. Compress and upload it again.") from error
                given += self._within(len(plain), given, taken)
                if plain:
                    yield plain
                piece = inflate.unused_data
        if not inflate.eof:
            raise RefusedError("The gzip file ends too early. Upload all of it.")

    def _within(self, more: int, given: int, taken: int) -> int:
        if given + more > _FREE_BYTES and given + more > self._limits.ratio * taken:
            raise RefusedError(
                f"The file gives over {counted(self._limits.ratio, 'byte')} for each compressed one. "
                "Upload it uncompressed."
            )
        return more

    def _recoded(self, pieces: Iterator[bytes], encoding: str) -> Iterator[bytes]:
        decoder = codecs.getincrementaldecoder(encoding)()
        name = encoding.upper()[:6]
        try:
            for piece in pieces:
                yield decoder.decode(piece).encode()
            decoder.decode(b"", final=True)
        except UnicodeError as error:
            raise RefusedError(f"The file begins as {name} and is not valid {name}. Save it as UTF-8.") from error


def _inflate() -> zlib._Decompress:
    return zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)


def _peeked(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes, and all pieces including them."""
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= _HEAD_BYTES:
            break
    return head, chain([head], pieces)


def _without(mark: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    first = next(pieces)
    yield first[len(mark) :]
    yield from pieces
