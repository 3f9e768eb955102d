"""The tables of docs/api.md and all of docs/api_fields.md, made from the OpenAPI document.

`make docs` renews them. In docs/api.md a table stands between `<!-- KIND: NAME … -->` and `<!-- end -->`. `calls` lists
operations, `parameters` has the query parameters of an operation, and `fields` the members of a body. `without NAME …`
leaves out the rows that another table of the kind has, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from services.gateway.api import routes as api
from services.gateway.api.declare import openapi
from services.gateway.api.declare.endpoint import BASE
from services.gateway.fields.schema import Schema

DOCS = Path(__file__).parents[1] / "docs"
GUIDE, FIELDS = DOCS / "api.md", DOCS / "api_fields.md"
_MARKED = re.compile(r"(?ms)^<!-- (calls|parameters|fields): ([^>]+?) -->\n.*?^<!-- end -->$")
_STORED = 2**31 - 1
"""A bound from here on says how numbers are stored. Tables leave it out."""
_NOUNS = {"string": "text", "integer": "integer", "number": "number", "boolean": "boolean", "object": "object"}
_FORMATS = {"uuid": "UUID", "date-time": "time", "binary": "file"}


class Row(NamedTuple):
    """A parameter or a member. `default` is "required" where a request must give it."""

    name: str
    value: str
    default: str
    about: str


class Mark(NamedTuple):
    """What the marks of a table ask for."""

    kind: str
    names: list[str]
    without: list[str]


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document that the gateway serves."""
    return openapi.document(api.DOCUMENTED)


def schemas() -> dict[str, Schema]:
    """The schemas of the document by name."""
    found: dict[str, Schema] = document()["components"]["schemas"]
    return found


@cache
def operations() -> dict[str, tuple[str, Mapping[str, Any]]]:
    """Every operation by its id: method and path, and what the document says of it."""
    return {
        operation["operationId"]: (f"{method.upper()} {path}", operation)
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
    }


def marks(page: str) -> list[Mark]:
    """Every table of the guide."""
    found = [(kind, words.partition(" without ")) for kind, words in _MARKED.findall(page)]
    return [Mark(kind, names.split(), without.split()) for kind, (names, _, without) in found]


def bodies(page: str) -> frozenset[str]:
    """The bodies with a table of their own."""
    return frozenset(name for mark in marks(page) if mark.kind == "fields" for name in mark.names)


def guide(page: str) -> str:
    """The guide with its tables as the document has them. Raises KeyError for a name that the document lacks."""
    apart = bodies(page)

    def table(found: re.Match[str]) -> str:
        (mark,) = marks(found[0])
        lines = _calls(mark.names) if mark.kind == "calls" else _table(mark, apart)
        return "\n".join((f"<!-- {found[1]}: {found[2]} -->", *lines, "<!-- end -->"))

    return _MARKED.sub(table, page)


def fields() -> str:
    """The page with the members of every answer."""
    answers = {name: _members(schema, "", frozenset()) for name, schema in schemas().items() if not _is_request(schema)}
    lines = [
        "# Fields of answers",
        "",
        "`make docs` writes this page from the OpenAPI document. The calls are in [API](api.md).",
    ]
    for name, found in answers.items():
        within = [other for other, rows in answers.items() if 3 < len(rows) < len(found) and {*rows} <= {*found}]
        lines += ["", f"## {name}", ""]
        if within:
            most = max(within, key=lambda other: len(answers[other]))
            lines += [f"The fields of {_link(most, '')}, and:", ""]
            found = [row for row in found if row not in answers[most]]
        lines += ["| field | value | description |", "|---|---|---|"]
        lines += [f"| `{row.name}` | {row.value.replace('](api_fields.md#', '](#')} | {row.about} |" for row in found]
    return "\n".join(lines) + "\n"


def rows(kind: str, name: str, apart: frozenset[str]) -> list[Row]:
    """The rows of a table of `parameters` or `fields`. Bodies in `apart` have tables of their own."""
    if kind == "fields":
        return _members(schemas()[name], "", apart)
    given = [one for one in operations()[name][1]["parameters"] if one["in"] == "query"]
    return [_row(one["name"], one["schema"], one["description"], required=one["required"]) for one in given]


def _calls(names: list[str]) -> Iterator[str]:
    yield from ("| call | does | answer |", "|---|---|---|")
    for name in names:
        call, operation = operations()[name]
        schema, *_ = (one["schema"] for one in operation["responses"]["200"]["content"].values())
        answer = "file" if schema.keys() <= {"description"} else _value(schema)
        yield f"| `{call.replace(BASE, '')}` | {operation['summary']} | {answer} |"


def _table(mark: Mark, apart: frozenset[str]) -> Iterator[str]:
    (name,) = mark.names
    yield f"| {'parameter' if mark.kind == 'parameters' else name} | value | default | description |"
    yield "|---|---|---|---|"
    others = {row for other in mark.without for row in rows(mark.kind, other, apart)}
    yield from (f"| `{row[0]}` | {' | '.join(row[1:])} |" for row in rows(mark.kind, name, apart) if row not in others)


