"""Answers of a file: the items that they are found to belong to, and what a job over them comes to."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from services.errors import InvalidRequestError, NotFoundError
from services.evaluator.catalogue import Catalogue
from services.evaluator.datasets.opened import OpenDatasets
from services.evaluator.datasets.task import DatasetTask
from services.evaluator.imports import item_texts, matching
from services.evaluator.imports.finding import Found, find
from services.evaluator.imports.store import ImportedRows
from services.evaluator.item_result import prompt_text
from services.evaluator.items.task import Task
from services.evaluator.planning import datasets, imports
from services.evaluator.stored import rescorer
from services.evaluator.units.unit_loader import Loader
from tests.dataset_store import DATASET_ID, MemoryStore, row
from touchstone.v1 import item_result_pb2, job_pb2, results_service_pb2, unit_pb2
from touchstone.v1.results_service_pb2 import ImportedAnswer, ImportedRun

IMPORT = "6d7e0f4e-3f4c-4f0e-9d55-0a4f5a4d6f10"
QUESTIONS = [f"Ann has {n} pears and eats one.  How many are left?" for n in range(2, 8)]


class Store:
    """Answers in memory, numbered in their order."""

    def __init__(self, task: str, given: Sequence[ImportedAnswer]) -> None:
        self._task, self._given = task, list(given)
        for number, answer in enumerate(self._given):
            answer.item = number

    async def run(self, import_id: str) -> results_service_pb2.GetImportResponse:
        task = results_service_pb2.ImportedTask(task=self._task, items=len(self._given), repeats=1)
        return results_service_pb2.GetImportResponse(run=ImportedRun(tool="imported", model="m"), tasks=[task])

    async def rows(self, import_id: str, task: str) -> ImportedRows:
        raise NotImplementedError

    async def pages(self, import_id: str, task: str) -> AsyncIterator[ImportedRows]:
        if import_id != IMPORT:
            raise NotFoundError("gone")
        for answer in self._given:
            prompt = matching.prompts_number(answer.prompt, ())
            yield ImportedRows([answer.item], [prompt], [answer.row])

    async def answers(self, import_id: str, task: str, items: Sequence[int], repeat: int) -> list[ImportedAnswer]:
        return [answer for answer in self._given if answer.item in items]


def line(response: str = "Answer: 1", **told: str) -> ImportedAnswer:
    return ImportedAnswer(row=json.dumps(told), prompt=told.get("prompt", ""), response=response)


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    folder = tmp_path / "openai/gsm8k/main"
    folder.mkdir(parents=True)
    rows = [{"question": question, "answer": f"#### {n}"} for n, question in enumerate(QUESTIONS, start=1)]
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Catalogue(tmp_path)


@pytest.fixture
def task(catalogue: Catalogue) -> Task:
    return catalogue.task("gsm8k", "gsm8k")


async def found(task: Task | DatasetTask, *given: ImportedAnswer) -> Found:
    return await find(Store("gsm8k", given), IMPORT, "gsm8k", task)


def suite_job() -> job_pb2.JobSpec:
    return job_pb2.JobSpec(
        endpoint="imported",
        model="m",
        mode="MODE_GENERATE",
        suite=job_pb2.SuiteWork(suite="gsm8k", tasks=["gsm8k"]),
        reuse=job_pb2.Reuse(import_id=IMPORT),
    )


# -- finding -----------------------------------------------------------------------------------------------------------


async def test_lines_name_their_items_by_number_question_or_prompt(task: Task) -> None:
    (own,) = task.items([3])
    there = await found(
        task,
        line(id="5"),
        line(id="gsm8k-main-test-#0"),
        line(question=f" {QUESTIONS[2]}\n".replace("  ", " ")),
        line(prompt=prompt_text(own)),
        line(id="q_four", prompt=own.messages[-1].content.replace("pears", "\tpears")),
        line(id="nobody's", question="What is this?"),
        line(id="6"),
        line(id="model-v1.5"),
    )
    assert there.answers == {0: 1, 2: 2, 3: 3, 5: 0}
    assert list(there.answers) == sorted(there.answers)
    counts = there.counts
    assert (counts.answers, counts.repeated, counts.unmatched) == (8, 1, 3)
    assert counts.unmatched_example == "id “nobody's”"


async def test_prompts_are_ours_unknown_or_others(task: Task) -> None:
    own = [prompt_text(item) for item in task.items(range(2))]
    ours = await found(task, line(prompt=own[0]), line(prompt=own[1]))
    some = await found(task, line(prompt=own[0]), line(id="1"))
    one, two = await found(task, line(id="1")), await found(task, line(id="2"))
    theirs = [await found(task, line(id="1", prompt=f"Q: {QUESTIONS[1]} {end}")) for end in ("A:", "B:")]
    assert ours.prompt_hash == ""
    assert one.prompt_hash == two.prompt_hash
    assert len({ours.prompt_hash, some.prompt_hash, one.prompt_hash, *(each.prompt_hash for each in theirs)}) == 5


# -- jobs over a suite -------------------------------------------------------------------------------------------------


async def test_a_file_with_every_item_is_a_whole_run_whatever_its_order(catalogue: Catalogue) -> None:
    (whole,) = catalogue.plan(job_pb2.SuiteWork(suite="gsm8k"), suite_job().mode, 32)
    store = Store("gsm8k", [line(id=str(n)) for n in reversed(range(len(QUESTIONS)))])
    (made,), receipt = await imports.plan(suite_job(), store, catalogue, 32)
    assert (made.item_set, made.items) == (whole.item_set, len(QUESTIONS))
    assert made.prompt_hash != whole.prompt_hash
    assert (receipt.endpoint_kind, receipt.server, receipt.import_counts.answers) == ("imported", "imported", 6)


async def test_a_file_that_is_about_something_else_is_refused_with_what_it_says(catalogue: Catalogue) -> None:
    with pytest.raises(InvalidRequestError, match=r"No line .* matches an item of gsm8k.* id “x”.*Give each line"):
        await imports.plan(suite_job(), Store("gsm8k", [line(id="x")]), catalogue, 32)


async def test_each_item_gets_the_answer_that_names_it_and_no_other(catalogue: Catalogue) -> None:
    given = [
        line(id="4", response="Answer: 5"),
        line(id="1", response="Answer: 2", reference="# 9\n#### 9"),
        line(id="2", response="Answer: 3", question="Another question?"),
        line(id="0", response="Answer: 7", reference="#### 1"),
    ]
    store = Store("gsm8k", given)
    (made,), _ = await imports.plan(suite_job(), store, catalogue, 32)
    loader = Loader(catalogue, store, OpenDatasets(None))
    unit = unit_pb2.Unit(spec=suite_job(), task="gsm8k", start=0, stop=4, item_set=made.item_set)
    loaded = await loader.load(unit)
    results = await rescorer.results(store, IMPORT, "gsm8k", loaded)
    first, second, third, fourth = (results[place] for place in range(4))
    assert [result.item for result in (first, second, third, fourth)] == [0, 1, 2, 4]
    assert (first.prediction, first.statistics["correct"]) == ("7", 0.0)
    assert (fourth.prediction, fourth.statistics["correct"], fourth.reused) == ("5", 1.0, True)
    assert fourth.prompt == f"question:\n{QUESTIONS[4]}"
    assert {second.outcome, third.outcome} == {item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR}
    assert "its reference is “# 9 #### 9”, not “2”" in second.error
    assert "it says “Another question?”" in third.error


@pytest.mark.parametrize(
    ("told", "belongs"),
    [
        ({"question": "The hut is old."}, True),
        ({"prompt": "Given: The hut is old and has no roof. Then: The hut is old."}, True),
        ({"question": "The hut is new."}, False),
        ({"reference": "entailment"}, True),
        ({"reference": "not_entailment"}, False),
        ({"reference": "1"}, True),
    ],
)
def test_what_a_line_says_is_held_against_any_text_of_its_item(
    tmp_path: Path, told: dict[str, str], belongs: bool
) -> None:
    folder = tmp_path / "nyu-mll/glue/rte"
    folder.mkdir(parents=True)
    row = {"sentence1": "The hut is old and has no roof.", "sentence2": "The hut is old.", "label": 0, "idx": 0}
    (folder / "validation.jsonl").write_text(json.dumps(row) + "\n")
    task = Catalogue(tmp_path).task("glue", "rte")
    (item,) = task.items([0])
    assert (item_texts.contradiction(task, item, line(id="0", **told)) == "") is belongs


# -- jobs over a dataset -----------------------------------------------------------------------------------------------


@pytest.fixture
def memory() -> MemoryStore:
    memory = MemoryStore()
    memory.add([row(n, f"{n} and 1?", reference=str(n + 1)) for n in range(6)], shard_rows=2)
    return memory


def dataset_job() -> job_pb2.JobSpec:
    return job_pb2.JobSpec(
        endpoint="imported",
        model="m",
        dataset=job_pb2.DatasetWork(dataset_id=DATASET_ID),
        reuse=job_pb2.Reuse(import_id=IMPORT),
    )


async def test_a_file_for_a_dataset_names_its_rows_by_their_ids_or_prompts(memory: MemoryStore) -> None:
    opened = OpenDatasets(memory)
    task = await opened.open(dataset_job().dataset)
    given = [
        line(id="row-4", response="5"),
        line(prompt="2  and 1?", response="4"),
        line(id="3", response="x"),
    ]
    store = Store("rows", given)
    (made,), receipt = await imports.plan_rows(dataset_job(), store, task, 32)
    assert (made.items, made.published_items, receipt.import_counts.unmatched) == (2, 6, 1)
    assert made.item_set not in ("", task.item_set)
    unit = unit_pb2.Unit(spec=dataset_job(), task="rows", start=0, stop=2, item_set=made.item_set)
    loaded = await Loader(Catalogue(None), store, opened).load(unit)
    results = await rescorer.results(store, IMPORT, "rows", loaded)
    assert [(results[n].custom_id, results[n].response, results[n].statistics["correct"]) for n in range(2)] == [
        ("row-2", "4", 0.0),
        ("row-4", "5", 1.0),
    ]
    assert results[1].prompt == "user:\n4 and 1?"


async def test_a_file_with_every_row_is_a_run_like_any_other(memory: MemoryStore) -> None:
    task = await OpenDatasets(memory).open(dataset_job().dataset)
    store = Store("rows", [line(id=f"row-{n}") for n in (5, 1, 0, 2, 4, 3)])
    (made,), _ = await imports.plan_rows(dataset_job(), store, task, 32)
    assert (made.item_set, made.prompt_hash) == (task.item_set, (await plan_of(task)).prompt_hash)


async def plan_of(task: DatasetTask) -> job_pb2.TaskPlan:
    return await datasets.plan(dataset_job(), task, 32, None)


async def test_rows_that_ask_the_same_are_told_apart_by_ids_alone() -> None:
    memory = MemoryStore()
    memory.add([row(n, "Why?") for n in range(3)])
    task = await OpenDatasets(memory).open(dataset_job().dataset)
    there = await find(Store("rows", [line(prompt="Why?"), line(id="row-1", prompt="Why?")]), IMPORT, "rows", task)
    assert (there.answers, there.counts.unmatched) == ({1: 1}, 1)
