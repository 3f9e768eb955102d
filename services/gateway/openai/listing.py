"""Lists in pages that are continued after an object's id."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, TypeVar

from services.errors import InvalidRequestError

T = TypeVar("T")
Json = dict[str, Any]

MOST = 10_000
"""Objects that are looked through."""


async def newest(pages: AsyncIterator[Sequence[T]], wanted: Callable[[T], bool]) -> list[T]:
    """What is wanted of the newest objects, newest first."""
    found: list[T] = []
    seen = 0
    async for page in pages:
        found += [one for one in page if wanted(one)]
        seen += len(page)
        if seen >= MOST:
            break
    return found


def page(objects: Sequence[Json], after: str | None, limit: int) -> Json:
    """The objects after the one with this id. Raises InvalidRequestError for an id that is not in the list."""
    start = 0
    if after:
        places = [place for place, one in enumerate(objects) if one["id"] == after]
        if not places:
            raise InvalidRequestError(f"after is {after[:80]!r}, which is not in the list.", "after")
        start = places[0] + 1
    shown = objects[start : start + limit]
    return {
        "object": "list",
        "data": shown,
        "first_id": shown[0]["id"] if shown else None,
        "last_id": shown[-1]["id"] if shown else None,
        "has_more": start + limit < len(objects),
    }