def _is_request(schema: Schema) -> bool:
    """Requests say whether they may have members that they do not declare. Answers may get more."""
    return isinstance(schema.get("additionalProperties"), bool)


def _members(schema: Schema, path: str, apart: frozenset[str]) -> list[Row]:
    """The members of a schema, and below them those of objects without a table of their own."""
    found: list[Row] = []
    needed = schema.get("required", ())
    for name, member in schema["properties"].items():
        about = member.get("description", "")
        inner, steps = _inner(member)
        if _is_request(schema):
            # Here null means that nothing is given.
            found.append(_row(path + name, _not_null(member), about, required=name in needed))
            below = "properties" in inner and inner.get("title") not in apart
            if below and found[-1].value.startswith("`"):
                found[-1] = found[-1]._replace(value="object")
        else:
            row = _row(path + name, member, about, required=False)
            found.append(row if name in needed else row._replace(value=f"{row.value}, may be absent"))
            below = "properties" in inner and "title" not in inner
        if below:
            found += _members(inner, f"{path}{name}{steps}.", apart)
    return found


def _row(name: str, schema: Schema, about: str, *, required: bool) -> Row:
    default = schema.get("default", "")
    written = default if isinstance(default, str) else json.dumps(default)
    return Row(name, _value(schema), "required" if required else written and f"`{written}`", about)


def _inner(schema: Schema) -> tuple[Schema, str]:
    """What lists and tables of the schema hold in the end, and the steps to it."""
    schema, steps = _not_null(schema), ""
    while schema.get("type") == "array" or isinstance(schema.get("additionalProperties"), dict):
        key, step = ("items", "[]") if schema.get("type") == "array" else ("additionalProperties", ".*")
        schema, steps = _not_null(schema[key]), steps + step
    return schemas()[_named(schema)] if "$ref" in schema else schema, steps


def _named(reference: Schema) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def _link(name: str, page: str) -> str:
    return f"[{name}]({page}#{name.lower()})"


def _not_null(schema: Schema) -> Schema:
    if isinstance(kinds := schema.get("type"), list):
        return schema | {"type": kinds[0]}
    if schema.get("anyOf", [])[1:] == [{"type": "null"}]:
        others: Schema = {name: value for name, value in schema.items() if name != "anyOf"}
        return others | dict(schema["anyOf"][0])
    return schema


def _value(schema: Schema, *, several: bool = False) -> str:
    """What a value may be, in words."""
    if (plain := _not_null(schema)) != schema:
        return f"{_value(plain, several=several)} or null"
    if "$ref" in schema:
        name = _named(schema)
        return f"`{name}`" if _is_request(schemas()[name]) else _link(name, FIELDS.name)
    if "anyOf" in schema:
        return " or ".join(_value(one, several=several) for one in schema["anyOf"])
    if "contentSchema" in schema:
        return f"{_value(schema['contentSchema'])}, as JSON"
    if "enum" in schema:
        *others, last = (f"`{one}`" for one in schema["enum"])
        return f"{'values ' if several else ''}{', '.join(others)}{' or ' if others else ''}{last}"
    plural = "s" if several else ""
    if schema.get("type") == "array":
        return f"list{plural} of {_count(schema, 'Items')}{_value(schema['items'], several=True)}"
    if isinstance(held := schema.get("additionalProperties"), dict):
        return f"object{plural} of {_count(schema, 'Properties')}{_value(held, several=True)}"
    noun = _FORMATS.get(schema.get("format", "")) or _NOUNS.get(schema.get("type", ""), "any JSON")
    return f"{noun}{plural}{_range(schema)}"


def _count(schema: Schema, what: str) -> str:
    """How many entries there may be."""
    least, most = schema.get(f"min{what}", 0), schema.get(f"max{what}")
    if most is None:
        return ""
    return f"{least} " if least == most else f"{least} to {most:,} " if least else f"up to {most:,} "


def _range(schema: Schema) -> str:
    """Between which bounds a number lies, and how long a text may be."""
    if "maxLength" in schema:
        return f" of up to {schema['maxLength']:,} characters"
    low, high, above = (schema.get(bound) for bound in ("minimum", "maximum", "exclusiveMinimum"))
    most = "" if high is None or abs(high) >= _STORED else f"{high:,.15g}"
    if above is not None:
        return f" above {above:,.15g}, up to {most}"
    if low is None or abs(low) >= _STORED or (low == 0 and high is None):
        return ""
    return f" from {low:,.15g} to {most}" if most else f" from {low:,.15g}"


if __name__ == "__main__":
    GUIDE.write_text(guide(GUIDE.read_text()))
    FIELDS.write_text(fields())
