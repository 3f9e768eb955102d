"""Items as REST shows them."""

from __future__ import annotations

from services.gateway.api.items.listing import item_body
from touchstone.v1 import results_service_pb2


def test_an_item_whose_parameters_were_cut_and_whose_choice_is_impossible_is_shown() -> None:
    stored = results_service_pb2.StoredItem(task="t")
    stored.result.parameters = '{"extra":"xxx'
    stored.result.continuations.add(text=" no", loglikelihood=float("-inf"))
    shown = item_body(stored)
    assert shown["parameters"] is None
    assert shown["continuations"][0]["loglikelihood"] is None
