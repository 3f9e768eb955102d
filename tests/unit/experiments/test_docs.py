"""docs/experiments.md is right: its definitions are read, and its tables have the numbers of the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from services.experiments import grid, prompts, reading, scenarios
from tests.unit.experiments.definitions import small

GUIDE = (Path(__file__).parents[3] / "docs/experiments.md").read_text()
BLOCKS = {language: re.findall(rf"(?ms)^```{language}\n(.*?)^```$", GUIDE) for language in ("yaml", "jsonl")}
WHOLE, ROWS, RUBRIC = (yaml.safe_load(block) for block in BLOCKS["yaml"])


def table(heading: str) -> dict[str, list[str]]:
    """The cells of the first table under a heading, by the names in backticks of the first one."""
    section = GUIDE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return {name: cells[1:] for cells in rows for name in re.findall(r"`([\w-]+)`", cells[0])}


def test_the_complete_definition_is_read() -> None:
    made = reading.read(WHOLE)

    assert (len(made.models), len(made.prompts), len(made.scenarios)) == (3, 3, 20)
    assert (made.cells, made.rows) == (180, 60)
    assert made.budget_usd == 2
    first = next(row for row in grid.rows(made) if row["custom_id"] == "brief/s-0001")
    assert first["messages"][0]["content"].startswith("Jonas, 21, studies biology")


def test_own_scenarios_make_the_rows_of_the_guide() -> None:
    template = {"id": "brief", "template": "One tip for {{city}} in {{season}}."}
    made = reading.read(small(**ROWS, prompts=[template], repeats=2))

    assert [one.scenario_id for one in made.scenarios] == ["rome", "s-0002"]
    assert list(grid.rows(made))[:2] == [json.loads(line) for line in BLOCKS["jsonl"][0].splitlines()]


def test_the_own_rubric_is_read() -> None:
    assert reading.read(small(**RUBRIC)).rubric.version == "brief-v1"


def test_the_table_has_every_field() -> None:
    assert table("A definition").keys() == {*reading.NAMES, *reading.ALIASES}


@pytest.mark.parametrize(
    ("said", "number"),
    [
        (r"`models` \| 1 to ([\d,]+)", reading.MOST_MODELS),
        (r"`prompts` \| 1 to ([\d,]+)", reading.MOST_PROMPTS),
        (r"`repeats` \| 1 to ([\d,]+)", reading.MOST_REPEATS),
        (r"`n_tips` \| 1 to ([\d,]+)", reading.MOST_TIPS),
        (r"at most ([\d,]+) rows", reading.MOST_ROWS),
        (r"their messages at most ([\d,]+) MiB", grid.MOST_BYTES / 2**20),
        (r"All templates together have at most ([\d,]+) KiB", reading.MOST_TEMPLATES / 1024),
        (r"a list of up to ([\d,]+) objects", scenarios.MOST_SCENARIOS),
        (r"A scenario has at most ([\d,]+) KiB", reading.MOST_SCENARIO / 1024),
        (r"The set `tips` has ([\d,]+) scenarios", len(scenarios.tips())),
    ],
)
def test_numbers_are_those_of_the_code(said: str, number: float) -> None:
    (found,) = re.findall(said, GUIDE)
    assert int(found.replace(",", "")) == number


def test_the_tables_have_what_ships() -> None:
    assert tuple(table("Prompts")) == prompts.SHIPPED
    assert list(table("Scenarios")) == list(scenarios.tips()[0].row)
    assert table("The rubric `tip-v1`") == {
        one.name: [one.description.split("? ")[0] + "?", f"{one.weight:g}"] for one in reading.shipped_rubric().criteria
    }
    for one in reading.shipped_rubric().criteria:
        assert ([example.score for example in one.examples], one.lowest, one.highest) == (["1", "3", "5"], 1, 5)


def test_fields_that_scenarios_cannot_have_are_named() -> None:
    names = ", ".join(f"`{name}`" for name in (*grid.OF_ROWS, *grid.OF_TEMPLATES)).replace(", `div", " and `div")
    assert f"- {names} are set by the experiment." in GUIDE
