"""Small pictures, as files and as rows hold them."""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode
from typing import Any

PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==")
GIF = b64decode("R0lGODlhAQABAIAAAAUEBAAAACwAAAAAAQABAAACAkQBADs=")
WEBP = b64decode("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00\xff\xd9"


def png(width: int, height: int) -> bytes:
    """A file whose header has this size. Its pixels are those of PNG."""
    return PNG[:16] + struct.pack(">II", width, height) + PNG[24:]


def data_uri(data: bytes = PNG, media_type: str = "image/png") -> str:
    return f"data:{media_type};base64,{b64encode(data).decode()}"


def image(data: bytes = PNG, media_type: str = "image/png", **further: str) -> dict[str, Any]:
    """A part of a message in OpenAI's form."""
    return {"type": "image_url", "image_url": {"url": data_uri(data, media_type), **further}}
