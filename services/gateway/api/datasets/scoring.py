"""How answers are scored, as users say it: an object in JSON, single fields in forms and queries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from services import patterns
from services.gateway.api.checks import Check, Field, Problem, boolean, list_of, number, one_of, record, text
from services.gateway.api.query import Parameter
from services.gateway.api.schema import BOOLEAN, NUMBER, STRING, array, enum, shape
from touchstone.v1 import scoring_pb2

SCORERS = ("exact_match", "contains", "regex", "choice", "numeric", "token_f1", "rouge_l", "json")
_MOST_CHOICES = 100
_MOST_TOLERANCE = 1e12
_TEXTS = list_of(text(500), _MOST_CHOICES)


def _text_list() -> Check:
    """A list of texts as JSON, for where only text can stand."""

    def judge(value: object, path: str) -> Iterator[Problem]:
        problems: list[Problem] = [(path, f'{path} must be a JSON list of texts, such as ["a", "b"].')]
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


_MATCHES = {"last": scoring_pb2.ANSWER_MATCH_LAST, "first": scoring_pb2.ANSWER_MATCH_FIRST}
_MEMBERS: dict[str, tuple[Check, str]] = {
    "scorer": (one_of(*SCORERS), "exact_match when left out."),
    "reference_field": (text(200), "Metadata field or column with the reference; the row's own when left out."),
    "tolerance": (number(0, _MOST_TOLERANCE), "Of numeric: largest difference that counts as equal."),
    "tolerance_is_relative": (boolean, "The tolerance is relative to the reference."),
    "fields": (_TEXTS, "Of json: fields to compare, as dotted paths; those of the reference when left out."),
    "choices": (_TEXTS, "Of choice: answers to choose from; the letters A to J when left out."),
    "answer_pattern": (_pattern(), "Its first group, or whole match, is the answer; RE2."),
    "answer_match": (one_of(*_MATCHES), "Which match of the pattern is the answer; last when left out."),
}
SCORING = record({name: Field(check, about=words) for name, (check, words) in _MEMBERS.items()}, name="ScoringRequest")
"""The object, as requests hold it."""
OPTIONS = tuple(
    Parameter(name, _text_list() if check is _TEXTS else check, words) for name, (check, words) in _MEMBERS.items()
)
"""The single fields; lists as JSON."""
BODY = shape(
    {
        "scorer": STRING,
        "reference_field": STRING,
        "tolerance": NUMBER,
        "tolerance_is_relative": BOOLEAN,
        "fields": array(STRING),
        "choices": array(STRING),
        "answer_pattern": STRING,
        "answer_match": enum(*_MATCHES),
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
    matches = {"answer_match": _MATCHES[found["answer_match"]]} if "answer_match" in found else {}
    return scoring_pb2.Scoring(**(found | lists | matches))


def scoring_body(scoring: scoring_pb2.Scoring) -> dict[str, Any]:
    return {
        "scorer": scoring.scorer or SCORERS[0],
        "reference_field": scoring.reference_field,
        "tolerance": scoring.tolerance,
        "tolerance_is_relative": scoring.tolerance_is_relative,
        "fields": list(scoring.fields),
        "choices": list(scoring.choices),
        "answer_pattern": scoring.answer_pattern,
        "answer_match": "first" if scoring.answer_match == scoring_pb2.ANSWER_MATCH_FIRST else "last",
    }
