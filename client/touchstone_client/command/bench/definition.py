"""The definition that a file and the arguments of `touchstone bench collect` make, and problems in their words."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
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
    """A definition. `file` is how its file is called, empty without one; `given` are the arguments that replaced or
    added fields, by field."""

    value: dict[str, Any]
    file: str
    given: Mapping[str, str]

    @classmethod
    def of(cls, options: argparse.Namespace) -> Asked:
        """Raises InvalidError, and OSError."""
        file, value = _read(options.file) if options.file else ("", {})
        said = {
            "name": options.experiment,
            "models": options.models,
            "provider": options.endpoint,
            "prompts": options.prompts,
            "n_scenarios": options.n_scenarios,
            "scenarios": _scenarios(options.scenarios) if options.scenarios else None,
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
        return cls({**value, **new}, file, flags | {"judges": _FLAGS["judges"][0]})

    def told(self, error: RefusedError) -> list[str]:
        """What an error says, each problem as a sentence with its place in the file or its argument."""
        if not isinstance(error, InvalidError):
            return [self._in_words(error.message)]
        problems = error.problems or ((error.field, error.message),)
        more = error.problems_total - len(problems)
        rest = [f"{counted(more, 'further problem')} not shown."] if more > 0 else []
        return [*(self._told(path, sentence) for path, sentence in problems), *rest]

    def _told(self, path: str, sentence: str) -> str:
        called = self._called(path)
        if self._root(path) not in _KNOWN and path:
            # The sentence lists the names of fields.
            text = sentence
        elif path and sentence.startswith(path):
            text = called + self._in_words(sentence.removeprefix(path))
        else:
            text = self._in_words(sentence)
            text = text if called in text else f"{called}: {text}"
        by_argument = self._root(path) in self.given or not self.file
        return text if by_argument else f"{self.file}: {text}"

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
        return f"{entry[2]}{' in ' if entry[2] else ''}entry {int(entry[1]) + 1:,} of {flag}"

    def _root(self, path: str) -> str:
        """The field of a path, under the name that its argument is known by."""
        name = re.split(r"[.\[]", path, maxsplit=1)[0]
        if name in self.given or name in _FLAGS:
            return name
        return next((one for words in _OTHER_WORDS if name in words for one in words if one in _FLAGS), name)


def _read(file: str) -> tuple[str, dict[str, Any]]:
    """How a file is called, and its definition. Raises InvalidError, and OSError."""
    return _understood(file, lambda data: files.definition(data, is_json=file.endswith(".json")))


def _scenarios(file: str) -> list[Any]:
    """Raises InvalidError, and OSError."""
    return _understood(file, files.scenarios)[1]


def _understood(file: str, reads: Callable[[bytes], T]) -> tuple[str, T]:
    """How a file is called, and what is read from it. Raises InvalidError, also for one that is too large, and
    OSError."""
    place, data = read_file(file, _MOST_BYTES)
    try:
        return place, reads(data)
    except DefinitionError as error:
        raise InvalidError.of(f"{place}: {error.message}") from error
