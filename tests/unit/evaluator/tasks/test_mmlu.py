"""MMLU asks as published and as lm_eval does."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from services.evaluator.catalogue import Catalogue
from tests.unit.evaluator import every_task
from tests.unit.evaluator.tasks.tasks import GENERATE, LOGLIKELIHOOD, announced


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return Catalogue(every_task.write_mirror(tmp_path_factory.mktemp("mirror")))


def test_mmlu_has_57_subjects_in_four_categories_and_14042_items() -> None:
    tasks = announced("mmlu").tasks
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
