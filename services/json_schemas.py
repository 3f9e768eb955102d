"""JSON Schemas that users give, by the package jsonschema. Nothing is fetched, patterns run in time that is linear in
the text, and the work on one value is limited. Pure.

The service that takes an upload checks schemas in the same way as those that score answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import jsonschema
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend, validator_for
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, EMPTY_REGISTRY, specification_with

from services import json_values, patterns

MOST_CHARACTERS = 64 * 1024
MOST_STEPS = 200_000
"""For one value: about a second. A step is a keyword applied to a value, more for those that look at many values."""
_DEEPEST = 150
"""Keywords inside each other. Each takes a few of Python's thousand frames."""
_SUBSCHEMAS = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"))
_REFERENCES = ("$ref", "$dynamicRef")
_DATA = frozenset(("enum", "const", "default", "examples"))
_WIDE = frozenset(
    (
        *("additionalProperties", "patternProperties", "uniqueItems", "contains", "dependentRequired"),
        *("unevaluatedItems", "unevaluatedProperties", "dependencies", "dependentSchemas"),
    )
)
"""Keywords that look at each part of a value themselves."""
_SAMPLES: tuple[Any, ...] = (None, True, 0, "", [], [0], {}, {"": 0})

_Keyword = Callable[..., Iterable[ValidationError] | None]


class WorkError(Exception):
    """A value takes too many steps."""


@dataclass(slots=True)
class _Work:
    """`sizes`: characters of each list and object of the value, by its id."""

    schema_size: int
    sizes: dict[int, int] = field(default_factory=dict)
    steps: int = 0
    depth: int = 0

    def spend(self, steps: int) -> None:
        self.steps += steps
        if self.steps > MOST_STEPS:
            raise WorkError(f"takes more than {MOST_STEPS:,} steps to check")

    def measure(self, value: Any) -> int:
        if isinstance(value, dict):
            size = sum(len(name) + self.measure(inner) + 4 for name, inner in value.items())
        elif isinstance(value, list):
            size = sum(self.measure(inner) + 2 for inner in value)
        else:
            return len(value) if isinstance(value, str) else 8
        self.sizes[id(value)] = size
        return size

    def size(self, value: Any) -> int:
        return len(value) if isinstance(value, str) else self.sizes.get(id(value), 8)


_work: ContextVar[_Work] = ContextVar("work")


@dataclass(frozen=True, slots=True)
class Judged:
    """Whether a value satisfies a schema, and each of the schema's properties that is right; `why` is the first fault,
    or why the value was not checked to the end."""

    valid: bool
    properties: tuple[tuple[str, bool], ...]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Schema:
    """A checked schema. `properties` are the names that it gives to the parts of an object."""

    validator: Any
    size: int
    properties: tuple[str, ...]

    def judge(self, value: Any) -> Judged:
        """A property is right where no fault is in it or says that it is missing. A value that takes too many steps is
        not valid."""
        wrong: set[str] = set()
        why = ""
        try:
            for fault in self._faults(value):
                why = why or _told(fault)
                wrong.update(_properties(fault, self.properties))
        except Exception as error:
            # Whatever a schema of users makes the package raise must not end their job.
            why = str(error) if isinstance(error, WorkError) else "cannot be checked"
            wrong.update(self.properties)
        return Judged(not why, tuple((name, name not in wrong) for name in self.properties), why)

    def _faults(self, value: Any) -> Iterator[ValidationError]:
        work = _Work(self.size)
        work.measure(value)
        token = _work.set(work)
        try:
            yield from self.validator.iter_errors(value)
        finally:
            _work.reset(token)


