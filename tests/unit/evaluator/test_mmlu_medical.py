"""MMLU and the medical suite: what is asked, of which items, with which examples."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest

from services.evaluator.catalogue import Catalogue
from services.evaluator.tasks.base import Response
from services.evaluator.tasks.pubmedqa_test import TEST_IDS
from tests.unit.evaluator import every_task, glue_rows
from touchstone.v1 import job_pb2, suite_pb2

GENERATE, LOGLIKELIHOOD = suite_pb2.MODE_GENERATE, suite_pb2.MODE_LOGLIKELIHOOD


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return Catalogue(every_task.write_mirror(tmp_path_factory.mktemp("mirror")))


def _announced(name: str) -> suite_pb2.Suite:
    return next(suite for suite in Catalogue(None).suites() if suite.suite == name)


def test_mmlu_has_57_subjects_in_four_categories_and_14042_items() -> None:
    tasks = _announced("mmlu").tasks
    assert len(tasks) == 57
    assert sum(task.published_items for task in tasks) == 14_042
    assert Counter(task.category for task in tasks) == {
        "STEM": 18,
        "Humanities": 13,
        "Social sciences": 12,
        "Other": 14,
    }
    items: defaultdict[str, int] = defaultdict(int)
    for task in tasks:
        items[task.category] += task.published_items
    assert dict(items) == {"STEM": 3018, "Humanities": 4705, "Social sciences": 3077, "Other": 3242}
    assert {task.max_shots for task in tasks} == {5}


def test_medical_has_exams_research_and_six_subjects_of_mmlu() -> None:
    tasks = {task.task: task for task in _announced("medical").tasks}
    assert [task.published_items for task in tasks.values()] == [1273, 4183, 500, 135, 265, 144, 173, 100, 272]
    assert [metric.metric for metric in tasks["pubmedqa"].metrics] == ["accuracy", "macro_f1"]
    assert {task.category for task in tasks.values()} == {"Exams", "Research", "MMLU subjects"}


def test_question_is_asked_with_its_options_by_letter(catalogue: Catalogue) -> None:
    task = catalogue.task("mmlu", "high_school_us_history")
    item = next(task.items([0]))
    (message,) = item.messages
    assert message.content.startswith(
        "Answer this multiple-choice question about high school US history.\n\nQuestion: "
    )
    assert "\nA. " in message.content
    assert message.content.endswith(
        "\n\nEnd your reply with one line:\nAnswer: <letter>\nwhere <letter> is one of: A, B, C, D."
    )
    assert task.labels == ("A", "B", "C", "D")
    right = task.score(item, Response(f"Answer: {item.reference}. {item.fields[item.reference]}"))
    assert (right.prediction, right.statistics) == (item.reference, {"correct": 1.0})


def test_mmlu_is_continued_as_in_lm_eval(catalogue: Catalogue) -> None:
    shown = next(catalogue.task("mmlu", "college_physics", LOGLIKELIHOOD, 2).items([0]))
    alone = next(catalogue.task("mmlu", "college_physics", LOGLIKELIHOOD).items([0]))
    preamble = "The following are multiple choice questions (with answers) about college physics.\n\n"
    assert alone.context.startswith(preamble)
    question = alone.context.removeprefix(preamble)
    assert question == question.lstrip()
    assert question.endswith("\nAnswer:")
    assert question.splitlines()[1].startswith("A. ")
    examples = shown.context.removeprefix(preamble).removesuffix(question).split("\n\n")
    assert examples[-1] == ""
    assert [example[-10:-1] for example in examples[:2]] == ["\nAnswer: "] * 2
    assert alone.choices == shown.choices == (" A", " B", " C", " D")


def test_mmlu_shows_the_first_rows_of_dev_in_their_order(catalogue: Catalogue) -> None:
    task = catalogue.task("mmlu", "virology", GENERATE, 5)
    said = [message.content for message in next(task.items([0])).messages if message.role == "assistant"]
    assert said == [f"Answer: {item.reference}" for item in list(task.train())[:5]]


def test_pubmedqa_takes_the_official_test_and_its_examples_from_the_rest(catalogue: Catalogue) -> None:
    assert len(TEST_IDS) == 500
    task = catalogue.task("medical", "pubmedqa", GENERATE, 3)
    rows = task.size(), len(task.train())
    assert rows == (6, 6)
    assert {item.hash for item in task.items(range(6))}.isdisjoint(item.hash for item in task.train())
    assert task.labels == ("yes", "no", "maybe")


def test_subject_in_two_suites_asks_alike_and_is_another_item_set(catalogue: Catalogue) -> None:
    one, other = catalogue.task("mmlu", "anatomy"), catalogue.task("medical", "anatomy")
    first, second = next(one.items([0])), next(other.items([0]))
    assert first.messages == second.messages
    assert first.hash != second.hash


def test_options_that_do_not_fit_their_answer_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "cais" / "mmlu" / "anatomy"
    folder.mkdir(parents=True)
    (folder / "test.jsonl").write_text('{"question": "Which?", "choices": ["a", "b", "c"], "answer": 3}\n')
    with pytest.raises(Exception, match=r"cais/mmlu \(anatomy, test\) cannot be used: row 0 has 3 options"):
        Catalogue(tmp_path).task("mmlu", "anatomy").size()


REAL = pytest.mark.skipif(not glue_rows.REAL.is_dir(), reason=glue_rows.NO_REAL)


@REAL
@pytest.mark.parametrize("mode", [GENERATE, LOGLIKELIHOOD])
def test_real_mirror_runs_medical_without_medmcqa_and_mmlu_whole(mode: suite_pb2.Mode) -> None:
    catalogue = Catalogue(glue_rows.REAL)
    medical = catalogue.plan(job_pb2.SuiteWork(suite="medical"), mode, 32)
    assert [plan.task for plan in medical][:3] == ["medqa", "pubmedqa", "anatomy"]
    mmlu = catalogue.plan(job_pb2.SuiteWork(suite="mmlu", shots=5), mode, 32)
    assert len(mmlu) == 57
    assert all(plan.items == min(400, plan.published_items) for plan in mmlu)


@REAL
@pytest.mark.parametrize(
    ("suite", "name"), [("mmlu", "moral_scenarios"), ("medical", "medqa"), ("medical", "pubmedqa")]
)
def test_real_rows_are_asked_and_scored(suite: str, name: str) -> None:
    catalogue = Catalogue(glue_rows.REAL)
    for mode in (GENERATE, LOGLIKELIHOOD):
        task = catalogue.task(suite, name, mode)
        for item in task.items(range(task.size())):
            right = task.score(item, every_task.saying(task, item, item.reference))
            false = task.score(item, every_task.saying(task, item, every_task.wrong(task, item)))
            assert (right.statistics["correct"], false.statistics["correct"]) == (1.0, 0.0)
