"""The most tokens of images: sizes by headers, and each provider's rule."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.evaluator.providers.pricing.image_tokens import most_tokens, pixels
from tests.pictures import GIF, JPEG, PNG, WEBP, png

AROUND = 16


def jpeg(width: int, height: int, marker: int = 0xC0) -> bytes:
    """With a thumbnail of another size in front, inside a segment, and fill bytes."""
    thumbnail = b"\xff\xe1\x00\x0d" + b"\xff\xc0\x00\x11\x08" + struct.pack(">HH", 9, 9) + b"\x00\x00"
    frame = b"\xff\xff" + bytes([marker]) + struct.pack(">HBHH", 17, 8, height, width) + bytes(10)
    return b"\xff\xd8" + thumbnail + frame + b"\xff\xda"


def vp8(width: int, height: int) -> bytes:
    return b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0" + b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height | 0x4000)


def vp8x(width: int, height: int) -> bytes:
    sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + sides


def gif(screen: tuple[int, int], frame: tuple[int, int]) -> bytes:
    head = b"GIF89a" + struct.pack("<HH", *screen) + b"\x81\0\0" + bytes(12)
    comment = b"\x21\xfe\x03,,,\x00"
    return head + comment + b"\x2c" + struct.pack("<HHHH", 2, 3, *frame)


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (PNG, (1, 1)),
        (GIF, (1, 1)),
        (WEBP, (1, 1)),
        (png(640, 480), (640, 480)),
        (jpeg(640, 480), (640, 480)),
        (jpeg(640, 480, 0xC2), (640, 480)),
        (vp8(640, 480), (640, 480)),
        (vp8x(70_000, 480), (70_000, 480)),
        (gif((640, 480), (10, 10)), (640, 480)),
        (gif((1, 1), (640, 480)), (642, 483)),
        # None of these tells a size.
        (JPEG, None),
        (png(0, 5), None),
        (jpeg(5, 0), None),
        (b"", None),
        (b"\xff\xd8" + b"\xff" * 1_500_000, None),
        (b"\xff\xd8" + b"\xff\xd0" * 700_000, None),
        (b"\xff\xd8\xff\xe0\x00\x00" * 9, None),
        (GIF[:13] + b"\x21\xfe" + b"\x01x" * 700_000, None),
        (GIF[:13] + b"\x21\xfe\x00" * 400_000, None),
        (b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\0", None),
    ],
)
def test_a_size_is_read_from_the_header(data: bytes, size: tuple[int, int] | None) -> None:
    assert pixels(data) == size


@given(st.sampled_from([PNG, GIF, WEBP, JPEG, jpeg(9, 9), vp8(9, 9), vp8x(9, 9)]), st.data())
def test_no_file_however_damaged_is_more_than_unread(whole: bytes, data: st.DataObject) -> None:
    damaged = bytearray(whole[: data.draw(st.integers(0, len(whole)))])
    for place in data.draw(st.lists(st.integers(0, max(0, len(damaged) - 1)), max_size=4)) if damaged else ():
        damaged[place] = data.draw(st.integers(0, 255))
    size = pixels(bytes(damaged))
    assert size is None or min(size) > 0
    for kind in ("openai", "anthropic", "gemini", "grok", "vllm"):
        assert (most_tokens(kind, "gpt-4o", bytes(damaged)) is None) == (size is None)


@pytest.mark.parametrize(
    ("kind", "model", "size", "least"),
    [
        # Examples in the providers' own documentation. A bound may be above them, and not below.
        ("openai", "gpt-4o", (1024, 1024), 765),
        ("openai", "gpt-4o", (2048, 4096), 1105),
        ("openai", "gpt-4.1-mini", (1024, 1024), 1659),
        ("openai", "gpt-4.1-nano", (1800, 2400), 3572),
        ("openai", "gpt-4o-mini", (1024, 1024), 25501),
        ("anthropic", "claude", (200, 200), 54),
        ("anthropic", "claude", (1092, 1092), 1590),
        ("gemini", "gemini-2.5-pro", (384, 384), 258),
        ("gemini", "gemini-2.5-pro", (960, 540), 1548),
        ("gemini", "gemini-3-pro", (100, 100), 1120),
        ("grok", "grok-4", (1344, 896), 1792),
        # Open models: tokens of 28 pixels, and a fixed number of crops.
        ("vllm", "qwen2.5-vl", (4000, 3000), 15300),
        ("ollama", "llava", (32, 32), 7290),
    ],
)
def test_a_bound_holds_for_documented_examples(kind: str, model: str, size: tuple[int, int], least: int) -> None:
    found = most_tokens(kind, model, png(*size))
    assert found is not None
    assert least <= found <= 5 * max(least, 8192)


def test_a_rule_is_that_of_the_kind() -> None:
    def most(kind: str, model: str, side: int) -> int:
        return (most_tokens(kind, model, png(side, side)) or 0) - AROUND

    assert most("anthropic", "claude", 8000) == 4784
    assert most("gemini", "gemini-2.5-pro", 3000) == 16 * 258
    assert most("openai", "gpt-5", 1024) == 2520
    assert most("openai", "qwen-vl", 1024) == most("vllm", "gpt-4o", 1024) == 8192
    assert most("acme", "m", 2800) == 200 * 200 + 200
