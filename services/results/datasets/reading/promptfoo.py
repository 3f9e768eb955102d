"""Tests of promptfoo: objects with "vars" and "assert", or a table of variables with columns such as "__expected"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from services.chat_requests.faults import RefusedError, WrongRowError, quoted
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
_REPLACED = "{{"
_FILE = "file://"
_NUNJUCKS = "{%"


class Promptfoo:
    """Rows of promptfoo. Their variables are columns for a template."""

    format = Dataset.FORMAT_PROMPTFOO

    def fits(self, row: Row) -> bool:
        return isinstance(row.get("vars"), dict) or any(map(_EXPECTED.fullmatch, row.values))

    def about(self, row: Row) -> str:
        found = next(iter(_texts(_asserts(row))), None)
        names = ", ".join(quoted(name, 20)[1:-1] for name in list(_variables(row))[:_NAMES_SHOWN]) or "vars"
        if found is None:
            return f"prompt from {names}; no reference"
        kind = found["type"]
        return f"prompt from {names}, reference from assert ({kind}), which the scorer {_SCORERS[kind]} compares"

    def columns(self, row: Row) -> dict[str, Any]:
        """The test's variables, its "reference", and what else it holds. Raises WrongRowError."""
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
            made["reference"] = _right(texts[0])
        return made


def template_of(row: Row, others: Mapping[str, Any]) -> str:
    """The template of tests like this one: the only prompt of their configuration, or the only variable. Raises
    RefusedError."""
    if others.get("defaultTest"):
        raise RefusedError("The configuration has defaultTest. Write what it holds into each test.")
    prompts = others.get("prompts")
    prompts = [prompts] if isinstance(prompts, str) else prompts if isinstance(prompts, list) else []
    if len(prompts) == 1 and isinstance(prompts[0], str) and _FILE not in prompts[0]:
        if _NUNJUCKS in prompts[0]:
            raise RefusedError(
                "The prompt has statements of Nunjucks, {% … %}. Set a template without them.", "template"
            )
        return prompts[0]
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
