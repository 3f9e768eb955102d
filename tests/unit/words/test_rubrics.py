"""Rubrics: which are taken, and what scores under them count."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.words import rubrics

TIPS: dict[str, Any] = {
    "version": "tip-v1",
    "instructions": "Judge a list of tips.",
    "criteria": [
        {"name": "relevance", "lowest": 1, "highest": 5, "weight": 0.4, "examples": [{"answer": "a", "score": "5"}]},
        {"name": "actionability", "lowest": 1, "highest": 5, "weight": 0.4},
        {"name": "tone", "lowest": 1, "highest": 5, "weight": 0.2},
    ],
}
CORRECT: dict[str, Any] = {
    "version": "qa-v1",
    "criteria": [
        {
            "name": "correct",
            "choices": [{"name": "right", "value": 1}, {"name": "partly", "value": 0.5}, {"name": "wrong", "value": 0}],
        }
    ],
}


def test_scores_are_shares_of_their_scales_and_the_composite_is_their_weighted_mean() -> None:
    rubric = rubrics.of_value(TIPS)
    shares = rubrics.shares(rubric, rubrics.scores(rubric, {"relevance": 5, "actionability": 3.0, "tone": 1, "why": 9}))
    assert shares == {"composite": pytest.approx(0.6), "relevance": 1, "actionability": 0.5, "tone": 0}
    assert rubrics.names(rubric) == list(shares)
    assert rubrics.on_scale(rubric.criteria[1], 0.5) == 3


def test_without_weights_all_criteria_count_the_same() -> None:
    value = deepcopy(TIPS)
    for criterion in value["criteria"]:
        del criterion["weight"]
    rubric = rubrics.of_value(value)
    given = {"relevance": 5, "actionability": 5, "tone": 2}
    assert rubrics.shares(rubric, given)["composite"] == pytest.approx((1 + 1 + 0.25) / 3)


def test_a_single_question_with_choices_is_its_own_score() -> None:
    rubric = rubrics.of_value(CORRECT)
    assert rubrics.names(rubric) == ["correct"]
    assert rubrics.shares(rubric, rubrics.scores(rubric, {"correct": "partly"})) == {"correct": 0.5}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"relevance": 5, "tone": 1}, "has no score for actionability"),
        (
            {"relevance": 6, "actionability": 1, "tone": 1},
            "relevance the score 6; it must be a whole number from 1 to 5",
        ),
        ({"relevance": 4.5, "actionability": 1, "tone": 1}, "relevance the score 4.5"),
        ({"relevance": True, "actionability": 1, "tone": 1}, "relevance the score true"),
        ({"relevance": "5", "actionability": 1, "tone": 1}, 'relevance the score "5"'),
        ({"relevance": None, "actionability": 1, "tone": 1}, "relevance the score null"),
        ({"relevance": float("nan"), "actionability": 1, "tone": 1}, "relevance the score NaN"),
        ({"relevance": float("inf"), "actionability": 1, "tone": 1}, "relevance the score Infinity"),
        ({"relevance": [1], "actionability": 1, "tone": 1}, "relevance the score [1]"),
    ],
)
def test_partial_and_invalid_scores_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match="score") as refused:
        rubrics.scores(rubrics.of_value(TIPS), given)
    assert said in str(refused.value)
    with pytest.raises(ValueError, match="one of: right, partly, wrong"):
        rubrics.scores(rubrics.of_value(CORRECT), {"correct": "Right"})


def _with(change: str, value: Any) -> dict[str, Any]:
    changed = deepcopy(TIPS)
    part: Any = changed
    *path, last = change.split(".")
    for name in path:
        part = part[int(name)] if name.isdigit() else part[name]
    part[last] = value
    return changed


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (_with("version", ""), "needs a version"),
        (_with("version", "two words"), "needs a version"),
        (_with("criteria", []), "between 1 and 12 criteria"),
        (_with("criteria.0.name", "Relevance"), 'a criterion "Relevance"'),
        (_with("criteria.0.name", "composite"), "is not composite"),
        (_with("criteria.0.name", "tone"), "two criteria tone"),
        (_with("criteria.0.lowest", 5), "from 5 to 5"),
        (_with("criteria.0.highest", 101), "from 1 to 101"),
        (_with("criteria.0.weight", -1), "a weight of -1"),
        (_with("criteria.0.weight", "NaN"), 'has "NaN" as criteria[0].weight, which must be a number'),
        (_with("criteria.0.choices", [{"name": "a"}, {"name": "b"}]), "a scale and choices"),
        (_with("criteria.0.examples", [{"answer": "a", "score": "6"}]), "an example that gives relevance the score 6"),
        (_with("criteria.0.examples", [{"answer": "a", "score": "good"}]), 'with the score "good"'),
        (_with("criteria.0.examples", [{"answer": "a" * 5000, "score": "5"}]), "more than 4,096 bytes"),
        (_with("instructions", "a\0"), "NUL"),
        (_with("criteria.0.scale", 5), 'an unknown field "scale" in criteria[0]; allowed are name, description'),
        (_with("criteria.0.lowest", "one"), 'has "one" as criteria[0].lowest, which must be a whole number'),
        (_with("criteria.0.lowest", 1.5), "has 1.5 as criteria[0].lowest, which must be a whole number"),
        (_with("criteria.0.lowest", float("inf")), "as criteria[0].lowest, which must be a whole number"),
        (_with("criteria", {}), "has {} as criteria, which must be a list"),
    ],
)
def test_rubrics_that_cannot_be_used_are_refused_with_what_is_wrong(value: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        rubrics.of_value(value)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{", '"tip"', "{" * 5000, json.dumps({"instructions": "a" * 20_000})]
)
def test_texts_that_are_no_rubrics_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"JSON|bytes|nested"):
        rubrics.parse(text)


def test_without_choices_and_ends_a_scale_is_from_1_to_5() -> None:
    (criterion,) = rubrics.of_value({"version": "v", "criteria": [{"name": "tone"}]}).criteria
    assert (criterion.lowest, criterion.highest) == (1, 5)


def test_equal_rubrics_have_one_digest() -> None:
    turned = json.loads(json.dumps(TIPS), object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    first, second = rubrics.of_value(TIPS), rubrics.parse(json.dumps(turned))
    assert rubrics.written(first) == rubrics.written(second)
    assert rubrics.digest(first) == rubrics.digest(rubrics.parse(rubrics.written(first)))
    assert rubrics.digest(first) != rubrics.digest(rubrics.of_value(_with("criteria.0.weight", 0.5)))


def test_a_written_rubric_says_also_what_counts_0() -> None:
    ends = _with("criteria.0.lowest", 0)
    assert json.loads(rubrics.written(rubrics.of_value(ends)))["criteria"][0]["lowest"] == 0
    choices = json.loads(rubrics.written(rubrics.of_value(CORRECT)))["criteria"][0]["choices"]
    assert [choice["value"] for choice in choices] == [1, 0.5, 0]


def test_the_schema_lists_short_scales_and_bounds_long_ones() -> None:
    properties = rubrics.schema(rubrics.of_value(_with("criteria.0.highest", 100)))["properties"]
    assert list(properties) == ["reason", "relevance", "actionability", "tone"]
    assert properties["relevance"] == {"type": "integer", "minimum": 1, "maximum": 100}
    assert properties["tone"]["enum"] == [1, 2, 3, 4, 5]
    assert rubrics.schema(rubrics.of_value(CORRECT))["properties"]["correct"]["enum"] == ["right", "partly", "wrong"]


@given(st.integers(-100, 99), st.integers(1, 200), st.integers(0, 200))
def test_a_share_is_between_0_and_1_and_gives_the_score_back(lowest: int, width: int, step: int) -> None:
    highest = min(100, lowest + width)
    score = min(highest, lowest + step)
    value = _with("criteria.0.lowest", lowest)
    value["criteria"][0] |= {"highest": highest, "examples": []}
    criterion = rubrics.of_value(value).criteria[0]
    share = rubrics.share(criterion, score)
    assert 0 <= share <= 1
    assert rubrics.on_scale(criterion, share) == pytest.approx(score)


def test_the_score_of_an_example_may_be_a_number() -> None:
    made = rubrics.of_value(_with("criteria.0.examples", [{"answer": "a", "score": 5}, {"answer": "b", "score": "4"}]))
    assert [example.score for example in made.criteria[0].examples] == ["5", "4"]


def test_all_mistakes_are_named() -> None:
    value = {"version": 1, "criteria": [{"name": "tone", "lowst": 2}, {"name": "short", "weight": "much"}]}
    with pytest.raises(ValueError, match="has 1 as version") as raised:
        rubrics.of_value(value)
    assert str(raised.value).split(". It ")[1:] == [
        'has an unknown field "lowst" in criteria[0]; allowed are name, description, lowest, highest, choices, '
        "examples, weight",
        'has "much" as criteria[1].weight, which must be a number',
    ]
    criteria: list[dict[str, object]] = [{"name": "tone", "weight": -1}, {"name": "tone", "lowest": 5, "highest": 1}]
    with pytest.raises(ValueError, match="needs a version") as raised:
        rubrics.of_value({"criteria": criteria})
    assert [clause.split(";")[0] for clause in str(raised.value).split(". It ")[1:]] == [
        "gives tone a weight of -1",
        "has two criteria tone",
        "gives tone a scale from 5 to 1",
    ]
    many = [{"name": f"c{number}" + 30 * "x", "weight": -1, "choices": [{"name": "a"}]} for number in range(12)]
    with pytest.raises(ValueError, match=r"It has \d+ further mistakes$") as raised:
        rubrics.of_value({"version": "v", "criteria": many})
    assert len(str(raised.value)) < 2_000
