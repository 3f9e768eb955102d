"""What jobs over datasets and jobs with a budget come to before their first call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from services import further
from services.errors import InvalidRequestError
from services.evaluator.budget import reserve, reserve_suite
from services.evaluator.catalogue import Catalogue
from services.evaluator.data.reader import DataError
from services.evaluator.datasets.planning import Caller, plan
from services.evaluator.datasets.store import Shelf
from services.evaluator.datasets.task import PROMPT_HASH, DatasetTask
from services.evaluator.identity import asked_with
from services.evaluator.providers.anthropic_wire import DEFAULT_MAX_TOKENS
from services.evaluator.providers.base import ProviderError
from services.evaluator.providers.baseline import ECHO, MAJORITY, RANDOM, check
from services.evaluator.providers.most_cost import MostCost
from services.evaluator.tasks.base import Message
from tests.dataset_store import DATASET_ID, MemoryStore, row
from touchstone.v1 import suite_pb2
from touchstone.v1.dataset_pb2 import DatasetRow
from touchstone.v1.endpoint_pb2 import Capabilities, Endpoint, Prices
from touchstone.v1.job_pb2 import DatasetWork, JobSpec, Sampling, SuiteWork, TaskPlan
from touchstone.v1.scoring_pb2 import Scoring

PRICED = Prices(input=1.0, output=10.0, batch_share=0.5)


def spec(budget_usd: float = 0.0, **sampling: Any) -> JobSpec:
    work = DatasetWork(dataset_id=DATASET_ID)
    return JobSpec(endpoint="e", model="m", dataset=work, sampling=Sampling(**sampling), budget_usd=budget_usd)


def caller(
    asked: JobSpec,
    kind: str = "openai",
    known: Prices | None = PRICED,
    takes: Capabilities | None = None,
    baseline: str = "",
) -> Caller:
    cost = MostCost(asked, Endpoint(endpoint="e", kind=kind), known) if asked.budget_usd else None
    taken = takes or Capabilities()
    return Caller(lambda sampling: asked_with(asked, kind, taken, sampling=sampling), cost, baseline)


async def planned(
    rows: Sequence[DatasetRow],
    asked: JobSpec | None = None,
    by: Caller | None = None,
    scoring: Scoring | None = None,
    limit: int = 0,
) -> TaskPlan:
    memory = MemoryStore()
    manifest = memory.add(rows, shard_rows=7)
    task = DatasetTask(manifest, scoring or Scoring(), limit, 0, Shelf(memory))
    asked = asked or spec()
    return await plan(asked, task, 32, by or caller(asked))


async def test_a_dataset_is_one_task_named_rows() -> None:
    whole = await planned([row(n, reference="x") for n in range(50)])
    assert (whole.task, whole.title, whole.version, whole.scorer_version) == (
        "rows",
        "questions.jsonl",
        "1",
        "exact_match-2",
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
    with pytest.raises(InvalidRequestError, match=r"^Row 1 .* takes no stop strings\. Leave stop out of the row"):
        await planned([row(1, stop=["\n"])], by=thinking)
    assert (await planned([row(1, stop=["\n"])])).items == 1
    assert (await planned([row(1, stop=["\n"])], by=caller(spec(), "baseline", baseline=ECHO))).items == 1


async def test_a_rescore_asks_nobody() -> None:
    memory = MemoryStore()
    task = DatasetTask(memory.add([row(1, reference="x", temperature=0.5)]), Scoring(), 0, 0, Shelf(memory))
    assert (await plan(spec(1.0), task, 32, None)).most_cost_usd == 0


# -- baselines -------------------------------------------------------------------------------------------------------


def test_baselines_answer_what_they_can() -> None:
    for model in (ECHO, MAJORITY):
        check(model, of_rows=True)
    check(RANDOM, of_rows=False)
    for model, of_rows, words in ((RANDOM, True, "Choose echo"), (ECHO, False, "suite"), ("x", True, "no baseline")):
        with pytest.raises(ProviderError, match=words) as refused:
            check(model, of_rows=of_rows)
        assert refused.value.fatal


async def test_the_majority_of_no_references_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="choose echo"):
        await planned([row(1)], by=caller(spec(), "baseline", baseline=MAJORITY))
    assert (await planned([row(1)], by=caller(spec(), "baseline", baseline=ECHO))).items == 1


# -- budgets ---------------------------------------------------------------------------------------------------------


def most(asked: JobSpec, text: str = "ü" * 100, kind: str = "openai", known: Prices | None = PRICED) -> float:
    return MostCost(asked, Endpoint(kind=kind), known).written([Message("user", text)], asked.sampling)


def test_an_answer_costs_at_most_its_bytes_and_max_tokens() -> None:
    cost = most(spec(1.0, max_tokens=50))
    # 200 bytes of text, 4 of the role, and room for the template; a dollar a million in, ten out.
    assert 204 + 500 <= cost * 1e6 <= 204 + 500 + 300
    assert most(spec(1.0, max_tokens=51)) - cost == pytest.approx(10e-6)
    assert most(spec(1.0, max_tokens=50), "ü" * 101) - cost == pytest.approx(2e-6)
    # What may stand in a prompt unseen, such as a schema, counts too.
    formatted = spec(1.0, max_tokens=50)
    further.write(formatted.sampling, {"response_format": {"type": "json_object"}})
    assert most(formatted) - cost == pytest.approx(len('{"response_format":{"type":"json_object"}}') * 1e-6)


def test_log_likelihoods_cost_every_prompt_once() -> None:
    cost = MostCost(spec(1.0), Endpoint(kind="vllm"), PRICED)
    assert 10 + 2 * 15 + 30 <= cost.scored("x" * 10, ["y" * 5] * 2) * 1e6 <= 10 + 2 * 15 + 30 + 100


@pytest.mark.parametrize(
    ("asked", "kind", "known", "words"),
    [
        (spec(1.0, max_tokens=5), "openai", None, "Set prices in the endpoints file"),
        (spec(1.0), "openai", PRICED, "needs max_tokens"),
        (spec(1.0, max_tokens=5), "http", PRICED, "application"),
        (spec(1.0, max_tokens=5, extra={"n": 3}), "openai", PRICED, "with n has no known bound"),
        (spec(1.0, max_tokens=5, extra={"max_completion_tokens": 9}), "openai", PRICED, "max_completion_tokens"),
        (spec(1.0, max_tokens=5, extra={"service_tier": "priority"}), "openai", PRICED, "service_tier"),
    ],
)
def test_a_budget_that_cannot_be_kept_is_refused(asked: JobSpec, kind: str, known: Prices | None, words: str) -> None:
    with pytest.raises(InvalidRequestError, match=words):
        most(asked, kind=kind, known=known)


def test_claude_is_bounded_by_the_limit_that_its_calls_always_carry() -> None:
    assert most(spec(1.0), kind="anthropic") * 1e6 >= DEFAULT_MAX_TOKENS * 10


async def test_the_dearest_row_is_reserved_for_and_units_are_small() -> None:
    rows = [row(n, max_tokens=10 + n) for n in range(20)]
    asked = spec(0.1)
    found = await planned(rows, asked)
    assert found.most_cost_usd == pytest.approx(most(spec(1.0, max_tokens=29), "Question 19?"))
    assert 1 <= found.unit_size <= 4
    assert (await planned(rows, spec(0.1, max_tokens=5000))).most_cost_usd == pytest.approx(found.most_cost_usd)
    with pytest.raises(InvalidRequestError, match=r"^Row 3 of .* cannot be run: A budget needs max_tokens"):
        await planned([row(1, max_tokens=5), row(2, max_tokens=5), row(3)], asked)


async def test_a_budget_below_one_answer_is_refused() -> None:
    with pytest.raises(
        InvalidRequestError, match=r"^One answer may cost up to \$0.0\d+, more than the whole budget of"
    ):
        await planned([row(1)], spec(0.001, max_tokens=5000))


def test_units_never_reserve_more_than_a_part_of_the_budget() -> None:
    for most_usd, size in ((0.001, 1), (0.0002, 1), (0.0001, 2), (1e-7, 4), (0.0, 4)):
        found = TaskPlan(unit_size=32)
        reserve(spec(0.01), found, most_usd)
        assert found.unit_size == size
        assert found.most_cost_usd > 0


def test_a_suite_reserves_for_its_dearest_item() -> None:
    catalogue = Catalogue()
    work = SuiteWork(suite="demo", tasks=["sentiment"], limit=20)
    asked = JobSpec(endpoint="e", model="m", suite=work, sampling=Sampling(max_tokens=100), budget_usd=1.0)
    plans = catalogue.plan(work, suite_pb2.MODE_GENERATE, 32)
    reserve_suite(asked, plans, catalogue, MostCost(asked, Endpoint(kind="openai"), PRICED))
    task = catalogue.task("demo", "sentiment")
    items = list(task.items(catalogue.selection(task, 20, 0).indexes))
    longest = max(len(item.messages[0].content.encode()) for item in items)
    assert longest + 1000 <= plans[0].most_cost_usd * 1e6 <= longest + 1000 + 300
    assert plans[0].unit_size <= 4
