"""The parts of a long suite that continuous integration takes turns in."""

from __future__ import annotations

import pytest

from tests.parts import Part, places_of, without_chosen

FILES = (("a", 11), ("b", 1), ("c", 4))
NAMES = [f"tests/{file}.py::test_{number}" for file, count in FILES for number in range(count)]


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_the_parts_together_run_each_test_once(count: int) -> None:
    parts = [Part(number, count).chosen(NAMES) for number in range(count)]
    assert sorted(name for part in parts for name in part) == sorted(NAMES)


def test_a_part_takes_about_its_share_of_each_file() -> None:
    for number in range(3):
        chosen = Part(number, 3).chosen(NAMES)
        assert sum("/a.py" in name for name in chosen) in (3, 4)
        assert sum("/c.py" in name for name in chosen) in (1, 2)


def test_files_with_one_test_are_spread_over_the_parts() -> None:
    names = [f"tests/{file}.py::test" for file in range(60)]
    assert min(len(Part(number, 3).chosen(names)) for number in range(3)) > 10


def test_files_that_wait_and_files_that_compute_take_turns_and_short_ones_end() -> None:
    waiting = [f"tests/{folder}/test_{number}.py" for folder in ("e2e", "gateway") for number in range(10)]
    computing = [f"tests/unit/{folder}/test_{number}.py" for folder in ("results", "words") for number in range(60)]
    files = [file for file in (*computing, *waiting) for _ in range(5)]
    places = places_of(files)
    order = sorted(places, key=lambda file: places[file])

    assert sorted(order) == sorted({*waiting, *computing})
    assert order[0] in waiting[:10]
    assert all(set(computing) & set(order[begin : begin + 12]) for begin in range(len(order) - 12))
    assert all(set(waiting) & set(order[begin : begin + 40]) for begin in range(80))
    assert set(order[-10:]) <= set(computing)


@pytest.mark.parametrize("text", ["3/3", "-1/2", "1", "a/b", "0/0"])
def test_what_is_not_a_part_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"part|invalid literal"):
        Part.parse(text)


def test_a_module_is_left_alone_only_where_none_of_its_tests_is_chosen() -> None:
    plain = "def test() -> None: ..."
    some = "@pytest.mark.stack\ndef test() -> None: ..."
    whole = "pytestmark = pytest.mark.stack\n\ndef test() -> None: ..."
    several = "pytestmark = [pytest.mark.stack, pytest.mark.model]\n"
    perhaps = (
        "pytestmark = [\n    pytest.mark.skipif(there, reason='[x]'),\n    *([pytest.mark.stack] if a else []),\n]\n"
    )
    asked = {
        "stack": (True, False, False, False, False),
        "not stack and not model": (False, False, True, True, False),
        "not model": (False, False, False, True, False),
        "stack or model": (False, False, False, False, False),
        "": (False, False, False, False, False),
    }
    for expression, expected in asked.items():
        assert tuple(without_chosen(one, expression) for one in (plain, some, whole, several, perhaps)) == expected
