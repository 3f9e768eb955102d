"""Rows that ask a judge say which answer they are about."""

from __future__ import annotations

import json

import pytest

from services.words import judging_rows


@pytest.mark.parametrize("task", ["t", "a/b", "a#2", "line\nbreak"])
def test_several_judgements_of_an_answer_are_one_group(task: str) -> None:
    def group(number: int, judgements: int) -> str:
        metadata = json.dumps(judging_rows.metadata(task, 3, 0, number, judgements, other_first=False))
        return judging_rows.group(judging_rows.name(f"{task}/3/0", number), metadata)

    assert {group(number, 4) for number in range(1, 5)} == {f"{task}/3/0"}
    assert group(1, 1) == ""


@pytest.mark.parametrize("metadata", ["", "{}", '{"judgements": "2"}', '{"judgements": 2, "first": 1}'])
def test_rows_of_users_are_no_group_and_have_no_other_answer(metadata: str) -> None:
    assert judging_rows.group("my row", metadata) == ""
    assert not judging_rows.other_first(metadata)
