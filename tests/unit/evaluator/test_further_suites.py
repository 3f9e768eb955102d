"""What SuperGLUE and the suites of one file each make of their rows: facts that no other suite shares."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from services.evaluator.catalogue import Catalogue
from services.evaluator.suites import shipped
from services.evaluator.tasks import superglue_rows
from services.evaluator.tasks.base import Item, Response, Task
from services.evaluator.tasks.split_task import SplitTask
from tests import suite_rows
from touchstone.v1 import item_result_pb2, suite_pb2

GENERATE, LOGLIKELIHOOD = suite_pb2.MODE_GENERATE, suite_pb2.MODE_LOGLIKELIHOOD


def made(root: Path, name: str, mode: suite_pb2.Mode = GENERATE, shots: int = 0) -> Task:
    suite, _, task_name = name.partition("/")
    definition = next(found for found in shipped()[suite].definitions if found.task == task_name)
    for source, split in definition.splits():
        suite_rows.write(root, source.dataset, source.config, split, 56)
    return Catalogue(root).task(suite, task_name, mode, shots)


def items(task: Task) -> list[Item]:
    return list(task.items(range(task.size())))


def rows(name: str, count: int = 56) -> list[dict[str, Any]]:
    suite, _, task_name = name.partition("/")
    info = next(found for found in shipped()[suite].definitions if found.task == task_name).info()
    return suite_rows.rows(info.data.dataset, info.data.config, info.data.split, count)


@pytest.mark.parametrize(
    ("suite", "counted", "whole"),
    [
        ("superglue", 8, 3270 + 56 + 100 + 4848 + 10000 + 277 + 638 + 104),
        ("gsm8k", 1, 1319),
        ("mmlu_pro", 14, 12032),
        ("arc", 2, 2376 + 1172),
        ("hellaswag", 1, 10042),
        ("bbh", 27, 6511),
    ],
)
def test_suite_counts_the_published_items(suite: str, counted: int, whole: int) -> None:
    scored = [definition for definition in shipped()[suite].definitions if not definition.beside]
    assert len(scored) == counted
    assert sum(definition.published_items for definition in scored) == whole


def test_every_hub_source_is_pinned_to_a_commit() -> None:
    for suite in shipped().values():
        for definition in suite.definitions:
            if suite.name != "demo":
                assert len(definition.source.revision) == 40, definition.task
                int(definition.source.revision, 16)


# -- SuperGLUE -------------------------------------------------------------------------------------------------


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


def test_record_shows_each_entity_once_and_fills_the_statement_with_it(tmp_path: Path) -> None:
    for item in items(made(tmp_path, "superglue/record", LOGLIKELIHOOD)):
        assert len(set(item.labels)) == len(item.labels) == len(item.choices)
        for entity, choice in zip(item.labels, item.choices, strict=True):
            assert entity in choice
            assert "@placeholder" not in choice


def test_record_row_without_a_right_candidate_is_no_example_and_spoils_no_others(tmp_path: Path) -> None:
    task = made(tmp_path, "superglue/record", LOGLIKELIHOOD, shots=2)
    for split in ("train", "validation"):
        file = next(tmp_path.rglob(f"{split}.jsonl"))
        first, *others = file.read_text().splitlines()
        file.write_text("\n".join([json.dumps({**json.loads(first), "answers": ["Nobody"]}), *others]) + "\n")
    found = items(task)
    assert found[0].reference == "Nobody"
    assert len(found) == 56
    assert isinstance(task, SplitTask)
    assert 0 not in task.example_rows()


def test_wsc_marks_the_pronoun_where_its_place_is_wrong(tmp_path: Path) -> None:
    row = {"text": "They might use it , but for now they use words .", "span2_text": "it", "span2_index": 2}
    assert "use *it*, but" in superglue_rows.wsc(row)["shown"]
    for item in items(made(tmp_path, "superglue/wsc")):
        assert item.messages[0].content.count("*") == 2


def test_copa_choices_go_on_from_the_premise(tmp_path: Path) -> None:
    for item, row in zip(items(made(tmp_path, "superglue/copa", LOGLIKELIHOOD)), rows("superglue/copa"), strict=True):
        assert item.context.endswith({"cause": " because", "effect": " therefore"}[row["question"]])
        assert item.context.partition(" on day")[0] == row["premise"].strip().partition(" on day")[0]


# -- one file each ---------------------------------------------------------------------------------------------


def test_gsm8k_reads_the_number_behind_the_solution_and_examples_show_the_steps(tmp_path: Path) -> None:
    task = made(tmp_path, "gsm8k/gsm8k", shots=2)
    item = items(task)[0]
    number = rows("gsm8k/gsm8k")[0]["answer"].rpartition("#### ")[2]
    assert item.reference == number.replace(",", "")
    steps = item.messages[1].content
    assert "<<" not in steps
    assert "dollars." in steps
    assert steps.splitlines()[-1].startswith("Answer: ")
    right = task.score(item, Response(f"It costs that.\nAnswer: ${number}.00"))
    assert (right.outcome, right.statistics["correct"]) == (item_result_pb2.OUTCOME_ANSWERED, 1.0)


def test_mmlu_pro_examples_are_the_subjects_own_and_reason_before_they_answer(tmp_path: Path) -> None:
    task = made(tmp_path, "mmlu_pro/computer_science", shots=4)
    validation = suite_rows.rows("TIGER-Lab/MMLU-Pro", "default", "validation", 56)
    own = [row for row in validation if row["category"] == "computer science"]
    shown = items(task)[0].messages
    for place, row in enumerate(own):
        question, answer = shown[2 * place].content, shown[2 * place + 1].content
        assert row["question"].strip() in question
        assert "think step by step" not in answer
        assert "The answer is" not in answer
        assert answer == f"Only one is {row['options'][row['answer_index']]}.\nAnswer: {row['answer']}"


def test_mmlu_pro_offers_as_many_letters_as_options(tmp_path: Path) -> None:
    own = [row for row in rows("mmlu_pro/math") if row["category"] == "math"]
    for item, row in zip(items(made(tmp_path, "mmlu_pro/math")), own, strict=True):
        assert len(item.labels) == len(row["options"])
        assert item.reference == row["answer"]


def test_arc_options_numbered_1_to_4_are_lettered(tmp_path: Path) -> None:
    found = rows("arc/easy")
    assert any(row["answerKey"].isdigit() for row in found)
    for item, row in zip(items(made(tmp_path, "arc/easy")), found, strict=True):
        assert "ABCDE".index(item.reference) == row["choices"]["label"].index(row["answerKey"])


def test_hellaswag_scene_is_free_of_marks(tmp_path: Path) -> None:
    for item in items(made(tmp_path, "hellaswag/hellaswag", LOGLIKELIHOOD)):
        assert "[" not in item.context + "".join(item.choices)


def test_bbh_option_is_named_by_its_letter_or_its_text(tmp_path: Path) -> None:
    task = made(tmp_path, "bbh/snarks")
    for item in items(task):
        (letter,) = item.answers
        bracketed, text = f"({letter})", item.fields[letter]
        for answer in (bracketed, letter, f"{letter.lower()})", f"{letter}.", f"{bracketed} {text}", text, f"{text}."):
            assert task.score(item, Response(f"Answer: {answer}")).statistics["correct"] == 1, answer
        other = "B" if letter == "A" else "A"
        for answer in (f"({other})", other, f"({other}) {text}", f"{letter}nother one", "Z"):
            assert task.score(item, Response(f"Answer: {answer}")).statistics["correct"] == 0, answer


@pytest.mark.parametrize(
    ("task", "right", "wrong"),
    [
        ("dyck_languages", [") } ]", ")}]"], ["} ) ]", ") }"]),
        ("word_sorting", ["anvil kettle", "Anvil, kettle.", "anvil  kettle"], ["kettle anvil", "anvil"]),
        ("multistep_arithmetic_two", ["-8", "-8.0", "−8"], ["8", "-80"]),
        ("boolean_expressions", ["True", "true"], ["False"]),
    ],
)
def test_bbh_answers_are_compared_by_what_they_mean(
    tmp_path: Path, task: str, right: list[str], wrong: list[str]
) -> None:
    made_task = made(tmp_path, f"bbh/{task}")
    reference = {"dyck_languages": ") } ]", "word_sorting": "anvil kettle", "boolean_expressions": "True"}.get(
        task, "-8"
    )
    item = next(iter(items(made_task)))
    item = Item(0, item.messages, reference, "", "", fields=item.fields, answers=(reference,))
    for answers, expected in ((right, 1.0), (wrong, 0.0)):
        for answer in answers:
            scored = made_task.score(item, Response(f"First this, then that.\nAnswer: {answer}"))
            assert scored.statistics["correct"] == expected, answer
