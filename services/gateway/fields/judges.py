"""Judges in requests: the model, its parameters, and the rubric that it judges by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from services.gateway.fields.checks import Check, Field, Problem, integer, list_of, number, record, text
from services.gateway.fields.job import option
from services.words import rubrics
from touchstone.v1.rubric_pb2 import Rubric

_NAME = text(40, pattern="[a-z][a-z0-9_]*", means="a name of lower-case letters, digits and _")
_CHOICE = record(
    {
        "name": Field(text(80), required=True, about="The choice."),
        "value": Field(number(0, 1), required=True, about="What it counts, from 0 to 1."),
    },
    name="RubricChoice",
)
_EXAMPLE = record(
    {
        "answer": Field(text(4096), required=True, about="An answer."),
        "score": Field(text(80), required=True, about="Its score: a number of the scale, or a choice's name, as text."),
        "why": Field(text(4096, least=0), about="Why."),
    },
    name="RubricExample",
)
_CRITERION = record(
    {
        "name": Field(_NAME, required=True, about="Its name, such as `relevance`."),
        "description": Field(text(4096, least=0), about="What it means, in words for the judge."),
        "lowest": Field(integer(-100, 100), about="The lowest score of its scale. 1 if both ends are absent."),
        "highest": Field(integer(-100, 100), about="The highest score, above `lowest`. 5 if both ends are absent."),
        "choices": Field(list_of(_CHOICE, rubrics.MOST_CHOICES, least=2), about="Choices, instead of a scale."),
        "examples": Field(list_of(_EXAMPLE, rubrics.MOST_EXAMPLES, least=0), about="Answers with their scores."),
        "weight": Field(number(0, 1000), about="Its weight in the composite. Equal weights if all are 0 or absent."),
    },
    name="RubricCriterion",
)
_RUBRIC = record(
    {
        "version": Field(
            text(64, pattern="[A-Za-z0-9_.-]+", means="letters, digits, _, . and -"),
            required=True,
            about="Its name with its version, such as `tip-v1`.",
        ),
        "instructions": Field(text(8192, least=0), about="What is judged, in words for the judge."),
        "criteria": Field(
            list_of(_CRITERION, rubrics.MOST_CRITERIA), required=True, about="What is scored, each by itself."
        ),
    },
    name="Rubric",
)


def _problems(value: object, path: str) -> Iterator[Problem]:
    problems = list(_RUBRIC.judge(value, path))
    yield from problems
    if not problems and isinstance(value, dict):
        try:
            text = rubrics.written(rubrics.of_value(without_null(value)))
            rubrics.parse(text)
        except ValueError as error:
            yield path, f"{path} {error}."


RUBRIC = Check(_RUBRIC.schema, _problems)
"""A rubric, as an object."""


def of_model(config: Check) -> dict[str, Field]:
    """The fields of a judge, `config` being the model and its parameters."""
    return {
        "config": Field(config, required=True, about="The judge: the model and its parameters."),
        "rubric": Field(RUBRIC, required=True, about="What it judges by."),
        "repeats": Field(integer(1, rubrics.MOST_REPEATS), about="Judgements of each answer. 1 if absent."),
        "budget_usd": option("budget_usd", "The most that the judge's job may cost."),
    }


def rubric_of(value: Mapping[str, Any]) -> Rubric:
    """A checked rubric."""
    return rubrics.of_value(without_null(value))


def without_null(value: Any) -> Any:
    """null is how many clients write "not given"."""
    if isinstance(value, dict):
        return {name: without_null(inner) for name, inner in value.items() if inner is not None}
    return [without_null(inner) for inner in value] if isinstance(value, list) else value
