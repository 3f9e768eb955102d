"""References as a scorer needs them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.results.uploads import Outcome, jsonl, upload
from touchstone.v1.scoring_pb2 import ANSWER_MATCH_FIRST, Scoring


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("B", "The reference is not JSON: Expecting value at character 1."),
        ('"B"', "The reference is not a JSON object"),
        ('{"a": ' + "9" * 5000 + "}", "The reference contains a number with too many digits."),
        ('{"a": ' + "[" * 40 + "]" * 40 + "}", "The reference nests more than 32 objects"),
    ],
)
def test_a_reference_that_the_scorer_json_cannot_read_is_named_as_such(reference: str, reason: str) -> None:
    line = {"prompt": "a", "reference": reference}
    made = upload(jsonl({"prompt": "b", "reference": {"a": 1}}, line), scoring=Scoring(scorer="json"))
    assert made.reasons[2].startswith(reason)


@pytest.mark.parametrize(
    ("scorer", "reference", "reason"),
    [
        ("choice", "Paris", "a letter from A to J"),
        ("numeric", "many", "not a number"),
        ("numeric", True, "not a number"),
        ("regex", "(", "not a valid RE2 pattern"),
        ("regex", "x" * 1001, "at most 1,000 are allowed"),
        ("regex", 5, "must be a string"),
        ("json", "Lima", "not JSON"),
        ("json", [{"a": 1}, 1], "not a JSON object"),
        ("exact_match", ["Lima", " "], "empty"),
        ("rouge_l", "你好", "no letters a to z"),
        ("numeric", "1" * 101, "not a number"),
        ("exact_match", {"a": 1}, "Only the scorers json and tool_calls take objects"),
        ("tool_calls", "weather", "not JSON"),
        ("tool_calls", ["weather"], 'is not a list of calls; write each as {"name": "f"'),
        ("tool_calls", [{"name": "f", "arguments": "{"}], "are not a JSON object"),
        ("tool_calls", [{"name": "f", "arguments": '{"a": 1e999}'}], "are not a JSON object"),
        ("tool_calls", [[{"f": {}}]] * 101, "at most 100 are allowed"),
        ("tool_calls", [[{"f": {}}], [5]], "is not a list of calls"),
        ("json_schema", {"gas": "neon"}, "is not a JSON Schema: it has no keyword"),
        ("json_schema", {"$ref": "http://127.0.0.1:9/"}, "only references inside the schema work"),
        ("json_schema", "integer", "not JSON"),
    ],
)
def test_a_reference_that_its_scorer_cannot_use_is_refused(scorer: str, reference: Any, reason: str) -> None:
    made = upload(jsonl({"prompt": "a", "reference": reference}), scoring=Scoring(scorer=scorer))

    assert reason in made.reasons[1]


@pytest.mark.parametrize(
    ("scorer", "reference", "kept"),
    [
        ("", True, "true"),
        ("exact_match", 5, "5"),
        ("choice", " (B). ", '" (B). "'),
        ("json", [{"a": 1}, {"a": 2}], '[{"a":1},{"a":2}]'),
        ("exact_match", " \t", ""),
        ("numeric", "$1,234.5", '"$1,234.5"'),
        ("regex", r"^\d+$", r'"^\\d+$"'),
        ("json", {"a": [1]}, '{"a":[1]}'),
        ("json", '{"a": 1}', '{"a":1}'),
        ("rouge_l", "Größe", '"Größe"'),
        ("contains", "", ""),
        ("contains", None, ""),
        ("tool_calls", [], "[]"),
        ("tool_calls", [[], [{"f": {"a": [1, ""]}}]], '[[],[{"f":{"a":[1,""]}}]]'),
        ("tool_calls", '[{"name": "f"}]', '[{"name":"f"}]'),
        ("tool_calls", {"name": "f", "arguments": {"b": 1.0}}, '{"name":"f","arguments":{"b":1.0}}'),
        ("tool_calls", None, ""),
        ("json_schema", '{"type": "null"}', '{"type":"null"}'),
        ("json_schema", None, ""),
    ],
)
def test_a_reference_is_kept_as_json(scorer: str, reference: Any, kept: str) -> None:
    (row,) = upload(jsonl({"prompt": "a", "reference": reference}), scoring=Scoring(scorer=scorer)).rows

    assert row.reference == kept


def test_choices_name_what_references_may_be() -> None:
    scoring = Scoring(scorer="choice", choices=["Yes", "No", "Maybe"])
    made = upload(jsonl({"prompt": "a", "reference": "yes"}, {"prompt": "b", "reference": "perhaps"}), scoring=scoring)

    assert list(made.reasons) == [2]


def test_references_of_json_have_one_of_the_compared_fields() -> None:
    made = upload(
        jsonl(*({"prompt": "a", "reference": value} for value in ({"x": {"y": 1}}, {"x.y": 2}, {"x": {"z": 1}}))),
        scoring=Scoring(scorer="json", fields=["x.y", "w"]),
    )

    assert list(made.reasons) == [3]


@pytest.mark.parametrize("line", [{"answer": "B"}, {"metadata": {"answer": "B"}}])
def test_another_field_may_hold_the_reference_and_stays_in_the_metadata(line: dict[str, Any]) -> None:
    (row,) = upload(jsonl({"prompt": "a", "reference": "own"} | line), scoring=Scoring(reference_field="answer")).rows

    assert row.reference == '"B"'
    assert json.loads(row.metadata) == {"answer": "B", "reference": "own"}


def test_a_reference_field_that_no_row_has_is_refused() -> None:
    made = upload(jsonl({"prompt": "a", "answer": "B"}), scoring=Scoring(reference_field="anwser"))

    assert made.refused == 'No row has "anwser", which must hold the reference. Rows have "answer".'
    assert made.refusal is not None
    assert made.refusal.field == "scoring.reference_field"


@pytest.mark.parametrize(
    ("values", "groups"),
    [
        (["a", "b", "a"], 2),
        ([1, "1", 1.0, 2, True], 3),
        ([None, "", " ", "a", []], 2),
        (["same"] * 5, 1),
        ([*range(5)], 5),
        (["x" * 60_000, "x" * 59_999 + "y"], 2),
    ],
)
def test_groups_of_rows_are_counted(values: list[Any], groups: int) -> None:
    lines = [{"prompt": "a", "p": value} for value in values] + [{"prompt": "b"}]
    assert _groups(upload(jsonl(*lines), scoring=Scoring(group_field="p"))) == groups
    assert _groups(upload(jsonl(*lines))) == 0


def _groups(made: Outcome) -> int:
    assert made.dataset is not None
    return made.dataset.groups


def test_a_group_field_that_no_row_has_is_refused() -> None:
    files: list[list[dict[str, Any]]] = [
        [{"prompt": "a", "q": "B"}],
        [{"prompt": "a", "p": None, "q": 1}, {"prompt": "b", "p": ""}],
    ]
    for lines in files:
        made = upload(jsonl(*lines), scoring=Scoring(group_field="p"))
        assert made.refused == f'No row has "p", which must name the row\'s group. Rows have {_named(lines)}.'
        assert made.refusal is not None
        assert made.refusal.field == "scoring.group_field"
    made = upload(b"question,q\nWhy?,1\n", template="{{question}}", scoring=Scoring(group_field="p"))
    assert made.refused == 'The file has no column "p". Its columns: "question", "q".'


def _named(lines: list[dict[str, Any]]) -> str:
    return ", ".join(json.dumps(name) for name in lines[0] if name != "prompt")


def test_a_group_of_a_megabyte_is_a_wrong_line() -> None:
    made = upload(jsonl({"prompt": "a", "p": "b"}, {"prompt": "a", "p": "x" * 2**20}), scoring=Scoring(group_field="p"))
    assert made.reasons == {2: "The row's metadata has more than 65,536 bytes. Remove columns that you do not need."}


def test_a_long_passage_stays_in_the_metadata_where_it_is_the_group() -> None:
    passage = "It was a dark night. " * 100
    lines = jsonl(*({"passage": passage, "question": f"{number}?", "answer": "x"} for number in range(3)))
    template = "{{passage}} {{question}}"
    kept = upload(lines, template=template, scoring=Scoring(reference_field="answer", group_field="passage"))
    assert _groups(kept) == 1
    assert {json.loads(row.metadata)["passage"] for row in kept.rows} == {passage}
    without = upload(lines, template=template, scoring=Scoring(reference_field="answer"))
    assert "passage" not in json.loads(without.rows[0].metadata)


@pytest.mark.parametrize(
    ("scoring", "field"),
    [
        (Scoring(scorer="no name"), "scoring.scorer"),
        (Scoring(tolerance=-1), "scoring.tolerance"),
        (Scoring(tolerance=float("nan")), "scoring.tolerance"),
        (Scoring(choices=["a", " A"]), "scoring.choices"),
        (Scoring(choices=[""]), "scoring.choices"),
        (Scoring(choices=["a"]), "scoring.choices"),
        (Scoring(choices=["a", "b" * 81]), "scoring.choices"),
        (Scoring(choices=[str(i) for i in range(201)]), "scoring.choices"),
        (Scoring(fields=[""]), "scoring.fields"),
        (Scoring(reference_field="x" * 201), "scoring.reference_field"),
        (Scoring(answer_pattern="("), "scoring.answer_pattern"),
        (Scoring(answer_pattern="x" * 1001), "scoring.answer_pattern"),
        (Scoring(answer_match=ANSWER_MATCH_FIRST), "scoring.answer_match"),
    ],
)
def test_a_scoring_that_cannot_be_is_refused_by_its_field(scoring: Scoring, field: str) -> None:
    made = upload(jsonl({"prompt": "a"}), scoring=scoring)

    assert made.refusal is not None
    assert made.refusal.field == field


def test_a_row_with_a_schema_may_have_any_reference() -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
    line = {"prompt": "a", "reference": {"gas": "neon"}}
    assert upload(jsonl(line | {"response_format": schema}), scoring=Scoring(scorer="json_schema")).rows
    assert upload(jsonl(line), scoring=Scoring(scorer="json_schema", schema='{"type": "object"}')).rows
    made = upload(jsonl(line), scoring=Scoring(scorer="json_schema", schema='{"$ref": "#"}'))
    assert made.refusal is not None
    assert (made.refusal.field, made.refused) == ("scoring.schema", "The schema refers to itself without end.")