@lru_cache(maxsize=256)
def compiled(text: str) -> Schema:
    """The schema that is written as JSON. Raises ValueError, with a clause that continues after "the schema", for one
    that cannot be used."""
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"has {len(text):,} characters; at most {MOST_CHARACTERS:,} are allowed")
    schema = json_values.parsed(text)
    if not isinstance(schema, dict):
        raise ValueError("is not a JSON Schema, which is an object")
    dialect = schema.get("$schema", jsonschema.Draft202012Validator.META_SCHEMA["$schema"])
    base = validator_for(schema | {"$schema": dialect}, default=None) if isinstance(dialect, str) else None
    if base is None:
        raise ValueError(f"has the unknown $schema {str(dialect)[:80]!r}; leave it out")
    root = _check(schema, base)
    known = root.get("properties") if isinstance(root, dict) else None
    properties = tuple(known) if isinstance(known, dict) else ()
    made = Schema(_limited(base)(schema, registry=EMPTY_REGISTRY), len(text), properties)
    for sample in _SAMPLES:
        # Resolves what applies to any value, and finds references that lead back to themselves.
        try:
            list(made._faults(sample))
        except (WorkError, RecursionError, Unresolvable) as error:
            raise ValueError(_unusable(error)) from error
    return made


def of_request(fields: Mapping[str, Any]) -> Any:
    """The schema in the `response_format` of a request; `json_values.NOTHING` without one."""
    wanted = fields.get("response_format")
    inner = wanted.get("json_schema") if isinstance(wanted, dict) and wanted.get("type") == "json_schema" else None
    return inner.get("schema", json_values.NOTHING) if isinstance(inner, dict) else json_values.NOTHING


def _unusable(error: Exception) -> str:
    if isinstance(error, Unresolvable):
        return _elsewhere(str(error.ref))
    return "refers to itself without end" if isinstance(error, RecursionError) else str(error)


def _elsewhere(reference: str) -> str:
    return f"refers to {reference[:80]!r}, which is not in it; only references inside the schema work"


def _check(schema: dict[str, Any], base: Any) -> Any:
    """The schema, or the part of it to which it refers as a whole. Raises ValueError."""
    if not schema.keys() & base.VALIDATORS.keys() and not schema.keys() & {"$schema", "$defs", "definitions"}:
        raise ValueError("is not a JSON Schema: it has no keyword such as type or properties")
    # First: what names a schema within itself is a text only in a valid one.
    _check_form(schema, base)
    form = specification_with(base.META_SCHEMA.get("$schema", ""), default=DRAFT202012)
    resolver = EMPTY_REGISTRY.resolver_with_root(form.create_resource(schema))
    checked: dict[int, Any] = {}
    """Schemas by their id, which stay as long as the whole one."""
    left = [(schema, resolver)]
    root: Any = schema
    while left:
        part, resolver = left.pop()
        if id(part) in checked:
            continue
        if part is not schema:
            _check_form(part, base)
        for inner, within in _schemas(part, resolver, form):
            checked[id(inner)] = inner
            _check_patterns(inner)
            for reference in (inner[name] for name in _REFERENCES if isinstance(inner.get(name), str)):
                try:
                    referred = within.lookup(reference)
                except (Unresolvable, ValueError) as error:  # The latter for what is not a URI.
                    raise ValueError(_elsewhere(reference)) from error
                left.append((referred.contents, referred.resolver))
                if inner is schema and "properties" not in schema:
                    root = referred.contents
    return root


def _check_form(schema: Any, base: Any) -> None:
    """A reference may also lead to what is not among the schemas of the whole, such as a default."""
    try:
        # Without formats: one of them compiles patterns, by an engine whose time is not limited.
        base.check_schema(schema, format_checker=None)
    except SchemaError as error:
        raise ValueError(f"is not a valid JSON Schema: {_told(error)}") from error
    except (RecursionError, ArithmeticError) as error:
        raise ValueError("is nested too deeply") from error


def _check_patterns(schema: Mapping[str, Any]) -> None:
    own = schema.get("patternProperties")
    used = [*own] if isinstance(own, dict) else []
    if used and "unevaluatedProperties" in schema:
        raise ValueError("has patternProperties and unevaluatedProperties; use additionalProperties instead")
    if isinstance(schema.get("pattern"), str):
        used.append(schema["pattern"])
    for pattern in used:
        try:
            patterns.compiled(pattern)
        except ValueError as error:
            raise ValueError(f"has a pattern that {error}: {pattern[:80]}") from error


