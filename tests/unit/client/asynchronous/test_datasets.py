"""Datasets by the asynchronous client."""

from __future__ import annotations

from pathlib import Path

from deploy.local.ports import free_port
from tests.unit.client.fakes import Fakes, dataset
from tests.unit.client.uploads import CONTENT, STORED, as_path, sent
from touchstone.v1 import dataset_pb2
from touchstone_client import AsyncClient, Scoring, Settings


async def test_an_awaited_upload_sends_the_same(fakes: Fakes, tmp_path: Path) -> None:
    fakes.answers["UploadDataset"] = STORED
    async with AsyncClient() as client:
        made = await client.upload_dataset(
            as_path(tmp_path), name="mine", format="lines", scoring=Scoring(scorer="json")
        )
    options, content, _ = sent(fakes)
    assert (made, content == CONTENT) == (dataset(), True)
    assert (options.name, options.format, options.scoring.scorer) == ("mine", dataset_pb2.Dataset.FORMAT_LINES, "json")


async def test_an_upload_goes_to_an_address_that_answers(fakes: Fakes, tmp_path: Path) -> None:
    fakes.answers["UploadDataset"] = STORED
    listed = f"127.0.0.1:{free_port()},{fakes.address}"
    async with AsyncClient(Settings(scheduler=fakes.address, results=listed)) as client:
        assert await client.upload_dataset(as_path(tmp_path)) == dataset()
    assert sent(fakes)[1] == CONTENT
