"""An answer belongs to its row."""

from __future__ import annotations

import pytest

from services.evaluator.catalogue import Catalogue
from services.evaluator.imports import matching
from services.evaluator.items.task import Item, Message
from services.results.imports import store as stored_by_results
from tests.unit.evaluator.imports.logged import LOGLIKELIHOOD, answer, logged, results
from touchstone.v1.results_service_pb2 import ImportedAnswer


def test_both_services_number_prompts_alike() -> None:
    for prompt, continuations in (("", []), ("é", [" a", " b"]), ("x", ["\x00"])):
        assert matching.prompts_number(prompt, continuations) == stored_by_results.prompts_number(prompt, continuations)


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


QUESTION = Item(
    index=0,
    messages=(Message("user", "our own words"),),
    reference="B",
    hash="h",
    prompt_hash="p",
    fields={"question": "Which one is it?", "A": "the first", "B": "the second"},
)


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
            "“the second” (B) is missing",
        ),
        (answer("{broken"), "“Which one is it?” (question) is missing"),
        (answer("[" * 100_000), "is missing"),
        (answer({"question": "Which one is it?" + " indeed" * 40}), "…”, not “Which one is it?”"),
        (answer(), "is missing"),
        (
            answer({"question": "Which one is it?"}, "Which one is it? A: the second B: the first"),
            "options in a different order",
        ),
    ],
    ids=["other-column", "other-option", "broken", "deep", "longer", "nothing", "shuffled"],
)
def test_an_answer_to_another_row_says_what_differs(given: ImportedAnswer, said: str) -> None:
    assert said in matching.disagreement(QUESTION, given)


def test_a_row_without_texts_belongs_by_its_prompt_alone() -> None:
    bare = Item(index=0, messages=(Message("user", "words"),), reference="1", hash="h", prompt_hash="p")
    assert matching.disagreement(bare, answer(prompt="user:\nwords")) == ""
    assert "no texts to compare" in matching.disagreement(bare, answer({"a": 1}, "words"))
