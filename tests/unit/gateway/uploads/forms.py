"""Forms in pieces."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from itertools import pairwise


async def pieces(data: bytes, cuts: Sequence[int] = ()) -> AsyncIterator[bytes]:
    places = [0, *sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]
    for start, end in pairwise(places):
        if data[start:end]:
            yield data[start:end]
