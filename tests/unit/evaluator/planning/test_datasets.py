"""What jobs over datasets and jobs with a budget come to before their first call."""

from __future__ import annotations

import pytest

from services.errors import InvalidRequestError
from services.evaluator.data.reader import DataError
from services.evaluator.datasets.store import Shelf
from services.evaluator.datasets.task import PROMPT_HASH, DatasetTask
from services.evaluator.planning import datasets
from services.evaluator.planning.datasets import plan
from services.evaluator.providers.baseline import RANDOM, check
from services.evaluator.providers.protocol.provider import ProviderError
from services.words.suites import ECHO, MAJORITY
from tests.dataset_store import DATASET_ID, MemoryStore, row
from tests.unit.evaluator.planning.planned import caller, planned, spec
from touchstone.v1.endpoint_pb2 import Capabilities
from touchstone.v1.scoring_pb2 import Scoring


async def test_a_dataset_is_one_task_named_rows() -> None:
    whole = await planned([row(n, reference="x") for n in range(50)])
    assert (whole.task, whole.title, whole.version, whole.scorer_version) == (
        "rows",
        "questions.jsonl",
        "1",
        "exact_match-5",
    )
    assert (whole.items, whole.published_items, whole.repeats, whole.unit_size) == (50, 50, 1, 32)
    assert (whole.data.dataset, len(whole.data.revision), whole.prompt_hash) == (DATASET_ID, 64, PROMPT_HASH)
    assert [metric.metric for metric in whole.metrics] == ["exact_match"]
    assert whole.most_cost_usd == 0
    part = await planned([row(n, reference="x") for n in range(50)], limit=10)
    assert (part.items, part.published_items) == (10, 50)
    assert part.item_set != whole.item_set


async def test_parameters_that_rows_ask_for_themselves_are_named() -> None:
    made = [row(1, max_tokens=16, extra={"user": "u"}), row(2, temperature=0, stop=["x"]), row(3)]
    assert list((await planned(made)).row_parameters) == ["max_tokens", "stop", "temperature", "user"]
    assert not (await planned([row(1)])).row_parameters


async def test_decisions_know_rows_that_ask_for_the_same() -> None:
    deciding = spec()
    deciding.deciding.seed = 1

    async def of(prompt: str, *references: str, scorer: str = "") -> str:
        made = [row(n, f"{prompt} {n}", reference, {"long": prompt}) for n, reference in enumerate(references)]
        return (await planned(made, deciding, scoring=Scoring(scorer=scorer))).question_set

    same = {await of("What is", "a", "b"), await of("Think step by step. What is", "a", "b")}
    assert len(same) == 1
    assert same != {""}
    assert {
        await of("What is", "a", "c"),
        await of("What is", "a"),
        await of("What is", "a", "b", scorer="regex"),
    }.isdisjoint(same)
    assert not (await planned([row(1)])).question_set


async def test_plans_of_decisions_name_groups_of_rows() -> None:
    deciding, by = spec(), Scoring(group_field="p")
    deciding.deciding.seed = 1
    values = ["a", "b", None, "a", "b", None, "c", "a"]
    made = [row(n, reference="x", metadata={"p": value} if value else None) for n, value in enumerate(values)]
    assert list((await planned(made, deciding, scoring=by)).clusters) == [0, 1, 2, 0, 1, 3, 4, 0]
    assert list((await planned(made, deciding, scoring=by, limit=5)).clusters), "of the rows that are asked"
    assert not (await planned(made, scoring=by)).clusters, "only decisions draw"
    assert not (await planned(made, deciding)).clusters
    one = [row(n, reference="x", metadata={"p": 1}) for n in range(8)]
    assert list((await planned(one, deciding, scoring=by)).clusters) == [0] * 8
    each = [row(n, reference="x", metadata={"p": n}) for n in range(8)]
    assert not (await planned(each, deciding, scoring=by)).clusters


