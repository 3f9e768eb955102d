"""How answers are scored, as users say it: an object in JSON, single fields in forms and queries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from services import patterns
from services.gateway.fields.checks import Check, Field, Problem, boolean, list_of, number, one_of, record, text
from services.gateway.fields.query import Parameter
from services.gateway.fields.schema import BOOLEAN, NUMBER, STRING, about, array, enum, shape
from services.words.enums import ANSWER_MATCHES
from services.words.scorers import SCORERS, USUAL
from touchstone.v1 import scoring_pb2

_MOST_CHOICES = 100
_MOST_TOLERANCE = 1e12
_TEXTS = list_of(text(500), _MOST_CHOICES)


def _text_list() -> Check:
    """A list of texts as JSON, for where only text can stand."""

    def judge(value: object, path: str) -> Iterator[Problem]:
        problems: list[Problem] = [(path, f'{path} must be a JSON list of strings, such as ["a", "b"].')]
        try:
            listed = json.loads(str(value))
        except (ValueError, RecursionError):
            yield from problems
        else:
            yield from _TEXTS.judge(listed, path) if isinstance(listed, list) else problems

    return Check({"type": "string", "contentMediaType": "application/json", "contentSchema": _TEXTS.schema}, judge)


def _pattern() -> Check:
    """A pattern that RE2 takes."""
    plain = text(patterns.MOST_CHARACTERS)

    def judge(value: object, path: str) -> Iterator[Problem]:
        problems = list(plain.judge(value, path))
        yield from problems
        if not problems:
            try:
                patterns.compiled(str(value))
            except ValueError as error:
                yield path, f"{path} {error}. Correct it, or leave it out."

    return Check(plain.schema, judge)


_MEMBERS: dict[str, tuple[Check, str]] = {
    "scorer": (one_of(*SCORERS), "The scorer. `exact_match` if absent."),
    "reference_field": (text(200), "The metadata field or column with the reference. The row's `reference` if absent."),
    "tolerance": (
        number(0, _MOST_TOLERANCE),
        "For `numeric`: the largest difference that counts as equal. 0 if absent.",
    ),
    "tolerance_is_relative": (boolean, "For `numeric`: whether the tolerance is relative to the reference."),
    "fields": (_TEXTS, "For `json`: the fields to compare, as dotted paths. Those of the reference if absent."),
    "choices": (_TEXTS, "For `choice`: the answers to choose from. The letters A to J if absent."),
    "answer_pattern": (_pattern(), "An RE2 pattern. Its first group, or the whole match, is the answer."),
    "answer_match": (one_of(*ANSWER_MATCHES), "Which match of the pattern is the answer. `last` if absent."),
}
SCORING = record({name: Field(check, about=words) for name, (check, words) in _MEMBERS.items()}, name="ScoringRequest")
"""The object, as requests hold it."""
OPTIONS = tuple(
    Parameter(name, _text_list() if check is _TEXTS else check, words) for name, (check, words) in _MEMBERS.items()
)
"""The single fields; lists as JSON."""
BODY = shape(
    {
        name: about(schema, _MEMBERS[name][1])
        for name, schema in {
            "scorer": STRING,
            "reference_field": STRING,
            "tolerance": NUMBER,
            "tolerance_is_relative": BOOLEAN,
            "fields": array(STRING),
            "choices": array(STRING),
            "answer_pattern": STRING,
            "answer_match": enum(*ANSWER_MATCHES),
        }.items()
    },
    name="Scoring",
)


def scoring_of(given: Mapping[str, Any]) -> scoring_pb2.Scoring:
    """Of the checked object or of checked single fields; what else they hold is not looked at."""
    found = {name: given[name] for name in _MEMBERS if given.get(name) is not None}
    lists = {
        name: json.loads(value)
        for name, value in found.items()
        if _MEMBERS[name][0] is _TEXTS and isinstance(value, str)
    }
    matches = {"answer_match": ANSWER_MATCHES[found["answer_match"]]} if "answer_match" in found else {}
    return scoring_pb2.Scoring(**(found | lists | matches))


def scoring_body(scoring: scoring_pb2.Scoring) -> dict[str, Any]:
    return {
        "scorer": scoring.scorer or USUAL,
        "reference_field": scoring.reference_field,
        "tolerance": scoring.tolerance,
        "tolerance_is_relative": scoring.tolerance_is_relative,
        "fields": list(scoring.fields),
        "choices": list(scoring.choices),
        "answer_pattern": scoring.answer_pattern,
        "answer_match": ANSWER_MATCHES.of(scoring.answer_match, "last"),
    }
