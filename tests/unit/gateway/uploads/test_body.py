"""Bodies are gathered in pieces."""

from __future__ import annotations

from services.gateway.uploads.body import PIECE_BYTES, gathered
from tests.unit.gateway.uploads.forms import pieces


async def test_small_pieces_are_gathered_and_none_is_lost() -> None:
    data = bytes(range(256)) * 4096
    found = [piece async for piece in gathered(pieces(data, range(0, len(data), 1000)))]
    assert b"".join(found) == data
    assert all(PIECE_BYTES <= len(piece) < PIECE_BYTES + 1000 for piece in found[:-1])
