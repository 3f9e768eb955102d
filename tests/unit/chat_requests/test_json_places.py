"""The line of what is refused in a JSON file."""

from __future__ import annotations

import pytest

from services.chat_requests import yaml_document
from services.chat_requests.faults import WrongRowError
from services.chat_requests.json_places import fault_line, lines, nearest
from services.chat_requests.strict_json import parse

FINE = '{"a": [1, 2.5, true, null, "x\\n\\"[,"],\n "b": {"a": "é \\ud83d\\udc69"},\n "c": {"a": []}'


@pytest.mark.parametrize(
    "wrong",
    [
        '"a": 1',
        '"\\u0061": 1',
        '"d": NaN',
        '"d": [-Infinity]',
        '"d": 1e999',
        f'"d": {"9" * 5_000}',
        '"d": "\\ud800"',
        '"\\u0000": 1',
        f'"d": {"[" * 40}{"]" * 40}',
    ],
)
def test_each_fault_is_found_on_its_line(wrong: str) -> None:
    parse(f"{FINE}\n}}".encode())
    for text, line in ((f"{FINE},\n\n{wrong}\n}}", 5), (f'[\n{FINE}}},\n{{"a": 1,\n{wrong}}}]', 6)):
        with pytest.raises(WrongRowError):
            parse(text.encode())
        assert fault_line(text) == line


TEXT = '{\n "a": [1,\n {"b": {}, "c\\n": []}],\n\n"d": "x,{[\\" "}'


def test_each_value_has_the_line_of_its_name() -> None:
    found = lines(TEXT)
    assert found == {"": 1, "a": 2, "a[0]": 2, "a[1]": 3, "a[1].b": 3, "a[1].c\n": 3, "d": 5}
    assert yaml_document.lines(TEXT) == found
    assert lines("[\n[],\n2]") == yaml_document.lines("[\n[],\n2]") == {"": 1, "[0]": 2, "[1]": 3}
    block = "a:\n  - b: |\n      x\n      y\n    c: 1\n"
    assert yaml_document.lines(block) == {"": 1, "a": 1, "a[0]": 2, "a[0].b": 2, "a[0].c": 5}
    assert [nearest(found, path) for path in ("a[1].b.x", "a[7].q", "e", "e.f", "")] == [3, 2, 0, 0, 0]


def test_nothing_is_found_in_what_is_fine_and_in_what_is_not_json() -> None:
    assert fault_line(f"{FINE}}}") == fault_line(FINE) == fault_line("") == fault_line("1") == 0
