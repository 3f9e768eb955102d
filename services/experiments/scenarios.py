"""Scenarios: the situations that every prompt of an experiment is filled with.

A set ships with Touchstone. It combines people, times of the week and lists of tasks, and is the same in all runs:
the tests hold the hash of its first scenarios.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any

from services.chat_requests.faults import WrongRowError
from services.chat_requests.strict_json import MOST_LINE_BYTES, dump, parse
from services.experiments.prompts import data
from services.words import references, refusals

TIPS = "tips"
SETS = (TIPS,)
MOST_SCENARIOS = 5_000
_MOST_WRONG = 100
"""Lines of a file that are named."""
_FORM = " Write each scenario as a JSON object on a line of its own."
REFERENCE = "reference"
"""A scenario's field of this name is the reference of its rows."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A situation: its id, and values by the names that templates use."""

    scenario_id: str
    fields: Mapping[str, Any]

    @property
    def row(self) -> dict[str, Any]:
        """As a definition holds it, the id first."""
        return {"id": self.scenario_id, **self.fields}


@cache
def tips() -> tuple[Scenario, ...]:
    """All scenarios of the set "tips", of synthetic people.

    The numbers of persons, of times and of lists for each person have no common divisor. So the remainders of a
    scenario's place count through all combinations, each once (the Chinese remainder theorem), and in the first n
    scenarios, the counts of any two persons differ by at most one. The same holds for times and for lists.
    """
    known = json.loads(data("scenarios", "tips.json"))
    persons, times = known["personas"], known["time_slots"]
    lists = len(persons[0]["tasks"])
    made = []
    for place in range(len(persons) * len(times) * lists):
        person, time = persons[place % len(persons)], times[place % len(times)]
        fields = {
            "persona": person["persona"],
            "about": person["about"],
            **time,
            "tasks": "\n".join(f"- {task}" for task in person["tasks"][place % lists]),
        }
        made.append(Scenario(default_id(place), fields))
    return tuple(made)


def default_id(place: int) -> str:
    """Of a scenario without an id, by its place from 0: "s-0001" of the first."""
    return f"s-{place + 1:04}"


def odd_references(scenarios: Sequence[Scenario]) -> list[Any]:
    """What rows do not say of the references of these scenarios: of each scenario null, or a list of the place of its
    reference among the fields and, where a row has none for it, the value. Empty where all have one place, or stand at
    the end before it: that is found by trying."""
    fields = [list(one.fields.items()) for one in scenarios]
    places = [next((n for n, (name, _) in enumerate(one) if name == REFERENCE), None) for one in fields]
    known = [(place, len(one) - 1) for place, one in zip(places, fields, strict=True) if place is not None]
    lost = [place is not None and references.is_none(one[place][1]) for place, one in zip(places, fields, strict=True)]
    common = max((place for place, _ in known), default=0)
    if not any(lost) and all(place == min(common, last) for place, last in known):
        return []
    return [
        None if place is None else [place, one[place][1]] if dropped else [place]
        for place, one, dropped in zip(places, fields, lost, strict=True)
    ]


def digest(scenarios: Sequence[Scenario]) -> str:
    """SHA-256 of the rows as JSON Lines, in hexadecimal digits. The order of scenarios and of their names counts: a
    template may insert an object as JSON."""
    return sha256("".join(f"{dump(one.row)}\n" for one in scenarios).encode()).hexdigest()


def read_lines(content: bytes) -> tuple[list[Any], list[str]]:
    """The rows of a JSON Lines file, as a definition takes them under `scenarios`, and a sentence with the number of
    the line for each that is wrong, up to 100. Blank lines are ignored."""
    rows: list[Any] = []
    wrong: list[str] = []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        if len(rows) == MOST_SCENARIOS:
            wrong.append(f"The file has more than {MOST_SCENARIOS:,} scenarios. Leave some out.")
            break
        if len(wrong) == _MOST_WRONG:
            break
        try:
            if len(line) > MOST_LINE_BYTES:
                raise WrongRowError(refusals.too_large("It", len(line), MOST_LINE_BYTES, "bytes"))
            row = parse(line)
            if not isinstance(row, dict):
                raise WrongRowError("The line must be a JSON object with the values that the prompts insert.")
            rows.append(row)
        except WrongRowError as error:
            # Once: a file of another form is wrong on every line.
            advice = _FORM if "is not JSON: " in error.reason and not any(_FORM in one for one in wrong) else ""
            wrong.append(f"Line {number:,}: {error.reason}{advice}")
    return rows, wrong
