"""MMLU and the medical suite: what is asked, of which items, with which examples."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.evaluator.catalogue import Catalogue
from services.evaluator.items.task import Response
from tests import real_rows
from tests.unit.evaluator import every_task
from tests.unit.evaluator.tasks.tasks import GENERATE, LOGLIKELIHOOD, announced
from touchstone.v1 import job_pb2, suite_pb2


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return Catalogue(every_task.write_mirror(tmp_path_factory.mktemp("mirror")))


def test_medical_has_exams_research_and_six_subjects_of_mmlu() -> None:
    tasks = {task.task: task for task in announced("medical").tasks}
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


REAL = pytest.mark.skipif(not real_rows.folder(), reason=real_rows.absent())


@REAL
@pytest.mark.parametrize("mode", [GENERATE, LOGLIKELIHOOD])
def test_real_mirror_runs_medical_without_medmcqa_and_mmlu_whole(mode: suite_pb2.Mode) -> None:
    catalogue = Catalogue(real_rows.folder())
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
    catalogue = Catalogue(real_rows.folder())
    for mode in (GENERATE, LOGLIKELIHOOD):
        task = catalogue.task(suite, name, mode)
        for item in task.items(range(task.size())):
            right = task.score(item, every_task.saying(task, item, item.reference))
            false = task.score(item, every_task.saying(task, item, every_task.wrong(task, item)))
            assert (right.statistics["correct"], false.statistics["correct"]) == (1.0, 0.0)
