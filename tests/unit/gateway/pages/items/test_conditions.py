"""Names of metadata fields in an address."""

from __future__ import annotations

import pytest

from services.gateway.pages.items.conditions import MOST_COLUMNS, columns, ordered_by, written


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("ward, level,,ward ", ["ward", "level"]),
        ('"a,b",ward', ["a,b", "ward"]),
        ('"", " " ,x', ["", " ", "x"]),
        ('"say ""hi""", "a', ['say "hi"', '"a']),
        ('"a"b,c', ['"a"b', "c"]),
        ("", ["n"]),
        (" , ,", ["n"]),
        (",".join("abcdefgh"), list("abcdefgh")[:MOST_COLUMNS]),
    ],
)
def test_columns_are_named_with_commas_and_in_quotes_where_they_need_them(named: str, expected: list[str]) -> None:
    assert columns(named, "-n") == expected


@pytest.mark.parametrize("name", ["ward", "a,b", "", " ", 'a"', '"', "-n", "a, ", '","', "k" * 300, "emoji😀"])
def test_every_name_can_be_written(name: str) -> None:
    assert columns(f"{written(name)}, x", "") == [name, "x"]
    assert ordered_by(written(name)) == (name, False)
    assert ordered_by("-" + written(name)) == (name, True)


def test_an_order_of_an_earlier_address_is_read_as_it_was() -> None:
    assert ordered_by("-a,b") == ("a,b", True)
    assert ordered_by("") == ("", False)
