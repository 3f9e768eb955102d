"""Rows of experiments: their order, ids and metadata, and that datasets read them as they are meant."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.experiments import grid, reading
from services.experiments.fields import DefinitionError
from services.experiments.grid import Cell
from tests.unit.experiments.definitions import small
from tests.unit.results.uploads import jsonl, upload


def rows(**changes: Any) -> list[dict[str, Any]]:
    return list(grid.rows(reading.read(small(**changes))))


def test_rows_are_in_order_of_prompts_scenarios_and_repeats() -> None:
    two = [{"id": "b", "template": "Greet {{who}}."}, {"id": "a", "template": "Insult {{who}}, kindly."}]
    made = rows(prompts=two, repeats=2)

    assert [row["custom_id"] for row in made] == [
        *("b/s-0001", "b/s-0001/r2", "b/second", "b/second/r2"),
        *("a/s-0001", "a/s-0001/r2", "a/second", "a/second/r2"),
    ]
    assert made[3] == {
        "custom_id": "b/second/r2",
        "messages": [{"role": "user", "content": "Greet Bo."}],
        "metadata": {"prompt": "b", "scenario": "second", "repeat": 2, "who": "Bo"},
    }


def test_repeats_have_seeds_of_their_own_only_if_there_is_a_seed() -> None:
    assert [row["seed"] for row in rows(seed=7, repeats=3)] == [7, 8, 9, 7, 8, 9]
    assert not any("seed" in row for row in rows(repeats=3))
    assert not any("seed" in row for row in rows(seed=7))


def test_a_reference_of_a_scenario_is_the_reference_of_its_rows() -> None:
    first, second = rows(scenarios=[{"who": "Ada", "reference": ["Hi", "Hello"]}, {"who": "Bo"}])

    assert first["reference"] == ["Hi", "Hello"]
    assert "reference" not in first["metadata"]
    assert "reference" not in second


def test_diversity_is_a_sentence_that_templates_insert() -> None:
    template = [{"id": "p", "template": "{{who}}:{{diversity}}:{{n_tips}}:{{id}}"}]
    asked = {
        diversity: rows(prompts=template, diversity=diversity, n_tips=3)[0]["messages"][0]["content"]
        for diversity in (True, False)
    }

    assert asked == {True: f"Ada:{grid.DIFFER}:3:s-0001", False: "Ada::3:s-0001"}


def test_datasets_read_the_rows_as_they_are() -> None:
    definition = reading.read(
        small(prompts=["v1", "v2-mentor", "v3-few-shot"], scenarios={"set": "tips", "count": 5}, repeats=2, seed=1)
    )
    made = list(grid.rows(definition))
    uploaded = upload(jsonl(*made))

    assert uploaded.dataset is not None
    assert len(made) == len(uploaded.rows) == definition.rows == 30
    assert definition.cells == 30
    for row, stored in zip(made, uploaded.rows, strict=True):
        assert stored.custom_id == row["custom_id"]
        assert [(m.role, m.content) for m in stored.messages] == [(m["role"], m["content"]) for m in row["messages"]]
        assert stored.sampling.seed == row["seed"]


def test_a_row_that_cannot_be_filled_is_a_problem_of_its_prompt() -> None:
    with pytest.raises(DefinitionError) as caught:
        reading.read(small(scenarios=[{"who": "Ada"}, *({"whom": "Bo"} for _ in range(9))]))

    ((path, sentence),) = caught.value.problems
    assert path == "prompts[0]"
    assert sentence.startswith(
        'prompts[0], plain, cannot be filled with scenarios s-0002, s-0003, s-0004 and 6 more. There is no "who"'
    )


def test_each_reason_why_rows_cannot_be_filled_is_said_once() -> None:
    rows = [{"who": " "}, {"who": "Ada"}, {"a": 1}, {"b": 1}, {"b": 2}, {"c": 1}, {"d": 1}, {"e": 1}, {"f": 1}]
    with pytest.raises(DefinitionError) as caught:
        reading.read(small(prompts=[{"id": "own", "template": "{{who}}"}], scenarios=rows))

    sentences = [sentence for _, sentence in caught.value.problems]
    assert sentences[0] == (
        "prompts[0], own, cannot be filled with scenario s-0001. The messages contain no text: all that the template "
        "inserts is empty here."
    )
    assert sentences[2].startswith("prompts[0], own, cannot be filled with scenarios s-0004 and s-0005. There is no")
    assert sentences[-1] == "prompts[0], own, cannot be filled with 2 further scenarios either."
    assert len(sentences) == 6


def test_a_grid_that_is_too_large_is_refused_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "MOST_BYTES", 250)

    reading.read(small())
    with pytest.raises(DefinitionError, match=r"^The messages of all rows have more than 250 bytes\."):
        reading.read(small(repeats=3))


names = st.from_regex(r"\A[A-Za-z0-9_.-]{1,64}\Z")


@given(names, names, st.integers(1, 10))
def test_ids_of_rows_name_their_cells(prompt: str, scenario: str, repeat: int) -> None:
    cell = Cell(prompt, scenario, repeat)
    assert grid.cell_of(grid.custom_id(cell)) == cell


@given(st.text(max_size=20))
def test_other_ids_name_no_cell(text: str) -> None:
    cell = grid.cell_of(text)
    assert cell is None or grid.custom_id(cell) == text


@pytest.mark.parametrize("text", ["", "v1", "v1/", "/s", "v1/s/r1", "v1/s/r02", "v1/s/2", "v1/s/r2/x", "v1/s/r٢"])
def test_ids_that_no_row_has(text: str) -> None:
    assert grid.cell_of(text) is None
