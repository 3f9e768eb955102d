"""Names of values of a row."""

from __future__ import annotations

from typing import Any

import pytest

from services.chat_requests.paths import has, value_at

ROW: dict[str, Any] = {"a": {"b": [10, {"c": None}]}, "a.b": 1, "x.y": {"z": 2}, "list": [[1, 2]]}


@pytest.mark.parametrize(
    ("path", "value"),
    [("a.b.0", 10), ("a.b.1.c", None), ("x.y.z", 2), ("list.0.1", 2), ("a.b", [10, {"c": None}])],
)
def test_a_path_finds_fields_places_and_names_with_dots(path: str, value: Any) -> None:
    assert value_at(ROW, path) == value
    assert has(ROW, path)


@pytest.mark.parametrize("path", ["b", "a.c", "a.b.2", "a.b.-1", "list.0.1.0", "", "a.", "list.000000000"])
def test_a_path_that_leads_nowhere_is_named(path: str) -> None:
    with pytest.raises(KeyError):
        value_at(ROW, path)
    assert not has(ROW, path)
