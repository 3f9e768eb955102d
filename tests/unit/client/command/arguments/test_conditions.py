"""Conditions that choose items."""

from __future__ import annotations

from tests.unit.client.fakes import JOB, Fakes
from touchstone.v1 import results_service_pb2
from touchstone_client.command import main

Verdict = results_service_pb2.Annotation


def test_items_take_every_condition(kept: Fakes) -> None:
    more = [
        "--metadata",
        "name=Ada",
        "--length",
        "10..200",
        "--score",
        "..0.5",
        "--verdict",
        "fix",
        "--verdict",
        "none",
    ]
    assert main(["items", JOB, *more, "--custom-id", "candidate-7", "--query", "Lyon"]) == 0
    (request,) = kept.requests("ListItems")
    asked = request.conditions
    assert (request.query, asked.custom_id, asked.metadata_field, asked.metadata_value) == (
        "Lyon",
        "candidate-7",
        "name",
        "Ada",
    )
    assert (asked.length_low, asked.length_high) == (10, 200)
    assert (asked.HasField("score_low"), asked.score_high) == (False, 0.5)
    assert list(asked.verdicts) == [Verdict.VERDICT_FIX, Verdict.VERDICT_UNSPECIFIED]


def test_metadata_of_any_field_and_one_length(kept: Fakes) -> None:
    assert main(["items", JOB, "--metadata", "Ada", "--length", "7"]) == 0
    asked = kept.requests("ListItems")[0].conditions
    assert (asked.metadata_field, asked.metadata_value, asked.length_low, asked.length_high) == ("", "Ada", 7, 7)


def test_a_cell_of_the_classes_and_an_order(kept: Fakes) -> None:
    assert main(["items", JOB, "--reference", "yes", "--prediction", "", "--order", "slowest"]) == 0
    (request,) = kept.requests("ListItems")
    asked = request.conditions
    assert (asked.reference, asked.HasField("prediction"), asked.prediction) == ("yes", True, "")
    assert request.order == results_service_pb2.ListItemsRequest.ORDER_SLOWEST
    assert not request.with_classes
    assert main(["items", JOB]) == 0
    assert not kept.requests("ListItems")[1].HasField("conditions")
