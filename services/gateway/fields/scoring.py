"""How users say how answers are scored: an object in JSON, single fields in forms and queries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from services.gateway.fields import checks
from services.gateway.fields.checks import Check, Problem
from services.gateway.fields.job import check_of
from services.gateway.fields.query import Parameter
from services.gateway.fields.schema import BOOLEAN, NUMBER, STRING, Schema, about, array, enum, shape
from services.words import scorers
from services.words.enums import ANSWER_MATCHES
from services.words.fields import Choice, Field, Number, Switch, TextList
from touchstone.v1 import scoring_pb2


def _single(field: Field) -> Check:
    """The check of a single option: a list of texts is JSON, as only text is possible there."""
    check = check_of(field)
    if not isinstance(field, TextList):
        return check

    def judge(value: object, path: str) -> Iterator[Problem]:
        problems: list[Problem] = [(path, f'{path} must be a JSON list of strings, such as ["a", "b"].')]
        try:
            listed = json.loads(str(value))
        except (ValueError, RecursionError):
            yield from problems
        else:
            yield from check.judge(listed, path) if isinstance(listed, list) else problems

    return Check({"type": "string", "contentMediaType": "application/json", "contentSchema": check.schema}, judge)


def _shown(field: Field) -> Schema:
    """The schema of an option in answers."""
    match field:
        # Scorers of later versions are shown, too.
        case Choice(name="scorer"):
            schema = STRING
        case Choice():
            schema = enum(*field.words)
        case Number():
            schema = NUMBER
        case Switch():
            schema = BOOLEAN
        case TextList():
            schema = array(STRING)
        case _:
            schema = STRING
    return about(schema, field.about)


SCORER = check_of(scorers.OPTIONS["scorer"])
SCORING = checks.record(
    {name: checks.Field(check_of(field), about=field.about) for name, field in scorers.OPTIONS.items()},
    name="ScoringRequest",
)
"""The object, as requests hold it."""
FURTHER = checks.list_of(SCORING, scorers.MOST_FURTHER, least=0)
"""Objects for further scorers; none clears those of a run that is scored again."""
OPTIONS = tuple(Parameter(name, _single(field), field.about) for name, field in scorers.OPTIONS.items())
"""The single fields; lists as JSON."""
BODY = shape({name: _shown(field) for name, field in scorers.OPTIONS.items()}, name="Scoring")


def scoring_of(given: Mapping[str, Any]) -> scoring_pb2.Scoring:
    """The message from the checked object or from checked single fields; other members are ignored."""
    lists = {
        name: json.loads(given[name])
        for name, field in scorers.OPTIONS.items()
        if isinstance(field, TextList) and isinstance(given.get(name), str)
    }
    return scorers.scoring_of({**given, **lists})


def scoring_body(scoring: scoring_pb2.Scoring) -> dict[str, Any]:
    """Every option, with the defaults of those that are words."""
    held = {name: getattr(scoring, name) for name in scorers.OPTIONS}
    lists = {name: list(held[name]) for name, field in scorers.OPTIONS.items() if isinstance(field, TextList)}
    words = {"scorer": scoring.scorer or scorers.USUAL, "answer_match": ANSWER_MATCHES.of(scoring.answer_match, "last")}
    return held | lists | words
