"""SuperGLUE's tasks ask and score as published."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.evaluator.catalogue import Catalogue
from services.evaluator.suites import shipped
from services.evaluator.tasks import superglue_rows
from tests.unit.evaluator.tasks.tasks import GENERATE, LOGLIKELIHOOD, items, made, rows
from touchstone.v1 import job_pb2


def test_multirc_label_1_is_yes_in_both_modes_unlike_lm_eval(tmp_path: Path) -> None:
    for mode in (GENERATE, LOGLIKELIHOOD):
        task = made(tmp_path, "superglue/multirc", mode)
        assert [item.reference for item in items(task)] == [
            ("no", "yes")[row["label"]] for row in rows("superglue/multirc")
        ]
    first = items(task)[0]
    assert [choice.rpartition(" ")[2] for choice in first.choices] == ["no", "yes"]


def test_multirc_answers_are_gathered_by_question_and_passage(tmp_path: Path) -> None:
    found = items(made(tmp_path, "superglue/multirc"))
    assert [item.statistics["question"] for item in found] == [
        row["idx"]["paragraph"] * 100_000 + row["idx"]["question"] for row in rows("superglue/multirc")
    ]
    assert len({item.statistics["question"] for item in found}) > len({item.group for item in found}) > 1


def test_plans_of_decisions_say_which_items_share_a_passage(tmp_path: Path) -> None:
    found = items(made(tmp_path, "superglue/multirc"))
    catalogue, work = Catalogue(tmp_path), job_pb2.SuiteWork(suite="superglue", tasks=["multirc", "boolq"])
    made(tmp_path, "superglue/boolq")
    plans = {plan.task: plan for plan in catalogue.plan(work, GENERATE, 32, clustered=True)}
    clusters = list(plans["multirc"].clusters)
    assert len(clusters) == plans["multirc"].items == len(found)
    assert len({*zip(clusters, (item.group for item in found), strict=True)}) == len({*clusters}) < len(found)
    assert not plans["boolq"].clusters
    assert not any(plan.clusters for plan in catalogue.plan(work, GENERATE, 32))


def test_axg_neighbours_are_a_pair(tmp_path: Path) -> None:
    found = items(made(tmp_path, "superglue/axg"))
    assert [item.statistics["pair"] for item in found] == [index // 2 for index in range(56)]


def test_diagnostic_sets_stand_beside_the_suites_score() -> None:
    beside = {definition.task for definition in shipped()["superglue"].definitions if definition.beside}
    assert beside == {"axb", "axg"}


@pytest.mark.parametrize(
    ("answer", "correct", "f1"),
    [
        ("The Freya Society", 1, 1),
        ("freya society.", 1, 1),
        ("Freya", 0, 2 / 3),
        ("Boris", 0, 0),
        ("Ada", 1, 1),
        ("", 0, 0),
    ],
)
def test_record_counts_the_best_of_several_right_answers(answer: str, correct: float, f1: float) -> None:
    assert superglue_rows.entity_match(answer, ["The Freya Society", "Ada"]) == {
        "correct": correct,
        "f1": pytest.approx(f1),
    }


def test_wsc_marks_the_pronoun_where_its_place_is_wrong(tmp_path: Path) -> None:
    row = {"text": "They might use it , but for now they use words .", "span2_text": "it", "span2_index": 2}
    assert "use *it*, but" in superglue_rows.wsc(row)["shown"]
    for item in items(made(tmp_path, "superglue/wsc")):
        assert item.messages[0].content.count("*") == 2


def test_copa_choices_go_on_from_the_premise(tmp_path: Path) -> None:
    for item, row in zip(items(made(tmp_path, "superglue/copa", LOGLIKELIHOOD)), rows("superglue/copa"), strict=True):
        assert item.context.endswith({"cause": " because", "effect": " therefore"}[row["question"]])
        assert item.context.partition(" on day")[0] == row["premise"].strip().partition(" on day")[0]
