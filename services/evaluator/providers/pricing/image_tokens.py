"""The most prompt tokens that an image may be charged as, from its size in pixels. Pure.

Each provider documents how it counts; what a rule leaves open counts at its most. `docs/endpoints.md` states the rules.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from itertools import count

_MOST_SEGMENTS = 10_000
"""Of a file, before its size is given up on: a hostile file may have one for every few bytes."""
_OPENAI_MODEL = re.compile(r"(?:openai/)?(?:gpt-|chatgpt-|o\d|computer-use)", re.IGNORECASE)
_4O_MINI = re.compile(r"(?:openai/)?gpt-4o-mini", re.IGNORECASE)
_AROUND = 16
"""Marks before and after an image."""
_UNKNOWN_LEAST = 8192
_UNKNOWN_PATCH = 14
"""A side of the smallest patches that open models cut images into. Models that always cut them into the same number of
pieces make up to 7,290 tokens (LLaVA-OneVision)."""


def most_tokens(kind: str, model: str, data: bytes) -> int | None:
    """For a model behind an endpoint of this kind; None if the file does not tell its size."""
    size = pixels(data)
    return None if size is None else _AROUND + _rule(kind, model)(*size)


def _rule(kind: str, model: str) -> Callable[[int, int], int]:
    if kind == "openai" and _OPENAI_MODEL.match(model):
        return _openai_4o_mini if _4O_MINI.match(model) else _openai
    return {"anthropic": _anthropic, "gemini": _gemini, "grok": _grok}.get(kind, _unknown)


def _openai(width: int, height: int) -> int:
    """Models count either tiles, at most 85 tokens and 170 for each, or patches of 32 pixels at up to 2.46 tokens. Most
    count at most 1,536 patches, and none more than 10,000."""
    patches = min(_cover(width, height, 32), 10_000)
    return max(85 + 170 * _openai_tiles(width, height), -(-246 * patches // 100))


def _openai_4o_mini(width: int, height: int) -> int:
    return 2833 + 5667 * _openai_tiles(width, height)


def _openai_tiles(width: int, height: int) -> int:
    """Tiles of 512 pixels, once the image fits into 2,048 pixels and its shorter side has 768. Whether small images are
    enlarged is not documented, so the larger number counts."""
    fits = min(1.0, 2048 / max(width, height))
    shrinks = min(fits, 768 / min(width, height))
    enlarges = min(2048 / max(width, height), 768 / min(width, height))
    return max(_cover(width * by, height * by, 512) for by in (shrinks, enlarges))


def _anthropic(width: int, height: int) -> int:
    """A token for 750 pixels, or for each patch of 28 by 28. The largest images of the newest models have 4,784."""
    return min(max(-(-width * height // 750), _cover(width, height, 28)), 4784)


def _gemini(width: int, height: int) -> int:
    """258 tokens for each crop of 256 to 768 pixels. Models of the third generation have a fixed number of up to 1,120
    at their usual resolution."""
    crop = min(max(min(width, height) * 2 // 3, 256), 768)
    return max(258 * _cover(width, height, crop), 1120)


def _grok(width: int, height: int) -> int:
    """256 tokens for each tile of 448 pixels, at most six, and for the whole image."""
    return 256 * (min(_cover(width, height, 448), 6) + 1)


def _unknown(width: int, height: int) -> int:
    """Of a model that nothing is known of."""
    rows = -(-height // _UNKNOWN_PATCH)
    return max(_UNKNOWN_LEAST, _cover(width, height, _UNKNOWN_PATCH) + rows)


def _cover(width: float, height: float, side: int) -> int:
    """How many squares cover the image."""
    return int(-(-width // side) * -(-height // side))


def pixels(data: bytes) -> tuple[int, int] | None:
    """Width and height by the header of a PNG, JPEG, GIF or WebP file; None if it does not tell them. Reads no
    pixel."""
    read = _png if data[:4] == b"\x89PNG" else _gif if data[:4] == b"GIF8" else _webp if data[:4] == b"RIFF" else _jpeg
    try:
        size = read(data)
    except (struct.error, IndexError):
        return None
    return size if size is not None and min(size) > 0 else None


def _png(data: bytes) -> tuple[int, int] | None:
    if data[12:16] != b"IHDR":
        return None
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _gif(data: bytes) -> tuple[int, int] | None:
    """The screen, or the first frame where it is larger: decoders enlarge the screen for it."""
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    place = 13 + _colours(flags)
    for _ in range(_MOST_SEGMENTS):
        if data[place] == 0x2C:
            left, top, wide, high = struct.unpack_from("<HHHH", data, place + 1)
            return max(width, left + wide), max(height, top + high)
        if data[place] != 0x21:
            return None
        place += 2
        for step in count():
            length = data[place]
            place += length + 1
            if not length:
                break
            if step == _MOST_SEGMENTS:
                return None
    return None


def _colours(flags: int) -> int:
    """Bytes of a colour table."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _webp(data: bytes) -> tuple[int, int] | None:
    chunk = data[12:16]
    if chunk == b"VP8X":
        width, height = (int.from_bytes(data[place : place + 3], "little") + 1 for place in (24, 27))
        return (width, height) if len(data) >= 30 else None
    if chunk == b"VP8L" and data[20] == 0x2F:
        (bits,) = struct.unpack_from("<I", data, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if chunk == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


_START_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_ALONE = frozenset({0x01, *range(0xD0, 0xD8)})
"""Markers without a segment."""


def _jpeg(data: bytes) -> tuple[int, int] | None:
    place = 2
    for _ in range(_MOST_SEGMENTS):
        if data[place] != 0xFF:
            return None
        marker = data[place + 1]
        if marker == 0xFF:
            place += 1
        elif marker in _ALONE:
            place += 2
        elif marker in _START_OF_FRAME:
            height, width = struct.unpack_from(">HH", data, place + 5)
            return width, height
        else:
            (length,) = struct.unpack_from(">H", data, place + 2)
            if length < 2:
                return None
            place += 2 + length
    return None
