"""Datasets by the blocking client."""

from __future__ import annotations

from collections.abc import Callable

import grpc
import pytest

from deploy.local.ports import free_port
from services import errors
from tests.unit.client.fakes import DATASET, Fakes, dataset
from tests.unit.client.uploads import STORED, sent
from touchstone.v1 import dataset_pb2, dataset_service_pb2
from touchstone_client import Client, InvalidError, Settings, UnreachableError


def test_bad_lines_are_told_with_their_numbers(fakes: Fakes) -> None:
    lines = [(3, "It is no JSON."), (17, "custom_id stands in line 3, too.")]
    groups = [errors.LineReason("It is no JSON.", 200, [3, 4]), errors.LineReason("No id.", 20, [17])]
    fakes.answers["UploadDataset"] = errors.BadLinesError("250 lines cannot be used.", lines, 250, groups)
    with Client() as client, pytest.raises(InvalidError, match="250 lines") as raised:
        client.upload_dataset(b"x")
    assert [(bad.line, bad.reason) for bad in raised.value.lines] == lines
    assert (raised.value.lines_total, raised.value.field) == (250, "")
    assert [errors.LineReason(one.reason, one.count, [*one.lines]) for one in raised.value.reasons] == groups
    assert raised.value.other_lines == 30


def test_other_refusals_have_no_lines(fakes: Fakes) -> None:
    fakes.answers["UploadDataset"] = errors.InvalidRequestError("template is needed.", "options.template")
    with Client() as client, pytest.raises(InvalidError) as raised:
        client.upload_dataset(b"x")
    assert (raised.value.lines, raised.value.field) == ((), "options.template")


@pytest.mark.parametrize("method", ["UploadDataset", "CreateHubDataset", "DeleteDataset"])
def test_what_makes_or_removes_a_dataset_is_not_repeated(fakes: Fakes, method: str) -> None:
    fakes.answers[method] = lambda request: grpc.StatusCode.UNAVAILABLE
    calls: dict[str, Callable[[Client], object]] = {
        "UploadDataset": lambda client: client.upload_dataset(b"x"),
        "CreateHubDataset": lambda client: client.create_hub_dataset("a/b", template="{{q}}", split="test"),
        "DeleteDataset": lambda client: client.delete_dataset(DATASET),
    }
    with Client() as client, pytest.raises(UnreachableError):
        calls[method](client)
    assert len(fakes.heard) == 1


def test_an_upload_goes_to_an_address_that_answers(fakes: Fakes) -> None:
    fakes.answers["UploadDataset"] = STORED
    listed = f"127.0.0.1:{free_port()},{fakes.address}"
    with Client(Settings(scheduler=fakes.address, results=listed)) as client:
        assert client.upload_dataset(b"x") == dataset()
    assert sent(fakes)[1] == b"x"


def test_a_hub_dataset_says_what_it_is_made_of(fakes: Fakes) -> None:
    fakes.answers["CreateHubDataset"] = dataset_service_pb2.CreateHubDatasetResponse(dataset=dataset())
    with Client() as client:
        client.create_hub_dataset("openai/gsm8k", config="main", split="test", template="{{question}}", limit=9)
    (request,) = fakes.requests("CreateHubDataset")
    assert (request.source.dataset, request.source.config, request.source.split) == ("openai/gsm8k", "main", "test")
    assert (request.options.name, request.options.template, request.limit) == ("", "{{question}}", 9)
    assert request.options.format == dataset_pb2.Dataset.FORMAT_HUB


def test_datasets_and_rows_come_page_after_page(fakes: Fakes) -> None:
    fakes.answers["ListDatasets"] = lambda request: dataset_service_pb2.ListDatasetsResponse(
        datasets=[dataset()], next_page_token="" if request.page_token else "more"
    )
    fakes.answers["ListDatasetRows"] = lambda request: dataset_service_pb2.ListDatasetRowsResponse(
        rows=[dataset_pb2.DatasetRow(custom_id=request.page_token or "first")],
        next_page_token="" if request.page_token else "last",
    )
    with Client() as client:
        assert len(list(client.datasets("cap", owner="alice", project_id=7))) == 2
        assert [row.custom_id for row in client.dataset_rows(DATASET)] == ["first", "last"]
    first = fakes.requests("ListDatasets")[0]
    assert (first.query, first.owner, first.project_id) == ("cap", "alice", 7)
