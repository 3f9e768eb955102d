"""Which of our tasks a log's task is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.client.importing.imports import KNOWN, answers, log
from touchstone_client.errors import InvalidError
from touchstone_client.importing.names import resolve


@pytest.mark.parametrize(
    ("task", "suite", "found"),
    [
        ("rte", "", ("glue", "rte")),
        ("mnli_mismatch", "", ("glue", "mnli_mismatched")),
        ("sglue_rte", "", ("superglue", "rte")),
        ("mmlu_anatomy", "", ("mmlu", "anatomy")),
        ("mmlu_anatomy", "medical", ("medical", "anatomy")),
        ("medqa_4options", "", ("medical", "medqa")),
        ("mmlu_pro_computer_science", "", ("mmlu_pro", "computer_science")),
        ("rte", "superglue", ("superglue", "rte")),
        ("virology", "mmlu", ("mmlu", "virology")),
    ],
)
def test_known_tasks_are_found(tmp_path: Path, task: str, suite: str, found: tuple[str, str]) -> None:
    chosen, targets = resolve([log(tmp_path, task)], KNOWN, suite, {})
    assert (chosen, [target.task for target in targets[task]]) == (found[0], [found[1]])


def test_a_subject_of_two_suites_follows_the_others(tmp_path: Path) -> None:
    logs = [log(tmp_path, "mmlu_anatomy"), log(tmp_path, "medqa_4options")]
    assert resolve(logs, KNOWN, "", {})[0] == "medical"


@pytest.mark.parametrize(
    ("tasks", "suite", "named", "said"),
    [
        (["my_task"], "", {}, "name it: --task my_task=SUITE/TASK"),
        (["mmlu_stem"], "", {}, "--task mmlu_stem=SUITE/TASK"),
        (["rte", "mmlu_anatomy"], "", {}, "several suites: glue, mmlu"),
        (["mmlu_anatomy"], "glue", {}, "is a task of mmlu, not of glue"),
        (["rte"], "gleu", {}, "Suite gleu not found"),
        (["my_task"], "", {"my_task": "rte"}, "name the suite too, as in my_task=SUITE/rte"),
        (["my_task"], "", {"my_task": "glue/rtee"}, "suite glue has no task rtee. Tasks: mnli"),
        (["rte"], "", {"other": "glue/rte"}, "None of the logs is of other"),
        (["rte", "my_task"], "", {"my_task": "glue/rte"}, "rte and my_task are both rte"),
    ],
)
def test_what_cannot_be_told_is_said_with_the_remedy(
    tmp_path: Path, tasks: list[str], suite: str, named: dict[str, str], said: str
) -> None:
    with pytest.raises(InvalidError) as refused:
        resolve([log(tmp_path, task) for task in tasks], KNOWN, suite, named)
    assert said in refused.value.message


def test_a_task_of_any_name_is_imported_as_the_user_says(tmp_path: Path) -> None:
    found = answers([log(tmp_path, "my_task")], my_task="glue/sst2")
    assert [answer.task for answer in found] == ["sst2"]
    assert answers([log(tmp_path, "other")], "glue", other="sst2")[0].task == "sst2"
