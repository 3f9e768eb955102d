"""Tests of promptfoo: objects with "vars" and "assert", or a table of variables with columns such as "__expected"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from services.chat_requests.faults import RefusedError, WrongRowError, quoted
from services.chat_requests.strict_json import dump
from services.results.datasets.reading.row import Row
from touchstone.v1.dataset_pb2 import Dataset

_EXPECTED = re.compile(r"__expected\d*")
_ADDED = ("__prefix", "__suffix")
_SCORERS = {
    "equals": "exact_match",
    "contains": "contains",
    "icontains": "contains",
    "contains-any": "contains",
    "icontains-any": "contains",
    "regex": "regex",
}
"""Asserts whose value is a right answer, with the scorer that compares as they do."""
_TYPED = re.compile(r"\s*((?:not-)?[a-z][a-z-]*)(?:\([^)]*\))?:(.*)", re.DOTALL)
_OTHER_TYPES = frozenset(
    (
        *("fn", "eval", "javascript", "python", "grade", "similar", "starts-with", "levenshtein", "cost", "latency"),
        *(
            "contains-all",
            "icontains-all",
            "contains-json",
            "is-json",
            "llm-rubric",
            "model-graded-closedqa",
            "factuality",
        ),
    )
)
_NAMES_SHOWN = 10
_PROMPT_SHOWN = 80
_REPLACED = "{{"
_FILE = "file://"
_NUNJUCKS = "{%"


class Promptfoo:
    """Rows of promptfoo. Their variables are columns for a template."""

    format = Dataset.FORMAT_PROMPTFOO

    def fits(self, row: Row) -> bool:
        return isinstance(row.get("vars"), dict) or any(map(_EXPECTED.fullmatch, row.values))

    def about(self, row: Row, prompt: str = "") -> str:
        """`prompt` is the one of the configuration, where the rows are asked with it."""
        found = next(iter(_texts(_asserts(row))), None)
        names = ", ".join(quoted(name, 20)[1:-1] for name in list(_variables(row))[:_NAMES_SHOWN]) or "vars"
        source = f"{names} in the configuration's {quoted(prompt, _PROMPT_SHOWN)}" if prompt else names
        if found is None:
            return f"prompt from {source}; no reference"
        kind = found["type"]
        return f"prompt from {source}, reference from assert ({kind}), which the scorer {_SCORERS[kind]} compares"

    def columns(self, row: Row, *, as_pattern: bool = False) -> dict[str, Any]:
        """The test's variables, its "reference", and what else it holds. `as_pattern`: the reference is a pattern that
        matches what the assert takes. Raises WrongRowError."""
        options = row.get("options")
        if any(row.get(name) for name in _ADDED) or (
            isinstance(options, dict) and {"prefix", "suffix"} & options.keys()
        ):
            raise WrongRowError("The test has a prefix or a suffix of the prompt. Write it into a variable.")
        asserts = _asserts(row)
        texts = _texts(asserts)
        if len(texts) > 1:
            raise WrongRowError(f"The test has {len(texts)} asserts of texts, and all must hold. Keep one of them.")
        made = {name: _variable(name, value) for name, value in _variables(row).items()}
        for name, value in row.values.items():
            if name not in ("vars", "assert", *made) and not _EXPECTED.fullmatch(name) and value not in (None, ""):
                made[name] = value
        if rest := [each for each in asserts if each not in texts]:
            made["assert"] = rest
        if texts and "reference" not in made:
            right = _right(texts[0])
            made["reference"] = _patterns(texts[0]["type"], right) if as_pattern else right
        return made


class OneScorer:
    """Refuses tests whose asserts one scorer cannot compare as promptfoo does: it compares all rows."""

    def __init__(self) -> None:
        self._first = ""

    def check(self, row: Row) -> None:
        """Raises RefusedError for an assert of another kind than that of the rows before."""
        if row.get("reference") is not None or not (texts := _texts(_asserts(row))):
            return
        kind = texts[0]["type"]
        self._first = self._first or kind
        if _SCORERS[kind] != _SCORERS[self._first]:
            raise RefusedError(
                f"The tests have asserts of the types {self._first} and {kind}, and one scorer compares all rows. "
                "Choose the scorer regex, with which each test is compared as its own assert says, or upload the tests "
                "of each type as a file of their own.",
                "scoring.scorer",
            )


def own_prompt(others: Mapping[str, Any]) -> str:
    """The only prompt of a configuration; empty where it has none or several, or where it is in another file."""
    prompts = others.get("prompts")
    prompts = [prompts] if isinstance(prompts, str) else prompts if isinstance(prompts, list) else []
    return prompts[0] if len(prompts) == 1 and isinstance(prompts[0], str) and _FILE not in prompts[0] else ""


def template_of(row: Row, others: Mapping[str, Any]) -> str:
    """The template of tests like this one: the only prompt of their configuration, or the only variable. Raises
    RefusedError."""
    if others.get("defaultTest"):
        raise RefusedError("The configuration has defaultTest. Write what it holds into each test.")
    if prompt := own_prompt(others):
        if _NUNJUCKS in prompt:
            raise RefusedError(
                "The prompt has statements of Nunjucks, {% … %}. Set a template without them.", "template"
            )
        return prompt
    names = list(_variables(row))
    if len(names) == 1:
        return f"{{{{{names[0]}}}}}"
    shown = ", ".join(quoted(name, 20) for name in names[:_NAMES_SHOWN])
    example = quoted(names[0], 40)[1:-1] if names else "question"
    raise RefusedError(
        f"The tests have the variables {shown or 'of no name'}, and the file has no one prompt. Set a template that "
        "builds the prompt from them, such as {{" + example + "}}.",
        "template",
    )


def _variables(row: Row) -> dict[str, Any]:
    if isinstance(variables := row.get("vars"), dict):
        return variables
    return {name: value for name, value in row.values.items() if not name.startswith("__")}


def _variable(name: str, value: Any) -> Any:
    if isinstance(value, list):
        raise WrongRowError(f"The variable {quoted(name)} is a list, which makes several tests. Write each of them.")
    if isinstance(value, str) and (_REPLACED in value or value.startswith(_FILE)):
        raise WrongRowError(f"The variable {quoted(name)} is taken from elsewhere. Write out its value.")
    return value


def _asserts(row: Row) -> list[Any]:
    found = row.get("assert")
    asserts = list(found) if isinstance(found, list) else [found] if found else []
    for name, value in row.values.items():
        if _EXPECTED.fullmatch(name) and value not in (None, ""):
            asserts.append(_typed(str(value)))
    return asserts


def _typed(expected: str) -> dict[str, Any]:
    """The assert that a cell of "__expected" means: equality, unless it begins with a type."""
    found = _TYPED.fullmatch(expected)
    kind = found[1] if found else ""
    if found is None or kind.removeprefix("not-") not in _SCORERS.keys() | _OTHER_TYPES:
        return {"type": "equals", "value": expected}
    value: Any = found[2].strip()
    return {"type": kind, "value": [each.strip() for each in value.split(",")] if kind.endswith("-any") else value}


def _texts(asserts: list[Any]) -> list[dict[str, Any]]:
    return [each for each in asserts if isinstance(each, dict) and each.get("type") in _SCORERS]


def _right(found: Mapping[str, Any]) -> Any:
    value = found.get("value")
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, str) and (_REPLACED in each or each.startswith(_FILE)):
            raise WrongRowError("The value of the assert is taken from elsewhere. Write it out.")
    return value


def _patterns(kind: str, right: Any) -> Any:
    """A pattern, or a list of several, that matches the answers which an assert of this type takes."""
    if kind == "regex" or right is None or isinstance(right, dict):
        return right
    if isinstance(right, list):
        return [_patterns(kind, each) for each in right]
    text = re.escape(right if isinstance(right, str) else dump(right))
    if kind == "equals":
        return rf"\A\s*{text}\s*\z"
    return f"(?i){text}" if kind.startswith("i") else text