async def test_a_field_for_groups_that_no_row_has_is_refused() -> None:
    made = [row(n, reference="x", metadata={"p": "a"} if n > 5 else {"p": " "}) for n in range(8)]
    sentence = r"^No row of the job has passage, which must name the row's group\. Name another group_field"
    with pytest.raises(InvalidRequestError, match=sentence) as refused:
        await planned(made, scoring=Scoring(group_field="passage"))
    assert refused.value.field == "dataset.scoring.group_field"
    with pytest.raises(InvalidRequestError, match=r"^No row of the job has p, "):
        await planned(made[:6], scoring=Scoring(group_field="p"))
    assert (await planned(made, scoring=Scoring(group_field="p"))).items == 8


async def test_a_decision_takes_as_many_rows_in_groups_as_fit_into_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "MOST_IN_GROUPS", 5)
    deciding, by = spec(), Scoring(group_field="p")
    deciding.deciding.seed = 1
    made = [row(n, reference="x", metadata={"p": n % 2}) for n in range(6)]
    with pytest.raises(InvalidRequestError, match=r"^A decision over rows in groups takes at most 5 rows, not 6\."):
        await planned(made, deciding, scoring=by)
    assert (await planned(made, scoring=by)).items == 6
    assert (await planned(made, deciding, scoring=by, limit=5)).items == 5


async def test_without_any_reference_there_are_no_metrics() -> None:
    assert not (await planned([row(1), row(2)])).metrics
    assert (await planned([row(1), row(2, reference="x")])).metrics
    found = await planned([row(1, metadata={"gold": "x"})], scoring=Scoring(reference_field="gold"))
    assert found.metrics


async def test_a_row_that_cannot_be_scored_is_told_before_the_first_call() -> None:
    made = [row(n, reference=str(n)) for n in range(20)] + [row(20, reference="(")]
    with pytest.raises(DataError, match=r"^Row 21 of questions.jsonl \(row-20\) has a reference that"):
        await planned(made, scoring=Scoring(scorer="regex"))


async def test_a_row_that_asks_for_what_the_model_refuses_is_told_before_the_first_call() -> None:
    refusing = caller(spec(), takes=Capabilities(sampling=False))
    await planned([row(1, max_tokens=5)], by=refusing)
    with pytest.raises(InvalidRequestError) as refused:
        await planned([row(1), row(2, temperature=0.5)], by=refusing)
    assert refused.value.message == (
        "Row 2 of questions.jsonl (row-2) cannot be run: m does not take temperature. Leave it out of the job's "
        "parameters."
    )


async def test_a_row_whose_stop_strings_would_not_be_sent_is_told_before_the_first_call() -> None:
    thinking = caller(spec(), takes=Capabilities(reasoning=True))
    with pytest.raises(InvalidRequestError, match=r"^Row 1 .* does not take stop strings\. Remove stop from the row"):
        await planned([row(1, stop=["\n"])], by=thinking)
    assert (await planned([row(1, stop=["\n"])])).items == 1
    assert (await planned([row(1, stop=["\n"])], by=caller(spec(), "baseline", baseline=ECHO))).items == 1


async def test_a_rescore_asks_nobody() -> None:
    memory = MemoryStore()
    task = DatasetTask(memory.add([row(1, reference="x", temperature=0.5)]), Scoring(), 0, 0, Shelf(memory))
    assert (await plan(spec(1.0), task, 32, None)).most_cost_usd == 0


def test_baselines_answer_what_they_can() -> None:
    for model in (ECHO, MAJORITY):
        check(model, of_rows=True)
    check(RANDOM, of_rows=False)
    for model, of_rows, words in (
        (RANDOM, True, "Choose echo"),
        (ECHO, False, "suite"),
        ("x", True, "not a valid"),
    ):
        with pytest.raises(ProviderError, match=words) as refused:
            check(model, of_rows=of_rows)
        assert refused.value.fatal


async def test_the_majority_of_no_references_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="choose echo"):
        await planned([row(1)], by=caller(spec(), "baseline", baseline=MAJORITY))
    assert (await planned([row(1)], by=caller(spec(), "baseline", baseline=ECHO))).items == 1
