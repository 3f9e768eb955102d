"""A row's columns and values as other projects write them: texts, lists, messages and choices."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from services.chat_requests import strict_json
from services.chat_requests.faults import WrongRowError, quoted

LETTERS = string.ascii_uppercase
_LETTERED = tuple(
    tuple(f"{begun}{letter}" for letter in LETTERS.lower())
    for begun in ("", "option_", "option ", "option", "choice_", "choice ", "choice", "op")
)
"""How the columns of choices are called, in lower case."""
_TURN = re.compile(r"\s*(Human|Assistant):\s*")


class Row:
    """A row's values. Names are the same in upper and lower case. With `keep_answers`, the columns of answers stay:
    the uploader names another reference."""

    def __init__(self, values: dict[str, Any], keep_answers: bool = False) -> None:
        self.values = values
        self._keep_answers = keep_answers
        self._names: dict[str, str] | None = None

    def name(self, wanted: str) -> str:
        """The name as the row writes it, "" if it has no such column."""
        if wanted in self.values:
            return wanted
        if self._names is None:
            self._names = {name.strip().casefold(): name for name in self.values}
        return self._names.get(wanted, "")

    def has(self, *wanted: str) -> bool:
        return all(self.name(one) for one in wanted)

    def first(self, *wanted: str) -> str:
        """The first of these names that the row has, "" if it has none."""
        return next(filter(self.has, wanted), "")

    def get(self, wanted: str) -> Any:
        """None without such a column."""
        return self.values.get(name) if (name := self.name(wanted)) else None

    def take(self, wanted: str) -> Any:
        """The value, which leaves the row. None without such a column."""
        return self.values.pop(name) if (name := self.name(wanted)) else None

    def answer(self, wanted: str) -> Any:
        """The value, which leaves the row if it is the reference. Raises WrongRowError without such a column."""
        if not (name := self.name(wanted)):
            raise WrongRowError(f"The row has no {quoted(wanted)}. Add it, with null if there is no answer.")
        return self.values[name] if self._keep_answers else self.values.pop(name)


def text(value: Any, name: str) -> str:
    """A cell as a text: numbers as written in JSON, null as nothing. Raises WrongRowError."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return strict_json.dump(value)
    raise WrongRowError(f"{quoted(name)} must be a text.")


def listed(value: Any) -> list[Any] | None:
    """A list, also one that a table holds as JSON; None for anything else."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = strict_json.parse(value.encode())
        except WrongRowError:
            return None
    return value if isinstance(value, list) else None


def turns_of(value: Any) -> list[Any] | None:
    """Messages with roles, also as JSON; None for anything else."""
    turns = listed(value)
    return turns if turns and all(isinstance(turn, dict) and "role" in turn for turn in turns) else None


def transcript(value: Any) -> list[dict[str, str]] | None:
    """The messages of a text such as Anthropic's: "Human: …", "Assistant: …"; None for anything else."""
    if not isinstance(value, str) or not (begun := _TURN.match(value)) or begun[1] != "Human":
        return None
    _, *parts = re.split(r"(?:\A\s*|\n\n)(Human|Assistant):", value)
    roles = {"Human": "user", "Assistant": "assistant"}
    return [{"role": roles[who], "content": said.strip()} for who, said in zip(parts[::2], parts[1::2], strict=True)]


# -- choices -------------------------------------------------------------------------------------------------------


def choices_of(row: Row) -> list[str]:
    """The columns that hold the choices of a question, as the row writes them: one with a list of them, or one for each
    letter from A. Empty without choices."""
    for wanted in ("choices", "options"):
        if name := row.name(wanted):
            return [name]
    for letters in _LETTERED:
        # Most rows have none: only the first name is looked up.
        names = list(takewhile(bool, map(row.name, letters)))
        if len(names) > 1:
            return names
    return []


def listed_choices(value: Any) -> list[str]:
    """As Inspect reads them: a list, or a text with commas or spaces between. Raises WrongRowError."""
    found = listed(value)
    if found is None and isinstance(value, str) and value.strip():
        found = [each.strip() for each in value.split(",")]
        found = found if len(found) > 1 else value.split()
    if len(found or []) > len(LETTERS):
        raise WrongRowError(f"The row has {len(found or []):,} choices. At most 26 have a letter.")
    return [text(each, "choices") for each in found or []]


@dataclass(frozen=True, slots=True)
class Choices:
    """The texts of a question's choices, and the name of each if the row names them. With `counted`, a whole number is
    the place of a choice, from 0: such a list holds texts alone, so that the number cannot be one of them."""

    texts: list[str]
    names: list[str]
    counted: bool = False

    def letter(self, right: Any) -> str | None:
        """The letter of the right choice: of its place, its name, its letter or its text. None without an answer.
        Raises WrongRowError unless just one choice is meant."""
        if right is None or (isinstance(right, str) and not right.strip()):
            return None
        said = text(right, "answer").strip()
        if self.counted and isinstance(right, int) and not isinstance(right, bool):
            places = {right} & set(range(len(self.texts)))
        else:
            names = self.names or [*LETTERS[: len(self.texts)], *LETTERS[: len(self.texts)].lower()]
            places = {place % len(self.texts) for place, name in enumerate(names) if name == said}
            places |= {place for place, choice in enumerate(self.texts) if choice.strip() == said}
        if len(places) != 1:
            what = "is none of the choices" if not places else "may be several of the choices"
            raise WrongRowError(f"The answer {quoted(said, 40)} {what}. Write the letter of the right one.")
        return LETTERS[places.pop()]


def take_choices(row: Row) -> Choices:
    """The choices, which leave the row. Raises WrongRowError."""
    columns = choices_of(row)
    if len(columns) > 1:
        found = [text(row.values.pop(name), name) for name in columns]
        while found and not found[-1].strip():
            del found[-1]
        return Choices(found, [])
    value = next((row.values.pop(name) for name in columns), None)
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        value = strict_json.parse(value.encode(), "column of choices")
    if not isinstance(value, Mapping):
        texts = isinstance(value, list) and all(isinstance(each, str) for each in value)
        return Choices(listed_choices(value), [], counted=texts)
    if "text" in value and "label" in value:
        found, names = value["text"], value["label"]
        if not isinstance(found, list) or not isinstance(names, list) or len(found) != len(names):
            raise WrongRowError('"choices" must have as many texts as labels.')
        return Choices(listed_choices(found), [text(name, "label") for name in names])
    return Choices(listed_choices(list(value.values())), list(value))


def append_choices(asked: dict[str, Any], choices: Sequence[str]) -> None:
    """Adds the choices to the question, each on a line after its letter. Raises WrongRowError."""
    more = "\n".join(f"{letter}) {choice}" for letter, choice in zip(LETTERS, choices, strict=False))
    if "prompt" in asked:
        asked["prompt"] = f"{asked['prompt']}\n\n{more}"
        return
    last = asked["messages"][-1]
    if not isinstance(last, dict) or not isinstance(last.get("content"), str):
        raise WrongRowError("The last message of the sample must be a text, which the choices follow.")
    asked["messages"] = [*asked["messages"][:-1], last | {"content": f"{last['content']}\n\n{more}"}]
