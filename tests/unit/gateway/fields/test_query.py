"""Query parameters: what is read from an address."""

from __future__ import annotations

import pytest
from starlette.datastructures import QueryParams

from services.errors import InvalidRequestError
from services.gateway.fields.checks import boolean, integer, text
from services.gateway.fields.query import Parameter, read
from services.gateway.http.responses import FieldErrors

DECLARED = (
    Parameter("limit", integer(1, 10), "", 5),
    Parameter("deep", boolean, "", False),
    Parameter("name", text(5), "", required=True),
)


def test_what_is_absent_or_empty_has_its_default() -> None:
    assert read(QueryParams("name=a&limit="), DECLARED) == {"limit": 5, "deep": False, "name": "a"}
    assert read(QueryParams("name=a&limit=7&deep=true"), DECLARED) == {"limit": 7, "deep": True, "name": "a"}


@pytest.mark.parametrize("address", ["name=a&limt=7", "name=a&name=b"])
def test_unknown_and_repeated_names_are_refused(address: str) -> None:
    with pytest.raises(InvalidRequestError):
        read(QueryParams(address), DECLARED)


def test_every_wrong_value_has_a_sentence_of_its_own() -> None:
    with pytest.raises(FieldErrors) as refused:
        read(QueryParams("limit=11&deep=maybe"), DECLARED)

    assert [name for name, _ in refused.value.problems] == ["limit", "deep", "name"]
