"""Imported answers: which item each belongs to, what it says, and what a job over them comes to."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from services.errors import InvalidRequestError, NotFoundError
from services.evaluator.catalogue import Catalogue
from services.evaluator.datasets.opened import OpenDatasets
from services.evaluator.imports import answers, matching, plan
from services.evaluator.imports.store import ImportedRows
from services.evaluator.tasks.base import Item, Message, Task
from services.evaluator.units.hand import FaultError
from services.evaluator.units.load import Loaded, Loader
from services.evaluator.units.result import prompt_text
from services.results.imports import store as stored_by_results
from tests.unit.evaluator import glue_rows
from touchstone.v1 import item_result_pb2, job_pb2, results_service_pb2, suite_pb2, unit_pb2
from touchstone.v1.results_service_pb2 import ImportedAnswer, ImportedRun

LOGLIKELIHOOD = suite_pb2.MODE_LOGLIKELIHOOD
ERROR = item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR
ANSWERED = item_result_pb2.OUTCOME_ANSWERED
IMPORT = "6d7e0f4e-3f4c-4f0e-9d55-0a4f5a4d6f10"


class Store:
    """Imported answers in memory, of one task."""

    def __init__(
        self, task: str, given: Sequence[ImportedAnswer], mode: suite_pb2.Mode, hashes: Mapping[str, str]
    ) -> None:
        self._task, self._given = task, given
        self._run = ImportedRun(
            tool="lm_eval", tool_version="0.4.13", model="m", suite="glue", mode=mode, digest="d", prompt_hashes=hashes
        )

    async def run(self, import_id: str) -> results_service_pb2.GetImportResponse:
        rows = await self.rows(import_id, self._task)
        task = results_service_pb2.ImportedTask(task=self._task, items=len(rows.items), repeats=1)
        return results_service_pb2.GetImportResponse(run=self._run, owner="ann", tasks=[task])

    async def rows(self, import_id: str, task: str) -> ImportedRows:
        if import_id != IMPORT:
            raise NotFoundError("gone")
        first = [answer for answer in self._given if answer.repeat == 0]
        return ImportedRows([answer.item for answer in first], [number(answer) for answer in first])

    def pages(self, import_id: str, task: str) -> AsyncIterator[ImportedRows]:
        raise NotImplementedError

    async def answers(self, import_id: str, task: str, items: Sequence[int], repeat: int) -> list[ImportedAnswer]:
        if import_id != IMPORT:
            raise NotFoundError("gone")
        return [answer for answer in self._given if answer.item in items and answer.repeat == repeat]


def number(answer: ImportedAnswer) -> int:
    return matching.prompts_number(answer.prompt, [c.text for c in answer.continuations])


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    return Catalogue(glue_rows.write(tmp_path))


def logged(task: Task, indexes: Sequence[int], best: int = 0) -> list[ImportedAnswer]:
    """As a tool logs them that asks as we do; the choice number `best` is the likeliest."""
    return [
        ImportedAnswer(
            task=task.info.task,
            item=item.index,
            row=json.dumps({**item.fields, "idx": item.index}),
            prompt=item.context or prompt_text(item),
            continuations=[
                item_result_pb2.Continuation(text=choice, loglikelihood=-1.0 if place == best else -9.0)
                for place, choice in enumerate(item.choices)
            ],
            response=f"Answer: {item.reference}" if item.messages else "",
        )
        for item in task.items(indexes)
    ]


def spec(task: str, mode: suite_pb2.Mode = LOGLIKELIHOOD, import_id: str = IMPORT) -> job_pb2.JobSpec:
    return job_pb2.JobSpec(
        endpoint="lm_eval",
        model="m",
        mode=mode,
        suite=job_pb2.SuiteWork(suite="glue", tasks=[task]),
        reuse=job_pb2.Reuse(import_id=import_id),
    )


async def planned(
    catalogue: Catalogue, given: Sequence[ImportedAnswer], hashes: Mapping[str, str] | None = None
) -> tuple[job_pb2.TaskPlan, job_pb2.Receipt]:
    store = Store("rte", given, LOGLIKELIHOOD, hashes or {})
    (made,), receipt = await plan.plan(spec("rte"), store, catalogue, 32)
    return made, receipt


# -- planning ----------------------------------------------------------------------------------------------------------


async def test_a_log_of_all_rows_with_our_prompts_is_planned_as_our_own_run(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    own = catalogue.plan(job_pb2.SuiteWork(suite="glue", tasks=["rte"]), LOGLIKELIHOOD, 32)
    made, receipt = await planned(catalogue, logged(task, range(task.size())), {"rte": "f" * 64})
    assert [made] == own
    assert (receipt.endpoint_kind, receipt.server) == ("lm_eval", "lm_eval 0.4.13")


async def test_a_run_covers_the_rows_of_the_log_alone(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    made, _ = await planned(catalogue, logged(task, [1, 3]))
    assert (made.items, made.item_set) == (2, catalogue.chosen(task, [1, 3]).item_set)
    assert made.prompt_hash == task.prompt_hash()


@pytest.mark.parametrize(("hashes", "said"), [({"rte": "ab" * 32}, "ab" * 8), ({}, None)])
async def test_other_prompts_have_a_hash_of_their_own(
    catalogue: Catalogue, hashes: dict[str, str], said: str | None
) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    given = logged(task, [0, 1])
    given[1].prompt += " "
    made, _ = await planned(catalogue, given, hashes)
    assert made.prompt_hash != task.prompt_hash()
    assert said in (None, made.prompt_hash)


async def test_the_same_prompt_with_other_continuations_is_another_prompt(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    given = logged(task, [0])
    given[0].continuations[0].text = " Yes"
    made, _ = await planned(catalogue, given)
    assert made.prompt_hash != task.prompt_hash()


async def test_rows_that_the_data_does_not_have_are_left_out(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    beyond = logged(task, [0])
    beyond[0].item = task.size()
    made, _ = await planned(catalogue, [*logged(task, [0]), *beyond])
    assert made.items == 1
    with pytest.raises(InvalidRequestError, match="No row of the import is in the data"):
        await planned(catalogue, beyond)


async def test_units_are_loaded_by_the_rows_of_the_log(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    loader = Loader(catalogue, Store("rte", logged(task, [1, 3]), LOGLIKELIHOOD, {}), OpenDatasets(None))
    item_set = catalogue.chosen(task, [1, 3]).item_set
    unit = unit_pb2.Unit(spec=spec("rte"), task="rte", start=1, stop=2, item_set=item_set)
    assert [item.index for _, _, item in (await loader.load(unit)).items] == [3]
    unit.spec.reuse.import_id = "gone"
    with pytest.raises(FaultError):
        await loader.load(unit)


def test_both_services_number_prompts_alike() -> None:
    for prompt, continuations in (("", []), ("é", [" a", " b"]), ("x", ["\x00"])):
        assert matching.prompts_number(prompt, continuations) == stored_by_results.prompts_number(prompt, continuations)


# -- answers -----------------------------------------------------------------------------------------------------------


async def results(
    task: Task, given: Sequence[ImportedAnswer], indexes: Sequence[int]
) -> list[item_result_pb2.ItemResult]:
    loaded = Loaded(task, [(place, 0, item) for place, item in enumerate(task.items(indexes))])
    found = await answers.results(Store("rte", given, task.mode, {}), IMPORT, "rte", loaded)
    return [found[place] for place in range(len(indexes))]


async def test_answers_are_scored_by_our_scorers(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    for best in (0, 1):
        for result, item in zip(
            await results(task, logged(task, [0, 1, 2], best), [0, 1, 2]), task.items([0, 1, 2]), strict=True
        ):
            assert (result.outcome, result.prediction) == (ANSWERED, task.labels[best])
            assert result.statistics["correct"] == (item.reference == task.labels[best])
            assert (result.prompt, result.prompt_hash) == (item.context, item.prompt_hash)
            assert (result.calls, result.reused, result.item_hash) == (0, True, item.hash)


async def test_continuations_are_matched_by_text_and_else_by_order(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    (turned,) = logged(task, [0])
    turned.continuations.reverse()
    assert (await results(task, [turned], [0]))[0].prediction == task.labels[0]
    (spaced,) = logged(task, [0])
    for continuation in spaced.continuations:
        continuation.text = f"  {continuation.text.strip()}  "
    spaced.continuations.reverse()
    assert (await results(task, [spaced], [0]))[0].prediction == task.labels[0]
    (others,) = logged(task, [0], best=1)
    for place, continuation in enumerate(others.continuations):
        continuation.text = f" {place}"
    assert (await results(task, [others], [0]))[0].prediction == task.labels[1]


async def test_an_answer_without_all_choices_is_an_error_and_never_scored(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    (given,) = logged(task, [0])
    del given.continuations[1]
    (result,) = await results(task, [given], [0])
    assert (result.outcome, result.error) == (ERROR, "The log has 1 continuations, the item 2 choices.")
    assert not result.statistics


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e308])
async def test_a_log_likelihood_that_cannot_be_is_an_error_of_its_item(catalogue: Catalogue, value: float) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    lied, honest = logged(task, [0, 1])
    lied.continuations[0].loglikelihood = value
    honest.continuations[1].loglikelihood = float("-inf")
    first, second = await results(task, [lied, honest], [0, 1])
    assert (first.outcome, first.error) == (ERROR, "The log has a log-likelihood that cannot be.")
    assert second.outcome == ANSWERED


async def test_what_the_log_lacks_or_failed_is_an_error_with_the_reason(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    (failed,) = logged(task, [1])
    failed.error = "Inspect had an error: boom"
    absent, broken = await results(task, [failed], [0, 1])
    assert (absent.outcome, absent.error) == (ERROR, "The log has no answer to it.")
    assert (broken.outcome, broken.error) == (ERROR, "Inspect had an error: boom")


async def test_an_answer_to_another_row_is_an_error_and_never_scored(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    shifted = logged(task, [1, 2])
    for answer in shifted:
        answer.item -= 1
    for result in await results(task, shifted, [0, 1]):
        assert result.outcome == ERROR
        assert "row is another one" in result.error
        assert not result.statistics


async def test_generated_answers_are_read_by_our_extraction(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte")
    given = logged(task, [0, 1])
    given[1].response, given[1].finish_reason = "It may well", "max_tokens"
    right, cut = await results(task, given, [0, 1])
    assert (right.outcome, right.statistics["correct"]) == (ANSWERED, 1.0)
    assert cut.outcome == item_result_pb2.OUTCOME_OUTPUT_TRUNCATED


async def test_an_import_that_is_gone_fails_the_job_with_the_stores_sentence(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    loaded = Loaded(task, [(0, 0, next(iter(task.items([0]))))])
    with pytest.raises(FaultError, match="gone"):
        await answers.results(Store("rte", [], LOGLIKELIHOOD, {}), "other", "rte", loaded)


# -- belonging ---------------------------------------------------------------------------------------------------------

QUESTION = Item(
    index=0,
    messages=(Message("user", "our own words"),),
    reference="B",
    hash="h",
    prompt_hash="p",
    fields={"question": "Which one is it?", "A": "the first", "B": "the second"},
)


def answer(row: Any = None, prompt: str = "") -> ImportedAnswer:
    return ImportedAnswer(row=row if isinstance(row, str) else json.dumps(row) if row else "", prompt=prompt)


@pytest.mark.parametrize(
    "given",
    [
        answer({"question": " Which one  is it?\n", "choices": ["the first", "the second"]}),
        answer({"sent1": "Which one is it?", "ending0": "the first", "ending1": "the second"}),
        answer({"metadata": {"deep": [{"q": "Which one is it?"}]}}, "A) the first B) the second"),
        answer(prompt="Q: Which one is it? A: the first, B: the second"),
        answer({"question": "other"}, "user:\nour own words"),
    ],
    ids=["column", "other-names", "nested", "prompt-alone", "the-very-prompt"],
)
def test_an_answer_belongs_whose_row_or_prompt_has_all_our_texts(given: ImportedAnswer) -> None:
    assert matching.disagreement(QUESTION, given) == ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            answer({"question": "Who?", "choices": ["the first", "the second"]}),
            "its question is “Who?”, not “Which one",
        ),
        (
            answer({"question": "Which one is it?", "choices": ["the first", "a third"]}),
            "“the second” (B) is not in it",
        ),
        (answer("{broken"), "“Which one is it?” (question) is not in it"),
        (answer("[" * 100_000), "is not in it"),
        (answer({"question": "Which one is it?" + " indeed" * 40}), "…”, not “Which one is it?”"),
        (answer(), "is not in it"),
        (
            answer({"question": "Which one is it?"}, "Which one is it? A: the second B: the first"),
            "options stand in another order",
        ),
    ],
    ids=["other-column", "other-option", "broken", "deep", "longer", "nothing", "shuffled"],
)
def test_an_answer_to_another_row_says_what_differs(given: ImportedAnswer, said: str) -> None:
    assert said in matching.disagreement(QUESTION, given)


def test_a_row_without_texts_belongs_by_its_prompt_alone() -> None:
    bare = Item(index=0, messages=(Message("user", "words"),), reference="1", hash="h", prompt_hash="p")
    assert matching.disagreement(bare, answer(prompt="user:\nwords")) == ""
    assert "cannot be told" in matching.disagreement(bare, answer({"a": 1}, "words"))
