"""The address of the compare page."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from services.errors import InvalidRequestError, NotFoundError
from services.gateway.pages.compare.view import MOST, View
from tests.unit.gateway.pages.compare.compared import JOBS

A, B, C = JOBS[:3]


def view(query: str) -> View:
    return View.of(Request({"type": "http", "query_string": query.encode(), "headers": []}))


def test_ticked_boxes_and_a_list_are_one_view() -> None:
    assert view(f"jobs={A}&jobs={B}") == view(f"jobs={A},{B}") == view(f"jobs={A},{B},{A}")
    assert view(f"jobs={A},{B}").address == f"/compare?jobs={A},{B}"
    assert view("").address == "/compare"


def test_every_choice_is_in_the_address() -> None:
    chosen = view(f"jobs={A},{B},{C}&baseline={B}&focus={A}&margin=0.02")
    assert view(chosen.address.partition("?")[2]) == chosen
    assert chosen.reference == B
    assert view(f"jobs={A},{B}").reference == B
    assert chosen.adding == f"{chosen.address}&choose=1"


@pytest.mark.parametrize("query", ["margin=x", "margin=-1", "margin=3", "margin=nan", "baseline=x", f"focus={C}"])
def test_what_does_not_fit_falls_back(query: str) -> None:
    assert view(f"jobs={A},{B}&{query}") == view(f"jobs={A},{B}")


def test_too_many_runs_and_impossible_ids_are_refused() -> None:
    many = ",".join(f"{number:08d}-0000-4000-8000-000000000000" for number in range(MOST + 1))
    with pytest.raises(InvalidRequestError, match="11 runs are selected"):
        view(f"jobs={many}")
    with pytest.raises(NotFoundError):
        view("jobs=nothing")


def test_a_removed_run_takes_its_part_with_it() -> None:
    chosen = view(f"jobs={A},{B},{C}&baseline={B}&focus={A}")
    assert chosen.without(B) == f"/compare?jobs={A},{C}&focus={A}"
    assert chosen.without(A) == f"/compare?jobs={B},{C}&baseline={B}"
    assert chosen.against(A) == f"/compare?jobs={A},{B},{C}&baseline={A}"
    assert chosen.pair(A, C) == f"/compare?jobs={A},{C}"
