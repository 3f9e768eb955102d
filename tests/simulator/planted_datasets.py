"""Bugs in the keeping of datasets that the simulator must find: see `planted`."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from services.bus import Datasets
from services.results.datasets.deleting import Deletions
from services.results.datasets.garbage_collection import Collector, ShardHolds
from services.results.datasets.uploading import Uploads


def _look_before_marking() -> AbstractContextManager[Any]:
    """Jobs that begin between the look at jobs and the mark of the manifest are not seen."""

    async def marked(self: Deletions, manifest: Any) -> list[str]:
        jobs = await self._live_jobs(manifest.dataset.dataset_id)
        if not jobs:
            manifest.deleting = True
            await self._store.put_manifest(manifest)
        return jobs

    return patch.object(Deletions, "_marked", marked)


def _keep_the_mark() -> AbstractContextManager[Any]:
    """A deletion that is refused leaves the dataset marked."""

    async def marked(self: Deletions, manifest: Any) -> list[str]:
        manifest.deleting = True
        await self._store.put_manifest(manifest)
        return await self._live_jobs(str(manifest.dataset.dataset_id))

    return patch.object(Deletions, "_marked", marked)


def _delete_what_is_used() -> AbstractContextManager[Any]:
    """Nobody looks whether jobs use a dataset."""

    async def marked(self: Deletions, manifest: Any) -> list[str]:
        return []

    return patch.object(Deletions, "_marked", marked)


def _delete_later() -> AbstractContextManager[Any]:
    """A deletion is acknowledged first and done later: a crash forgets it."""

    async def delete(self: Deletions, dataset_id: str) -> None:
        asyncio.get_running_loop().call_later(1.0, self._unfinished.put_nowait, dataset_id)

    return patch.object(Deletions, "delete", delete)


def _forget_deletions() -> AbstractContextManager[Any]:
    """Deletions that a crash cut short are not ended."""
    return patch.object(Deletions, "resume", lambda self, dataset_ids: None)


def _collect_what_is_held() -> AbstractContextManager[Any]:
    """The collector takes shards of uploads that are under way."""

    def not_held(self: ShardHolds, digests: Collection[str]) -> list[str]:
        return list(digests)

    return patch.object(ShardHolds, "not_held", not_held)


def _leave_shards() -> AbstractContextManager[Any]:
    """Shards that no dataset has stay."""
    return patch.object(Collector, "collect", lambda self: None)


def _leave_strays() -> AbstractContextManager[Any]:
    """Pieces of objects that were never finished stay."""

    async def drop_strays(self: Datasets) -> int:
        return 0

    return patch.object(Datasets, "drop_strays", drop_strays)


def _list_it_only() -> AbstractContextManager[Any]:
    """An upload is acknowledged before its manifest is stored."""
    right = Datasets.put_manifest

    async def put_manifest(self: Datasets, manifest: Any) -> None:
        if manifest.deleting or await self.get_manifest(manifest.dataset.dataset_id) is not None:
            await right(self, manifest)
            return

        async def later() -> None:
            await asyncio.sleep(0.5)
            await right(self, manifest)

        task = asyncio.create_task(later())
        task.add_done_callback(lambda task: task.cancelled() or task.exception())

    return patch.object(Datasets, "put_manifest", put_manifest)


def _upload_twice() -> AbstractContextManager[Any]:
    """An upload that is sent again makes another dataset."""

    async def made_by(self: Uploads, request: Any) -> None:
        return None

    return patch.object(Uploads, "made_by", made_by)


DATASET_BUGS = {
    "look-before-marking": _look_before_marking,
    "keep-the-mark": _keep_the_mark,
    "delete-what-is-used": _delete_what_is_used,
    "delete-later": _delete_later,
    "forget-deletions": _forget_deletions,
    "collect-what-is-held": _collect_what_is_held,
    "leave-shards": _leave_shards,
    "leave-strays": _leave_strays,
    "list-it-only": _list_it_only,
    "upload-twice": _upload_twice,
}
