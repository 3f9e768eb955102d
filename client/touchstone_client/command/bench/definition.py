"""The definition that a file and the arguments of `touchstone bench collect` make, and problems in their words."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from services.experiments import files
from services.experiments.fields import DefinitionError
from services.experiments.reading import ALIASES, NAMES
from services.words.job_options import ALL
from services.words.refusals import counted
from services.words.sampling import PARAMETERS
from touchstone_client.command.arguments.declaring import read_file
from touchstone_client.errors import InvalidError, RefusedError

_MOST_BYTES = 3_000_000
"""Of a file: requests hold no more."""
_FLAGS: Mapping[str, tuple[str, ...]] = {
    "name": ("--experiment",),
    "models": ("--models",),
    "provider": ("--endpoint", "--provider"),
    "prompts": ("--prompts",),
    "n_scenarios": ("--n-scenarios",),
    "scenarios": ("--scenarios",),
    "repeats": ("--repeats",),
    "n_tips": ("--n-tips",),
    "diversity": ("--diversity",),
    "max_model_b": ("--max-model-b",),
    "max_judge_b": ("--max-judge-b",),
    "budget_usd": ALL["budget_usd"].flags,
    "priority": ALL["priority"].flags,
    "judges": ("--judge-model",),
    **{one.rest: one.flags for one in PARAMETERS.values()},
}
"""By field of a definition. Judges are not a part of it, and only arguments give them."""
_OTHER_WORDS = (
    *((name, alias) for alias, name in ALIASES.items()),
    *((one.rest, *one.aliases) for one in PARAMETERS.values()),
)
"""Names of which a definition may have one."""
_KNOWN = {*NAMES, *ALIASES, "judges"}
_PLACE = r"(?:\[\d+\])?(?:\.\w+(?:\[\d+\])?)*"
_FIELDS = "|".join(sorted(_KNOWN, key=len, reverse=True))
_TWO_WORDS = "|".join(name for name in _FIELDS.split("|") if "_" in name)
_MENTIONED = re.compile(rf"(?<![\w.\"'{{-])(?:(?:{_FIELDS})\[\d+\]{_PLACE}|(?:{_TWO_WORDS}))(?![\w-])")
"""A field within a sentence that cannot be an ordinary word."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asked:
    """A definition. `file` is how its file is called, empty without one, and `text` what it holds; `given` are the
    arguments that replaced or added fields, by field. `rows` is how a file of scenarios is called, and `row_lines` has
    the line of each of them."""

    value: dict[str, Any]
    file: str
    text: str
    given: Mapping[str, str]
    rows: str = ""
    row_lines: Sequence[int] = ()

    @classmethod
    def of(cls, options: argparse.Namespace) -> Asked:
        """Raises InvalidError, and OSError."""
        file, text, value = _definition(options.file) if options.file else ("", "", {})
        rows, row_lines, scenarios = _scenarios(options.scenarios) if options.scenarios else ("", (), None)
        said = {
            "name": options.experiment,
            "models": options.models,
            "provider": options.endpoint,
            "prompts": options.prompts,
            "n_scenarios": options.n_scenarios,
            "scenarios": scenarios,
            "repeats": options.repeats,
            "n_tips": options.n_tips,
            "diversity": options.diversity,
            "max_model_b": options.max_model_b,
            "max_judge_b": options.max_judge_b,
            "budget_usd": options.budget_usd,
            "priority": options.priority,
            **{one.rest: getattr(options, name) for name, one in PARAMETERS.items()},
        }
        # 0 is a value.
        new = {name: one for name, one in said.items() if one is not None and one is not False and one != ""}
        for words in _OTHER_WORDS:
            # A field under another name would count as given twice.
            if not new.keys().isdisjoint(words):
                value = {name: one for name, one in value.items() if name not in words}
        written = {word.partition("=")[0] for word in options.given}
        flags = {name: next((flag for flag in _FLAGS[name] if flag in written), _FLAGS[name][0]) for name in new}
        return cls({**value, **new}, file, text, flags | {"judges": _FLAGS["judges"][0]}, rows, row_lines)

    def told(self, error: RefusedError) -> list[str]:
        """What an error says, each problem as a sentence with its place in the file or its argument."""
        if not isinstance(error, InvalidError):
            return [self._in_words(error.message)]
        problems = error.problems or ((error.field, error.message),)
        more = error.problems_total - len(problems)
        rest = [f"{counted(more, 'further problem')} not shown."] if more > 0 else []
        # What has a place could be read.
        known = self.text and any(path for path, _ in problems)
        lines = files.lines(self.text, is_json=_is_json(self.file)) if known else {}
        return [*(self._told(path, sentence, files.line_of(lines, path)) for path, sentence in problems), *rest]

    def _told(self, path: str, sentence: str, line: int) -> str:
        called = self._called(path)
        if self._root(path) not in _KNOWN and path:
            # The sentence lists the names of fields.
            text = sentence
        elif path and sentence.startswith(path):
            text = called + self._in_words(sentence.removeprefix(path))
        else:
            text = self._in_words(sentence)
            text = text if called in text else f"{called}: {text}"
        if self._root(path) in self.given or not self.file:
            return text
        return f"{self.file}: Line {line:,}: {text}" if line else f"{self.file}: {text}"

    def _in_words(self, sentence: str) -> str:
        return _MENTIONED.sub(lambda found: self._called(found[0]), sentence)

    def _called(self, path: str) -> str:
        """A field as the user has given it: by its argument, or by its path in the file."""
        root = self._root(path)
        flag = self.given.get(root) or ("" if self.file else _FLAGS.get(root, ("",))[0])
        if not flag:
            return path
        entry = re.match(r"\w+\[(\d+)\]\.?(.*)", path)
        if not entry or root == "judges":
            return flag
        place = int(entry[1])
        if root == "scenarios" and place < len(self.row_lines):
            where = f"line {self.row_lines[place]:,} of {self.rows}"
        else:
            where = f"entry {place + 1:,} of {flag}"
        return f"{entry[2]} in {where}" if entry[2] else where

    def _root(self, path: str) -> str:
        """The field of a path, under the name that its argument is known by."""
        name = re.split(r"[.\[]", path, maxsplit=1)[0]
        if name in self.given or name in _FLAGS:
            return name
        return next((one for words in _OTHER_WORDS if name in words for one in words if one in _FLAGS), name)


def _definition(file: str) -> tuple[str, str, dict[str, Any]]:
    """How a file is called, its text, and the definition in it. Raises InvalidError, and OSError."""
    place, data = read_file(file, _MOST_BYTES)
    value = _understood(place, data, lambda data: files.definition(data, is_json=_is_json(file)))
    return place, files.text(data), value


def _is_json(file: str) -> bool:
    return file.endswith(".json")


def _scenarios(file: str) -> tuple[str, list[int], list[Any]]:
    """How a file is called, and its scenarios with their lines. Raises InvalidError, and OSError."""
    place, data = read_file(file, _MOST_BYTES)
    return place, files.scenario_lines(data), _understood(place, data, files.scenarios)


def _understood(place: str, data: bytes, reads: Callable[[bytes], T]) -> T:
    """What is read from a file. Raises InvalidError."""
    try:
        return reads(data)
    except DefinitionError as error:
        raise InvalidError.of(f"{place}: {error.message}") from error
