"""Items that are in the archive alone: what a read says that needs them, and how it gets them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol, TypeVar

from services.errors import ConflictError, UnavailableError

T = TypeVar("T")


class ItemsAwayError(UnavailableError):
    """The items of these jobs are in the archive alone. A database that has a way to bring them back does so, and then
    reads again."""

    def __init__(self, job_ids: Sequence[str]) -> None:
        super().__init__(
            f"The items of job {job_ids[0]} are in the archive. They can be read once the results service answers."
        )
        self.job_ids = tuple(job_ids)


class LostItemsError(ConflictError):
    """The archive has no whole file of a job's items, which are there alone."""


BringBack = Callable[[Sequence[str]], Awaitable[None]]


class Lent(Protocol):
    """Copies of items that are in the archive alone, for one read; see lent_items.py."""

    copies: dict[str, Path]

    async def add(self, job_ids: Sequence[str]) -> None: ...


Lend = Callable[[], AbstractAsyncContextManager[Lent]]


async def with_items(bring_back: BringBack | None, work: Callable[[], Awaitable[T]]) -> T:
    """Does the work, and once more after items of jobs that it lacks are back."""
    brought = set[str]()
    while True:
        try:
            return await work()
        except ItemsAwayError as away:
            if bring_back is None or brought.issuperset(away.job_ids):
                raise
            brought.update(away.job_ids)
            await bring_back(away.job_ids)
