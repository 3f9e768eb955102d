"""Reading what a judge answers."""

from __future__ import annotations

import json

import pytest

from services.errors import InvalidRequestError
from services.evaluator.answers.scorers.choosing import canonical, scorer
from services.evaluator.answers.scorers.scorer import Reply
from services.evaluator.datasets.rows import right_answers
from services.words import judging_rows, rubrics
from tests.unit.words.test_rubrics import CORRECT, TIPS
from touchstone.v1.dataset_pb2 import DatasetRow
from touchstone.v1.scoring_pb2 import Scoring

JUDGEMENT = scorer(Scoring(scorer="judgement", rubric=json.dumps(TIPS)))
GOOD = '{"reason": "clear", "relevance": 4, "actionability": 5, "tone": 3}'


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"<think>tone 1, {{}} maybe</think>{GOOD}",
        f'At first I thought {{"relevance": 1, "actionability": 1, "tone": 1}}, but no.\n{GOOD} That is all.',
        f'{{"scores": {GOOD}}}',
        '{"tone": 3.0, "relevance": 4, "actionability": 5, "details": {"relevance": "on topic"}}',
        f"Set {{a, b}}: {GOOD}",
    ],
)
def test_scores_are_found_in_the_last_object_that_names_a_criterion(text: str) -> None:
    found = JUDGEMENT.read(Reply(text))
    assert json.loads(found.answer) == {"relevance": 4, "actionability": 5, "tone": 3}
    assert JUDGEMENT.judge(found.answer, ()) == {
        "composite": pytest.approx(0.4 * 0.75 + 0.4 + 0.2 * 0.5),
        "relevance": 0.75,
        "actionability": 1,
        "tone": 0.5,
    }


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("", "no JSON object with scores"),
        ("relevance: 4, actionability: 5, tone: 3", "no JSON object with scores"),
        ('{"relevance": 4, "tone": 3}', "has no score for actionability"),
        (GOOD.replace("4", "6"), "relevance the score 6"),
        (GOOD.replace("4", "NaN"), "relevance the score NaN"),
        (GOOD.replace("4", '"4"'), 'relevance the score "4"'),
        (GOOD[:-1], "no JSON object with scores"),
        ('{"a":' * 50_000, "no JSON object with scores"),
        ("{" * 200_000, "no JSON object with scores"),
    ],
)
def test_a_judgement_that_cannot_be_read_moves_no_score(text: str, how: str) -> None:
    found = JUDGEMENT.read(Reply(text))
    assert not found.answer
    assert how in found.how
    assert JUDGEMENT.missed(()) == {}


def test_a_rubric_is_needed_and_checked() -> None:
    for rubric, said in (("", "needs a rubric"), ("{}", "needs a version"), ("no", "is not JSON")):
        with pytest.raises(InvalidRequestError, match=said):
            scorer(Scoring(scorer="judgement", rubric=rubric))


def test_the_rubric_is_part_of_the_scoring_and_the_version() -> None:
    first, second = (Scoring(scorer="judgement", rubric=json.dumps(one)) for one in (TIPS, CORRECT))
    assert scorer(first).version != scorer(second).version
    assert canonical(first) != canonical(second)
    assert canonical(Scoring(rubric=json.dumps(TIPS))) == canonical(Scoring())


def test_a_preference_counts_for_the_judged_answer_in_either_order() -> None:
    made = scorer(Scoring(scorer="judgement", rubric=rubrics.written(rubrics.comparing(None))))

    def counted(preferred: str, *, other_first: bool) -> float:
        metadata = json.dumps(judging_rows.metadata("t", 0, 0, 1, 2, other_first=other_first))
        answers = right_answers(DatasetRow(metadata=metadata), "", made)
        return made.judge(made.read(Reply(json.dumps({"better": preferred}))).answer, answers)["better"]

    words = ("first", "tie", "second")
    assert [counted(word, other_first=False) for word in words] == [1, 0.5, 0]
    assert [counted(word, other_first=True) for word in words] == [0, 0.5, 1]
