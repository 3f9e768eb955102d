"""docs/api.md and docs/api_fields.md: their tables are current and complete, and their examples are accepted."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from itertools import pairwise
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from starlette.datastructures import QueryParams

from services.gateway.api import routes as api
from services.gateway.api.declare.endpoint import ADMIN, BASE, BENCH, OPENAI, Endpoint
from services.gateway.fields import query
from tests import api_tables

RENEW = "Renew the tables: make docs"
PAGE = api_tables.GUIDE.read_text()
ROOTS = {"API": BASE, "ADMIN": ADMIN, "BENCH": BENCH, "OPENAI": OPENAI}
VARIABLES = ROOTS | dict(re.findall(r"(?m)^([A-Z]+)=([\w-]+)$", PAGE))


class Example(NamedTuple):
    """A call of curl. `body` is its JSON."""

    method: str
    path: str
    given: QueryParams
    body: bytes

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint with the fewest names in its path. Raises ValueError without one."""
        fitting = [
            endpoint
            for endpoint in api.DOCUMENTED
            if endpoint.method == self.method and re.fullmatch(re.sub(r"{\w+}", "[^/]+", endpoint.route), self.path)
        ]
        return min(fitting, key=lambda endpoint: endpoint.route.count("{"))


def examples() -> list[Example]:
    blocks = "\n".join(re.findall(r"(?ms)^```sh\n(.*?)^```", PAGE)).replace("\\\n", " ")
    return [example(words) for words in re.findall(r"(?m)^(?:.*\| )?(curl (?:'[^']*'|[^'\n])*)$", blocks)]


def example(line: str) -> Example:
    words = shlex.split(re.sub(r"\$([A-Z]+)", lambda found: VARIABLES[found[1]], line))
    options = {word: value for word, value in pairwise(words) if word.startswith("-")}
    address = urlsplit(next(word for word in words if word.startswith((*ROOTS.values(),))))
    method = options.get("-X") or ("POST" if options.keys() & {"--json", "-F"} else "GET")
    return Example(method, address.path, QueryParams(address.query), options.get("--json", "").encode())


def test_the_tables_are_current() -> None:
    assert api_tables.guide(PAGE) == PAGE, RENEW
    assert api_tables.fields() == api_tables.FIELDS.read_text(), RENEW


def test_every_operation_stands_in_one_section() -> None:
    named = Counter(name for mark in api_tables.marks(PAGE) if mark.kind == "calls" for name in mark.names)
    assert named == Counter({*api_tables.operations()} - {"getOpenAPI"})


def test_every_parameter_and_field_of_a_request_is_shown() -> None:
    apart = api_tables.bodies(PAGE)
    tables = [(mark.kind, mark.names[0]) for mark in api_tables.marks(PAGE) if mark.kind != "calls"]
    shown = {row for kind, name in tables for row in api_tables.rows(kind, name, apart)}
    asked = {row for name in api_tables.operations() for row in api_tables.rows("parameters", name, apart)} | {
        row for endpoint in api.ALL if endpoint.body for row in api_tables.rows("fields", title(endpoint), apart)
    }
    assert len(asked) > 100
    assert asked - shown == set()


def title(endpoint: Endpoint) -> str:
    assert endpoint.body
    return str(endpoint.body.schema["title"])


def test_every_operation_has_an_example() -> None:
    assert {endpoint.name for endpoint in api.DOCUMENTED} - {one.endpoint.name for one in examples()} == {"getOpenAPI"}


@pytest.mark.parametrize("shown", examples(), ids=lambda shown: shown.path)
def test_every_example_is_accepted(shown: Example) -> None:
    query.read(shown.given, shown.endpoint.query)
    if shown.endpoint.body and (shown.body or shown.endpoint.body_needed):
        assert list(shown.endpoint.body.judge(json.loads(shown.body), "")) == []
    else:
        assert not shown.body


def known(schema: dict[str, Any]) -> set[str]:
    """The names of all members below a schema."""
    return set(re.findall(r"'(\w+)': \{", str(schema)))


def test_every_field_of_an_answer_that_is_shown_is_there() -> None:
    found = set(
        re.findall(r'"(\w+)":', "".join(re.findall(r"(?ms)^```json\n(.*?)^```", PAGE.partition("## Webhooks")[0])))
    )
    assert len(found) > 30
    assert found - known(api_tables.document()["components"]) - {"choices", "message", "content"} == set()
