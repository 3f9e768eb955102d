"""The form that scores one answer under a rubric: what was sent, what is wrong with it, and the rating it gives."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import FormData

from services import json_values
from services.gateway.pages.display import scales
from services.words import rubrics
from touchstone.v1.results_service_pb2 import Rating
from touchstone.v1.rubric_pb2 import Rubric, RubricCriterion

MOST_NOTE = 2_000
_MOST_BUTTONS = 10
"""A longer scale is a field in which a number is written. Each button has a digit as its key."""
_WHOLE = re.compile(r"[-+−]?[0-9]{1,3}")


@dataclass(frozen=True, slots=True)
class Option:
    """A score that can be chosen. `key` is the digit that chooses it."""

    value: str
    key: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Question:
    """A criterion with what was chosen. Without `options`, `value` is written as a number. `problem` says what is wrong
    with it."""

    criterion: RubricCriterion
    weight: str
    options: list[Option]
    value: str
    problem: str

    @property
    def numbered(self) -> bool:
        """Whether a key is another word than the score, so that it must be shown."""
        return any(option.key != option.value for option in self.options)


@dataclass(slots=True)
class RatingForm:
    """Scores as sent or as stored, by criterion."""

    given: dict[str, str] = field(default_factory=dict)
    note: str = ""
    errors: dict[str, str] = field(default_factory=dict)
    failure: str = ""

    @classmethod
    def read(cls, sent: FormData, rubric: Rubric) -> RatingForm:
        """Texts are longer than they may be, so that they are refused and not cut."""
        given = {one.name: str(sent.get(f"score.{one.name}", ""))[:200] for one in rubric.criteria}
        return cls(given, str(sent.get("note", "")).replace("\r\n", "\n").strip()[: 4 * MOST_NOTE])

    @classmethod
    def of(cls, rating: Rating | None) -> RatingForm:
        """What a person said before."""
        if rating is None:
            return cls()
        stored: Mapping[str, Any] = json.loads(rating.scores)
        return cls({name: str(score) for name, score in stored.items()}, rating.note)

    def scores(self, rubric: Rubric) -> str:
        """As JSON. It is of no use if something is wrong: see `errors`."""
        found: dict[str, Any] = {}
        for criterion in rubric.criteria:
            text = self.given.get(criterion.name, "")
            if not text.strip():
                self.errors[criterion.name] = f"Give a score: {rubrics.allowed(criterion)}."
                continue
            value: str | int = text
            if not criterion.choices and _WHOLE.fullmatch(text.strip()):
                value = int(text.strip().replace("−", "-"))
            try:
                found |= rubrics.scores(Rubric(criteria=[criterion]), {criterion.name: value})
            except ValueError:
                self.errors[criterion.name] = f"The score must be {rubrics.allowed(criterion)}."
        if len(self.note) > MOST_NOTE:
            self.errors["note"] = f"The note has {len(self.note):,} characters; at most {MOST_NOTE:,} are allowed."
        if "\0" in self.note:
            self.errors["note"] = "The note has a NUL character. Remove it."
        return json_values.written(found)

    def questions(self, rubric: Rubric) -> list[Question]:
        """The criteria as they are drawn."""
        return [
            Question(
                criterion,
                weight if len(rubric.criteria) > 1 else "",
                _options(criterion, self.given.get(criterion.name, "")),
                self.given.get(criterion.name, ""),
                self.errors.get(criterion.name, ""),
            )
            for criterion, weight in zip(rubric.criteria, scales.weights(rubric), strict=True)
        ]


def _options(criterion: RubricCriterion, given: str) -> list[Option]:
    if criterion.choices:
        # Those after the tenth have no key, but can be clicked.
        values = [choice.name for choice in criterion.choices]
        keys = [str(number % 10) if number <= 10 else "" for number in range(1, len(values) + 1)]
    elif criterion.highest - criterion.lowest >= _MOST_BUTTONS:
        return []
    else:
        values = [str(number) for number in range(criterion.lowest, criterion.highest + 1)]
        of_digits = criterion.lowest >= 0 and criterion.highest <= 9
        keys = values if of_digits else [str(number % 10) for number in range(1, len(values) + 1)]
    return [Option(value, key, value == given) for value, key in zip(values, keys, strict=True)]
