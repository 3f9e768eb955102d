"""docs/suites.md: its example works as it stands, and it names every suite and task."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType

import pytest

from services.evaluator.data.reader import Reader
from services.evaluator.items.task import Continuation, Response
from services.evaluator.suites import shipped
from services.evaluator.tasks.kinds.multiple_choice import MultipleChoice
from tests.parity.compared import NOT_COMPARED
from touchstone.v1 import suite_pb2

TEXT = (Path(__file__).parents[3] / "docs" / "suites.md").read_text()
TABLE = TEXT.partition("\n## ")[0]


def example() -> ModuleType:
    (source,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    module = ModuleType("example_suite")
    exec(compile(source, "docs/suites.md", "exec"), module.__dict__)
    return module


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    rows = [
        {
            "question_stem": f"On day {day} a kettle is put on the fire because",
            "choices": {"text": ["it is cold", "tea is wanted", "it rains", "it is red"], "label": list("ABCD")},
            "answerKey": "B",
        }
        for day in range(4)
    ]
    for split in ("test", "train"):
        file = tmp_path / "allenai/openbookqa/main" / f"{split}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows[:: 1 if split == "test" else -1]))
    return tmp_path


def test_example_is_a_suite_in_both_modes(mirror: Path) -> None:
    module = example()
    assert {"SUITE", "TITLE", "DESCRIPTION", "TASKS"} <= vars(module).keys()
    (definition,) = module.TASKS
    assert isinstance(definition, MultipleChoice)
    generated = definition.task_on(Reader(mirror), suite_pb2.MODE_GENERATE, 1)
    item = next(iter(generated.items([0])))
    assert "B. tea is wanted" in item.messages[-1].content
    assert generated.score(item, Response("It boils.\nAnswer: B")).statistics["correct"] == 1
    scored = definition.task_on(Reader(mirror), suite_pb2.MODE_LOGLIKELIHOOD)
    item = next(iter(scored.items([0])))
    likely = tuple(Continuation(choice, -1.0 if "tea" in choice else -9.0, 3) for choice in item.choices)
    assert scored.score(item, Response("", continuations=likely)).prediction == "B"


@pytest.mark.parametrize("suite", shipped())
def test_every_suite_is_listed_with_its_tasks_and_items(suite: str) -> None:
    found = shipped()[suite]
    row = re.search(rf"^\| `{suite}` \|.*?(?=^\| `|\Z)", TABLE, re.MULTILINE | re.DOTALL)
    assert row is not None
    listed = row.group()
    if suite not in ("mmlu", "medical"):
        for definition in found.definitions:
            assert re.search(rf"\b{definition.task}\b", listed), definition.task
    single = {f"{definition.published_items:,}" for definition in found.definitions}
    whole = f"{sum(definition.published_items for definition in found.definitions):,}"
    assert whole in listed or all(items in listed for items in single) or suite == "medical"


def test_what_parity_leaves_out_is_listed_with_the_reason() -> None:
    listed = TEXT.partition("Not compared")[2]
    for name in NOT_COMPARED:
        assert name.partition("/")[0 if name.startswith("demo/") else 2] in listed, name
