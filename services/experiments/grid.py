"""The rows of an experiment: every prompt filled with every scenario, as lines of a dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from services.chat_requests.faults import WrongRowError
from services.chat_requests.strict_json import dump
from services.experiments.definition import Definition
from services.experiments.scenarios import REFERENCE, Scenario
from services.words.refusals import counted

OF_ROWS = ("prompt", "scenario", "repeat")
"""Names in the metadata of rows, which scenarios may not have."""
OF_TEMPLATES = ("n_tips", "diversity")
"""What a template can insert in addition to a scenario's fields, which scenarios may not have either."""
DIFFER = "Make the tips differ: each is about another task or another kind of action, and none repeats another's idea."
"""The value of `diversity` in an experiment with diversity; without it, nothing is inserted."""
MOST_BYTES = 256 * 1024 * 1024
"""Of the messages of all rows as JSON."""
_MOST_FAULTS = 5
"""Reasons of one prompt that are said."""
_MOST_NAMED = 3
"""Scenarios that are named with a reason."""


class Cell(NamedTuple):
    """Where a row is in the grid of each model. `repeat` counts from 1."""

    prompt: str
    scenario: str
    repeat: int


def custom_id(cell: Cell) -> str:
    """ "v1/s-0001", and "v1/s-0001/r2" of the second repeat."""
    return f"{cell.prompt}/{cell.scenario}" + (f"/r{cell.repeat}" if cell.repeat > 1 else "")


def cell_of(row_id: str) -> Cell | None:
    """What `custom_id` made an id of; None for any other id."""
    parts = row_id.split("/")
    if not 2 <= len(parts) <= 3 or not all(parts):
        return None
    repeat = 1
    if len(parts) == 3:
        digits = parts[2][1:]
        if not parts[2].startswith("r") or not digits.isascii() or not digits.isdecimal() or len(digits) > 2:
            return None
        repeat = int(digits)
    cell = Cell(parts[0], parts[1], repeat)
    return cell if custom_id(cell) == row_id else None


def rows(definition: Definition) -> Iterator[dict[str, Any]]:
    """The lines of the dataset: by prompt, then by scenario, then by repeat. Each has `custom_id`, `messages`,
    `metadata`, and `reference` where the scenario has one. With a seed, repeat r of several is asked with seed + r - 1,
    so that a repeat is not the same answer again."""
    seed = definition.sampling.get("seed")
    for prompt in definition.prompts:
        for scenario in definition.scenarios:
            messages = prompt.messages(_values(definition, scenario))
            fields = dict(scenario.fields)
            reference = {REFERENCE: fields.pop(REFERENCE)} if REFERENCE in fields else {}
            for repeat in range(1, definition.repeats + 1):
                cell = Cell(prompt.prompt_id, scenario.scenario_id, repeat)
                seeded = {"seed": seed + repeat - 1} if seed is not None and definition.repeats > 1 else {}
                yield {
                    "custom_id": custom_id(cell),
                    "messages": messages,
                    **reference,
                    **seeded,
                    "metadata": {**cell._asdict(), **fields},
                }


def problems(definition: Definition) -> Iterator[tuple[str, str]]:
    """(path, sentence) for prompts that some scenario does not fill, and for a grid that is too large. Each reason is
    said once, with the first scenarios that have it. It fills every prompt with every scenario once: about 20 µs for
    each."""
    size = 0
    for place, prompt in enumerate(definition.prompts):
        unfilled: dict[str, list[str]] = {}
        for scenario in definition.scenarios:
            try:
                size += len(dump(prompt.messages(_values(definition, scenario))).encode()) * definition.repeats
            except WrongRowError as error:
                unfilled.setdefault(error.reason, []).append(scenario.scenario_id)
            if size > MOST_BYTES:
                break
        path = f"prompts[{place}]"
        for reason, ids in islice(unfilled.items(), _MOST_FAULTS):
            yield path, f"{path}, {prompt.prompt_id}, cannot be filled with {_named(ids)}. {reason}"
        if rest := sum(map(len, islice(unfilled.values(), _MOST_FAULTS, None))):
            yield path, f"{path}, {prompt.prompt_id}, cannot be filled with {counted(rest, 'further scenario')} either."
        if size > MOST_BYTES:
            yield (
                "prompts",
                f"The messages of all rows have more than {MOST_BYTES:,} bytes. Use shorter prompts, or fewer "
                "prompts, scenarios or repeats.",
            )
            return


def _named(ids: Sequence[str]) -> str:
    """ "scenario a", "scenarios a and b", or the first ones "and 7 more"."""
    if len(ids) == 1:
        return f"scenario {ids[0]}"
    shown = ids[: _MOST_NAMED if len(ids) > _MOST_NAMED else -1]
    last = f"{len(ids) - len(shown):,} more" if len(ids) > _MOST_NAMED else ids[-1]
    return f"scenarios {', '.join(shown)} and {last}"


def _values(definition: Definition, scenario: Scenario) -> dict[str, Any]:
    return {
        **scenario.row,
        "n_tips": definition.n_tips,
        "diversity": DIFFER if definition.diversity else "",
    }
