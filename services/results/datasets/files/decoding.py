"""Bytes as they were uploaded, decompressed and within the limits; of texts as UTF-8 without a byte order mark."""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Iterator
from itertools import chain

from services.chat_requests.faults import RefusedError
from services.results.datasets.frames import Limits
from services.words.refusals import counted

_STEP = 256 * 1024
_FREE_BYTES = 16 * 1024 * 1024
"""Decompressed bytes that are allowed at any ratio."""
_GZIP = b"\x1f\x8b"
_HEAD_BYTES = 16
_SAMPLE_BYTES = 4096
_MOST_BINARY, _FEW_CONTROLS = 50, 8
"""A text may have one control character in 50 bytes, and a short one 8."""
_TEXT = bytes(byte for byte in range(256) if byte >= 32 and byte != 127) + b"\t\n\v\f\r\x1a\x1b"
_TAR, _TAR_AT = b"ustar", 257
_MARKS = (
    (codecs.BOM_UTF8, ""),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    # After UTF-32, whose little-endian mark begins with this one.
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
ZIP = b"PK\x03\x04"
PARQUET = b"PAR1"
_FOREIGN = (
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"PARE", "an encrypted Parquet file"),
    (b"\xd0\xcf\x11\xe0", "an old or an encrypted Excel workbook. Save it as .xlsx without a password, or"),
    (b"\x28\xb5\x2f\xfd", "compressed with Zstandard"),
    (b"BZh", "compressed with bzip2"),
    (b"\xfd7zXZ", "compressed with xz"),
    (b"7z\xbc\xaf", "a 7-Zip archive"),
    (b"ARROW1", "an Arrow file"),
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF87a", "a GIF image"),
    (b"GIF89a", "a GIF image"),
    (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"),
    (b"{\\rtf", "a rich text document"),
    (b"Rar!\x1a", "a RAR archive"),
    (b"\x04\x22\x4d\x18", "compressed with LZ4"),
    (b"SQLite format 3", "an SQLite database"),
    (b"Obj\x01", "an Avro file"),
    (b"\x93NUMPY", "a NumPy file"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x7fELF", "a program"),
    (b"OggS", "a sound or video file"),
    (b"ID3", "a sound file"),
    (_GZIP, "compressed with gzip twice"),
)


class Expanded:
    """Decompressed bytes of a file, or of what is in it, by the limits of an upload."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._bytes = 0

    def add(self, more: int, taken: int) -> None:
        """Counts `more` bytes that come of `taken` compressed ones so far. Raises RefusedError for too many."""
        self._bytes += more
        if self._bytes > self._limits.file_bytes:
            raise _too_large(self._limits)
        if self._bytes > _FREE_BYTES and self._bytes > self._limits.ratio * taken:
            raise RefusedError(
                f"The file gives over {counted(self._limits.ratio, 'byte')} for each compressed one. "
                "Upload it uncompressed."
            )


class Decoded:
    """Pieces of UTF-8, or of a binary file whose first bytes `binary` then has. Iterating raises RefusedError if the
    rest of the file cannot be read; `taken` counts the received bytes, `bytes` the decompressed ones. Lines that are
    not UTF-8 are left for the lines' reader to name."""

    def __init__(self, pieces: Iterator[bytes], limits: Limits) -> None:
        self.bytes = self.taken = 0
        self.binary = b""
        self._pieces = self._received(pieces)
        self._limits = limits

    def __iter__(self) -> Iterator[bytes]:
        head, pieces = _peeked(self._pieces)
        if head.startswith(_GZIP):
            head, pieces = _peeked(self._gunzipped(pieces))
        # Some programs put the mark of a text before whatever they save.
        what = next((what for magic, what in _FOREIGN if head.removeprefix(codecs.BOM_UTF8).startswith(magic)), "")
        if what:
            raise foreign(what)
        pieces = self._counted(pieces)
        self.binary = next((magic for magic in (ZIP, PARQUET) if head.startswith(magic)), b"")
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
            raise _too_large(self._limits)

    def _gunzipped(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        inflate = _inflate()
        taken = 0
        expanded = Expanded(self._limits)
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
                        expanded.add(len(plain), taken)
                        yield plain
                        plain = inflate.decompress(inflate.unconsumed_tail, _STEP)
                except zlib.error as error:
                    raise RefusedError("The gzip file is damaged. Compress and upload it again.") from error
                expanded.add(len(plain), taken)
                if plain:
                    yield plain
                piece = inflate.unused_data
        if not inflate.eof:
            raise RefusedError("The gzip file ends too early. Upload all of it.")

    def _recoded(self, pieces: Iterator[bytes], encoding: str) -> Iterator[bytes]:
        decoder = codecs.getincrementaldecoder(encoding)()
        name = encoding.upper()[:6]
        try:
            for piece in pieces:
                yield decoder.decode(piece).encode()
            decoder.decode(b"", final=True)
        except UnicodeError as error:
            raise RefusedError(f"The file begins as {name} and is not valid {name}. Save it as UTF-8.") from error


def foreign(what: str) -> RefusedError:
    """Why a file that is `what` is refused, and what to do."""
    end = "" if what.endswith(", or") else ". U"
    return RefusedError(
        f"The file is {what}{end or ' u'}pload JSON, CSV, Excel (.xlsx) or Parquet, plain or compressed with gzip."
    )


def refuse_binary(head: bytes) -> None:
    """Raises RefusedError for the first bytes of a binary file: its lines would each be wrong JSON.
    A text may have some wrong characters, which the reader of its lines then names."""
    if head[_TAR_AT:].startswith(_TAR):
        raise foreign("a tar archive")
    sample = head[:_SAMPLE_BYTES]
    if not sample or sample.lstrip()[:1] in (b"{", b"["):
        return
    nulls = sorted((sample[0::2].count(0), sample[1::2].count(0)))
    if nulls[1] * 8 > len(sample) * 3 and nulls[0] * 50 < len(sample):
        raise RefusedError("The file looks like UTF-16 without the mark of its encoding. Save it as UTF-8.")
    controls = len(sample.translate(None, _TEXT))
    if b"\0" in sample and controls > max(_FEW_CONTROLS, len(sample) // _MOST_BINARY):
        raise foreign("binary, and not a text")


def _too_large(limits: Limits) -> RefusedError:
    return RefusedError(f"The file has more than {counted(limits.file_bytes, 'byte')}. Upload it in parts.")


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
