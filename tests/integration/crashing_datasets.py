"""Uploads or deletes a dataset and is killed at one step: `crashing_datasets.py <nats> <database> <work> <step>`.

The work is "upload" or a dataset's id, which is deleted. A step is "before" or "after", and a write to the store with
its number; or "within", for a shard of which a part was stored.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import Collection
from pathlib import Path

from services.bus import Bus, Datasets, contract
from services.bus.datasets import StillFree
from tests.integration.kept_datasets import keeping, lines
from touchstone.v1 import dataset_pb2

STEP = sys.argv[4]


class Dying(Datasets):
    """Kills the process before or after a write."""

    def __init__(self, bus: Bus, max_bytes: int = 0) -> None:
        super().__init__(bus, max_bytes)
        self._connection = bus
        self._writes: Counter[str] = Counter()

    def _begin(self, write: str) -> str:
        self._writes[write] += 1
        name = f"{write} {self._writes[write]}"
        die(f"before {name}")
        return name

    async def put_shard(self, digest: str, data: bytes) -> None:
        name = self._begin("shard")
        if f"within {name}" == STEP:
            await self._connection.js.publish(contract.object_chunks_subject(contract.DATASETS, "begun"), data[:100])
            die(f"within {name}")
        await super().put_shard(digest, data)
        die(f"after {name}")

    async def put_manifest(self, manifest: dataset_pb2.DatasetManifest) -> None:
        name = self._begin("manifest")
        await super().put_manifest(manifest)
        die(f"after {name}")

    async def delete(self, dataset_id: str) -> None:
        name = self._begin("delete")
        await super().delete(dataset_id)
        die(f"after {name}")

    async def delete_shards(self, digests: Collection[str], still_free: StillFree) -> int:
        name = self._begin("shards")
        found = await super().delete_shards(digests, still_free)
        die(f"after {name}")
        return found


def die(step: str) -> None:
    if step == STEP:
        os.kill(os.getpid(), signal.SIGKILL)


async def main(url: str, database: Path, work: str) -> None:
    async with keeping(url, database, Dying) as keeper:
        await keeper.cleared()
        if work == "upload":
            dataset = await keeper.upload(lines(range(2500)), "crashing")
            die("after listing 1")
            raise AssertionError(f"{dataset.dataset_id} was stored without dying at {STEP}")
        await keeper.datasets.deletions.delete(work)
        await keeper.cleared()
        raise AssertionError(f"{work} was deleted without dying at {STEP}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
