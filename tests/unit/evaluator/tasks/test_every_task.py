"""What holds for every task of every suite, in both modes, with and without few-shot examples."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.errors import InvalidRequestError
from services.evaluator.catalogue import Catalogue
from services.evaluator.items.task import Item, Response, Scored, Task
from services.evaluator.providers.baseline import BAG_OF_WORDS, RANDOM, BaselineProvider
from services.evaluator.providers.protocol.provider import Request
from services.evaluator.suites import shipped
from services.words.suites import MAJORITY
from tests.parts import NIGHTLY
from tests.unit.evaluator.every_task import SUITES, name, saying, tasks, write_mirror, wrong
from touchstone.v1 import item_result_pb2, job_pb2, suite_pb2

ANSWERED = item_result_pb2.OUTCOME_ANSWERED
GENERATE, LOGLIKELIHOOD = suite_pb2.MODE_GENERATE, suite_pb2.MODE_LOGLIKELIHOOD
MOST = 40
"""Items looked at of a task: enough for every rule, and the bundled data has four hundred."""


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return Catalogue(write_mirror(tmp_path_factory.mktemp("mirror")))


def _items(task: Task) -> list[Item]:
    return list(task.items(range(min(MOST, task.size()))))


def _scores(task: Task, items: Sequence[Item]) -> list[Scored]:
    """Of a model that is right two times in three."""
    found = []
    for item in items:
        right = random.Random(item.hash).random() < 2 / 3
        found.append(task.score(item, saying(task, item, item.reference if right else wrong(task, item))))
    return found


@settings(max_examples=5 if NIGHTLY else 3, deadline=None)
@given(cuts=st.sets(st.floats(0, 1), max_size=6))
@pytest.mark.parametrize("suite", SUITES)
def test_any_cut_into_units_gives_the_same_items_and_scores(catalogue: Catalogue, suite: str, cuts: set[float]) -> None:
    for task in tasks(catalogue, suite):
        size = min(MOST, task.size())
        places = sorted({0, size, *(int(cut * size) for cut in cuts)})
        parts = [list(task.items(range(start, stop))) for start, stop in pairwise(places)]
        whole = _items(task)
        assert [item for part in parts for item in part] == whole, name(task)
        assert [scored for part in parts for scored in _scores(task, part)] == _scores(task, whole), name(task)
        some = list(range(size))[:: max(1, len(cuts))][::-1]
        assert list(task.items(some)) == [whole[index] for index in some], name(task)


@pytest.mark.parametrize("suite", SUITES)
def test_oracle_is_always_right_and_its_inverse_never(catalogue: Catalogue, suite: str) -> None:
    for task in tasks(catalogue, suite):
        for item in _items(task):
            right = task.score(item, saying(task, item, item.reference))
            assert (right.outcome, right.prediction) == (ANSWERED, item.reference), name(task)
            if task.scale is not None:
                assert right.statistics["value"] == right.statistics["target"] == float(item.reference)
                continue
            false = task.score(item, saying(task, item, wrong(task, item)))
            assert false.outcome == ANSWERED, name(task)
            for statistic, value in right.statistics.items():
                if statistic not in item.statistics:
                    assert (value, false.statistics[statistic]) == (1.0, 0.0), f"{name(task)}: {statistic}"


@pytest.mark.parametrize("suite", SUITES)
def test_nonsense_and_the_prompt_itself_are_unparsed(catalogue: Catalogue, suite: str) -> None:
    texts = ("", "Bananas.", "It depends on the context.", "\0\0", "<think>", "I cannot tell from this.")
    for task in tasks(catalogue, suite):
        if task.mode == GENERATE:
            for item in _items(task)[:12]:
                # Of a task whose answer is any text, a word by itself is an answer.
                any_text = "Answer: <text>" in item.messages[-1].content
                for text in (*texts[2 * any_text :], item.messages[-1].content):
                    scored = task.score(item, Response(text))
                    assert scored.outcome == item_result_pb2.OUTCOME_UNPARSED, f"{name(task)}: {text!r}"
                    assert (scored.prediction, scored.statistics.get("correct", 0.0)) == ("", 0.0), name(task)


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        (Response("", refused=True), item_result_pb2.OUTCOME_REFUSED),
        (Response("", input_truncated=True), item_result_pb2.OUTCOME_INPUT_TRUNCATED),
        (Response("Well,", finish_reason="length"), item_result_pb2.OUTCOME_OUTPUT_TRUNCATED),
    ],
)
@pytest.mark.parametrize("suite", SUITES)
def test_item_without_an_answer_has_every_statistic_and_none_is_right(
    catalogue: Catalogue, suite: str, response: Response, outcome: item_result_pb2.Outcome
) -> None:
    for task in tasks(catalogue, suite):
        item = _items(task)[0]
        right, scored = task.score(item, saying(task, item, item.reference)), task.score(item, response)
        cut = outcome == item_result_pb2.OUTCOME_OUTPUT_TRUNCATED and task.mode == LOGLIKELIHOOD
        assert scored.outcome == (item_result_pb2.OUTCOME_UNPARSED if cut else outcome), name(task)
        assert scored.statistics.keys() == right.statistics.keys(), name(task)
        assert scored.statistics.get("correct", 0.0) == 0.0, name(task)
        assert item.statistics.items() <= dict(scored.statistics).items(), name(task)


@pytest.mark.parametrize("suite", SUITES)
def test_hashes_without_prompts_are_those_of_the_items(catalogue: Catalogue, suite: str) -> None:
    by_task: dict[str, list[str]] = {}
    for task in tasks(catalogue, suite):
        items = list(task.items(range(task.size())))
        hashes = [item.hash for item in items]
        assert list(task.hashes(range(task.size()))) == hashes, name(task)
        assert list(task.hashes([2, 0])) == [hashes[2], hashes[0]], name(task)
        assert len(set(hashes)) == len(hashes), name(task)
        # What is asked is the same in each mode and with any examples; only how it is asked differs.
        assert by_task.setdefault(task.info.task, hashes) == hashes, name(task)


@pytest.mark.parametrize("suite", SUITES)
def test_prompt_hash_tells_modes_and_examples_apart(catalogue: Catalogue, suite: str) -> None:
    found: dict[tuple[str, str], str] = {}
    for task in tasks(catalogue, suite):
        items = _items(task)
        assert len({item.prompt_hash for item in items}) == len(items), name(task)
        assert found.setdefault((task.info.task, task.prompt_hash()), name(task)) == name(task)
        again = Catalogue.task(catalogue, suite, task.info.task, task.mode, task.shots)
        assert again.prompt_hash() == task.prompt_hash()


@pytest.mark.parametrize("suite", SUITES)
def test_items_are_messages_or_a_context_with_choices(catalogue: Catalogue, suite: str) -> None:
    for task in tasks(catalogue, suite):
        for index, item in enumerate(_items(task)):
            assert item.index == index, name(task)
            assert item.reference, name(task)
            if task.mode == GENERATE:
                assert (item.context, item.choices) == ("", ()), name(task)
                roles = [message.role for message in item.messages]
                assert roles == ["user", "assistant"] * task.shots + ["user"], name(task)
                assert "\nAnswer: <" in item.messages[-1].content, name(task)
            else:
                assert item.messages == (), name(task)
                assert item.context, name(task)
                assert not item.context.endswith(" "), name(task)
                labels = item.labels or task.labels
                assert len(item.choices) == len(labels) > 1, name(task)
                assert item.reference in labels, name(task)
                assert all(choice.startswith(" ") and choice.strip() for choice in item.choices), name(task)


@pytest.mark.parametrize("suite", SUITES)
def test_examples_are_the_same_for_every_item_and_answered_right(catalogue: Catalogue, suite: str) -> None:
    for task in tasks(catalogue, suite):
        if not task.shots:
            continue
        items = _items(task)
        plain = catalogue.task(suite, task.info.task, task.mode)
        alone = list(plain.items(range(len(items))))
        if task.mode == GENERATE:
            shown = [item.messages[:-1] for item in items]
            assert [item.messages[-1] for item in items] == [item.messages[-1] for item in alone], name(task)
            assert all("\nAnswer: " in f"\n{message.content}" for message in shown[0][1::2]), name(task)
            assert all(alone[place].messages[0] not in shown[place] for place in range(len(items))), name(task)
        else:
            preambles = {item.context.removesuffix(other.context) for item, other in zip(items, alone, strict=True)}
            assert len(preambles) <= 3 or suite in ("mmlu", "medical"), name(task)
            assert all(item.context.count("\n\n") >= task.shots for item in items), name(task)


@pytest.mark.parametrize("suite", SUITES)
def test_more_examples_than_a_task_takes_are_refused(catalogue: Catalogue, suite: str) -> None:
    for definition in shipped()[suite].definitions:
        with pytest.raises(InvalidRequestError) as error:
            catalogue.task(suite, definition.task, GENERATE, definition.most_shots + 1)
        assert error.value.field == "suite.shots"


@pytest.mark.parametrize("suite", SUITES)
def test_suite_tells_what_its_tasks_take_without_their_data(suite: str) -> None:
    (announced,) = [found for found in Catalogue(None).suites() if found.suite == suite]
    assert announced.title
    assert announced.description.endswith(".")
    assert len({task.task for task in announced.tasks}) == len(announced.tasks) > 0
    for definition, info in zip(shipped()[suite].definitions, announced.tasks, strict=True):
        assert info.title, info.task
        assert info.modes[0] == GENERATE, info.task
        assert info.published_items > 0, info.task
        assert info.data.revision == "", info.task
        for mode in definition.modes:
            metrics = definition.metrics_in(mode)
            assert not metrics[0].beside, info.task
            assert len({metric.metric for metric in metrics}) == len(metrics), info.task


def test_conclusion_of_a_pubmedqa_abstract_is_in_no_prompt(catalogue: Catalogue) -> None:
    for mode in (GENERATE, LOGLIKELIHOOD):
        task = catalogue.task("medical", "pubmedqa", mode, 2)
        items = [*_items(task), *task.train()]
        assert items
        assert not any("UNSEEN CONCLUSION" in str(item) for item in items)


@pytest.mark.parametrize("model", [MAJORITY, RANDOM, BAG_OF_WORDS])
@pytest.mark.parametrize("suite", SUITES)
async def test_baselines_answer_every_task(catalogue: Catalogue, suite: str, model: str) -> None:
    provider = BaselineProvider()
    for definition in shipped()[suite].definitions:
        if suite == "demo" and model == BAG_OF_WORDS:
            continue  # two thousand rows a task, in test_demo.py
        task = catalogue.task(suite, definition.task)
        for item in _items(task)[:4]:
            response = await provider.generate(Request(model, job_pb2.Sampling(seed=1), task, item))
            scored = task.score(item, response)
            if item.labels or task.labels:
                assert scored.outcome == ANSWERED, f"{name(task)}: {response.text}"
                assert scored.prediction in (item.labels or task.labels) or model != RANDOM, name(task)
            else:
                assert scored.outcome in (ANSWERED, item_result_pb2.OUTCOME_UNPARSED), name(task)