def _schemas(schema: Any, resolver: Any, form: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    """The schema and those inside it, each with the resolver of its references, which an `$id` changes."""
    if not isinstance(schema, dict):
        return
    resolver = _within(schema, resolver, form)
    yield schema, resolver
    for keyword, value in schema.items():
        if keyword in _DATA:
            continue
        if keyword in _SUBSCHEMAS and isinstance(value, dict):
            value = list(value.values())
        for inner in value if isinstance(value, list) else [value]:
            yield from _schemas(inner, resolver, form)


def _within(schema: dict[str, Any], resolver: Any, form: Any) -> Any:
    own = schema.get("$id", schema.get("id"))
    if not isinstance(own, str):
        # Also in what is not a schema at all.
        return resolver
    try:
        return resolver.in_subresource(form.create_resource(schema))
    except ValueError as error:
        raise ValueError(f"has the $id {own[:80]!r}, which is not a URI") from error


@lru_cache(maxsize=8)
def _limited(base: Any) -> Any:
    """The validator of a draft, with limits."""
    own = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
        "multipleOf": _multiple_of,
    }
    known = {**base.VALIDATORS, **{name: own[name] for name in own if name in base.VALIDATORS}}
    return extend(base, {name: _counted(name, keyword) for name, keyword in known.items()})


def _counted(name: str, keyword: _Keyword) -> _Keyword:
    wide = name in _WIDE

    def apply(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        work = _work.get()
        steps = 1 + (len(value) // 4 if isinstance(value, list | dict) else 0)
        work.spend(steps * (1 + len(instance)) if wide and isinstance(instance, list | dict) else steps)
        work.depth += 1
        if work.depth > _DEEPEST:
            raise RecursionError
        try:
            for fault in keyword(validator, value, instance, schema) or ():
                # Its message holds the value and the keyword.
                work.spend(1 + (work.size(instance) + work.schema_size) // 1000)
                yield fault
        finally:
            work.depth -= 1

    return apply


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str):
        _work.get().spend(len(instance) // 100)
        if not _found(pattern, instance):
            yield ValidationError(f"{instance[:80]!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, schemas: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for pattern, inner in schemas.items():
            for name, value in instance.items():
                if _found(pattern, name):
                    yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    known, named = schema.get("properties", {}), schema.get("patternProperties", {})
    _work.get().spend(len(instance) * len(named))
    extras = [name for name in instance if name not in known and not any(_found(one, name) for one in named)]
    if isinstance(allowed, dict):
        for name in extras:
            yield from validator.descend(instance[name], allowed, path=name)
    elif not allowed and extras:
        yield ValidationError(f"{extras[0][:80]!r} is not one of its properties")


def _unique_items(validator: Any, unique: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if unique and isinstance(instance, list):
        _work.get().spend(_work.get().size(instance) // 100)
        if len(set(map(json_values.written, instance))) < len(instance):
            yield ValidationError("it has equal items")


def _multiple_of(validator: Any, step: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """By the decimals as they are written: 19.99 is a multiple of 0.01, though not of the float next to it."""
    if validator.is_type(instance, "number") and Fraction(str(instance)) % Fraction(str(step)):
        yield ValidationError(f"{instance!r} is not a multiple of {step!r}")


def _found(pattern: str, text: str) -> bool:
    # Half characters have no form in UTF-8, which RE2 reads.
    return patterns.compiled(pattern).search(text.encode("utf-8", "replace").decode()) is not None


def _told(fault: ValidationError | SchemaError) -> str:
    """ "$.city: 5 is not of type 'string'"."""
    message = fault.message if len(fault.message) <= 200 else f"{fault.message[:200]}…"
    return f"{fault.json_path[:80]}: {message}"


def _properties(fault: ValidationError, known: Iterable[str]) -> Iterator[str]:
    """The properties of the whole value that a fault makes wrong."""
    if fault.absolute_path:
        yield str(fault.absolute_path[0])
    elif fault.validator == "type":
        yield from known
    elif fault.validator == "required" and isinstance(fault.instance, dict):
        yield from (name for name in fault.validator_value if name not in fault.instance)


def written(schema: Any) -> str:
    """The schema as JSON, for `compiled`, with its names in their order. Raises ValueError, as `compiled`."""
    if isinstance(schema, str):
        schema = json_values.parsed(schema)
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
