"""The rows of an experiment are kept once under its name, whatever crashes, and other rows are refused."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from services import bus
from services.bus import Room
from services.errors import ConflictError, InvalidRequestError, UnavailableError
from services.experiments import grid, reading
from services.results.datasets import index
from services.results.experiments.preparing import Experiments
from tests.integration.kept_datasets import Keeper, keeping
from tests.nats_server import NatsServer
from tests.unit.experiments.definitions import small
from touchstone.v1 import dataset_pb2
from touchstone.v1 import dataset_service_pb2 as pb


def experiments(keeper: Keeper) -> Experiments:
    return Experiments(keeper.datasets.uploads, Room())


def written(**changes: Any) -> str:
    return reading.read(small(**changes)).written()


async def test_the_rows_are_a_dataset_that_lists_leave_out(nats: NatsServer, tmp_path: Path) -> None:
    async with keeping(nats.url, tmp_path / "results.duckdb") as keeper:
        made = await experiments(keeper).prepare("root", written(repeats=2, seed=1))
        assert (made.name, made.owner, made.rows, made.experiment.name) == ("greetings", "root", 4, "greetings")
        asked = list(grid.rows(reading.read(small(repeats=2, seed=1))))
        rows = await keeper.rows(made.dataset_id)
        assert [row.custom_id for row in rows] == [line["custom_id"] for line in asked]
        assert [json.loads(row.metadata) for row in rows] == [line["metadata"] for line in asked]
        listed = await keeper.database.read(lambda c: index.list_datasets(c, pb.ListDatasetsRequest()))
        assert (list(listed.datasets), listed.total_size) == ([], 0)
        assert await keeper.database.read(lambda c: index.get(c, made.dataset_id)) == made


async def test_one_name_is_one_dataset_for_everybody_and_after_a_restart(nats: NatsServer, tmp_path: Path) -> None:
    async with keeping(nats.url, tmp_path / "results.duckdb") as keeper:
        asked = experiments(keeper)
        assert await asked.find(written()) is None
        one, other = await asyncio.gather(
            asked.prepare("root", written()), asked.prepare("admin", written(models=["ollama/llama3.2:1b"]))
        )
        assert one == other
    # The index is lost; the manifests are not.
    async with keeping(nats.url, tmp_path / "fresh.duckdb") as keeper:
        asked = experiments(keeper)
        assert await asked.prepare("root", written()) == await asked.find(written()) == one
        with pytest.raises(ConflictError, match="Choose another name"):
            await asked.find(written(repeats=2))
        with pytest.raises(ConflictError, match=r"differs in: repeats \(1 there, 2 here\)\. Choose another name\."):
            await asked.prepare("root", written(repeats=2))
        again = await asked.prepare("root", written(name="farewells", repeats=2))
        assert again.dataset_id != one.dataset_id
        await keeper.datasets.deletions.delete(one.dataset_id)
        assert (await asked.prepare("root", written(repeats=2))).rows == 4


class FailingOnce(bus.Datasets):
    """Stores the first manifest, and says that it did not."""

    failed = False

    async def put_manifest(self, manifest: dataset_pb2.DatasetManifest) -> None:
        await super().put_manifest(manifest)
        if not self.failed:
            self.failed = True
            raise UnavailableError("NATS is silent.")


async def test_a_failed_attempt_leaves_nothing_that_a_later_one_finds(nats: NatsServer, tmp_path: Path) -> None:
    async with keeping(nats.url, tmp_path / "results.duckdb", FailingOnce) as keeper:
        asked = experiments(keeper)
        with pytest.raises(UnavailableError):
            await asked.prepare("root", written())
        made = await asked.prepare("root", written(repeats=2))
        assert made.rows == 4
        await keeper.cleared()
        assert await keeper.listed() == {made.dataset_id}


@pytest.mark.parametrize("text", ["", "[1", "[]", '{"name": "x"}', "[" * 100_000])
async def test_a_wrong_definition_is_refused(nats: NatsServer, tmp_path: Path, text: str) -> None:
    async with keeping(nats.url, tmp_path / "results.duckdb") as keeper:
        with pytest.raises(InvalidRequestError):
            await experiments(keeper).prepare("root", text)
