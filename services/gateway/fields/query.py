"""Query parameters: declared once, read with their bounds, described in the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import QueryParams

from services.errors import InvalidRequestError
from services.gateway.fields.checks import Check, Problem, integer, one_of, text
from services.gateway.fields.schema import STRING, Schema, about
from services.gateway.http.responses import FieldErrors
from services.words.fields import INT64_MAX
from services.words.jobs import STATUSES

_INTEGER = re.compile(r"-?[0-9]{1,30}")
_NUMBER = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter. An absent or empty one has the default, which need not be an allowed value."""

    name: str
    check: Check
    about: str
    default: Any = None
    required: bool = False

    @property
    def schema(self) -> Schema:
        sent = self.default is not None and not [*self.check.judge(self.default, self.name)]
        return self.check.schema | ({"default": self.default} if sent else {})

    def value(self, written: str) -> object:
        """The text as the check's kind of value; unchanged if it cannot be one."""
        kind = self.check.schema.get("type")
        if kind == "integer" and _INTEGER.fullmatch(written):
            return int(written)
        if kind == "number" and _NUMBER.fullmatch(written):
            return float(written)
        if kind == "boolean" and written in ("true", "false"):
            return written == "true"
        return written


def read(sent: QueryParams, declared: Sequence[Parameter]) -> dict[str, Any]:
    """Every declared parameter's value. Raises InvalidRequestError for unknown and repeated names, FieldErrors for
    values that are wrong."""
    known = {parameter.name: parameter for parameter in declared}
    given: dict[str, str] = {}
    for name, written in sent.multi_items():
        if name not in known:
            names = f"Known parameters: {', '.join(known)}." if known else "This path takes none."
            raise InvalidRequestError(f"Unknown query parameter {name[:80]!r}. {names}", name[:80])
        if name in given:
            raise InvalidRequestError(f"{name} is given more than once. Give it once.", name)
        given[name] = written
    return values_of(given, declared)


def values_of(given: Mapping[str, str], declared: Sequence[Parameter]) -> dict[str, Any]:
    """Every declared parameter's value, from texts by name. Raises FieldErrors for values that are wrong."""
    known = {parameter.name: parameter for parameter in declared}
    values = {name: parameter.value(given[name]) for name, parameter in known.items() if given.get(name)}
    problems = [problem for name, value in values.items() for problem in known[name].check.judge(value, name)]
    problems += _missing(known.values(), values)
    if problems:
        raise FieldErrors(problems)
    return {name: values.get(name, parameter.default) for name, parameter in known.items()}


def _missing(declared: Iterable[Parameter], values: dict[str, object]) -> list[Problem]:
    return [(one.name, f"{one.name} is required.") for one in declared if one.required and one.name not in values]


def limit(default: int, most: int = 1000) -> Parameter:
    return Parameter("limit", integer(1, most), "The most rows to return.", default)


def page_size(default: int, most: int) -> Parameter:
    return Parameter("page_size", integer(1, most), "The most rows to return.", default)


PAGE_TOKEN = Parameter("page_token", text(4000), "`next_page_token` of the previous answer, with the same filters.", "")
NEXT_PAGE_TOKEN = about(STRING, "The `page_token` of the next page. Empty on the last page.")
OWNER = Parameter("owner", text(200), "Only what this user created.", "")
MODEL = Parameter("model_name", text(400), "Only this model, by its exact id.", "")
SUITE = Parameter("suite", text(200), "Only this suite.", "")
DAYS = Parameter("days", integer(1, 3650), "The days to look back.", 30)
ENDPOINT = Parameter("endpoint", text(200), "Only runs at this endpoint.", "")
STATUS = Parameter("status", one_of(*STATUSES), "Only jobs in this state.", "")
PROJECT = Parameter("project_id", integer(0, INT64_MAX), "Only this project. 0 means all.", 0)
