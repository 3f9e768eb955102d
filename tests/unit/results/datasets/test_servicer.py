"""What a dataset may be called, and whose it is."""

from __future__ import annotations

import pytest

from services.errors import InvalidRequestError
from services.results.datasets.servicer import NAME_LENGTH, checked, checked_hub
from services.rpc import Identity
from touchstone.v1 import dataset_pb2, suite_pb2, token_pb2

ANN = Identity("ann", token_pb2.ROLE_USER)
GATEWAY = Identity("gateway", token_pb2.ROLE_SERVICE)


@pytest.mark.parametrize("name", ["rows.jsonl", "/home/ann/rows.jsonl", "C:\\data\\rows.jsonl", " rows.jsonl "])
def test_a_file_is_called_by_its_name_without_folders(name: str) -> None:
    assert checked(dataset_pb2.DatasetOptions(name=name), ANN).name == "rows.jsonl"


@pytest.mark.parametrize("name", ["", "folder/", "a" * (NAME_LENGTH + 1), "a\x00b", "a\u202eb"])
def test_a_name_that_cannot_be_shown_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        checked(dataset_pb2.DatasetOptions(name=name), ANN)
    assert refused.value.field == "name"


def test_a_split_of_the_hub_is_called_after_it_unless_it_has_a_name() -> None:
    source = suite_pb2.DataSource(dataset="openai/gsm8k", split="test")
    found = checked_hub(dataset_pb2.DatasetOptions(), source, ANN)
    assert (found.name, found.format) == ("openai/gsm8k/default/test", dataset_pb2.Dataset.FORMAT_HUB)
    assert checked_hub(dataset_pb2.DatasetOptions(name="mine"), source, ANN).name == "mine"


def test_only_a_service_says_whose_a_dataset_is() -> None:
    asked = dataset_pb2.DatasetOptions(name="rows", owner="bob")
    assert [checked(asked, caller).owner for caller in (ANN, GATEWAY)] == ["ann", "bob"]


def test_a_project_below_none_is_refused() -> None:
    with pytest.raises(InvalidRequestError) as refused:
        checked(dataset_pb2.DatasetOptions(name="rows", project_id=-1), ANN)
    assert refused.value.field == "project_id"
