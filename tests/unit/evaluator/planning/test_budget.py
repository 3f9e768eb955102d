"""Units and reserves under a budget."""

from __future__ import annotations

import pytest

from services import further_fields
from services.errors import InvalidRequestError
from services.evaluator.catalogue import Catalogue
from services.evaluator.datasets.rows import messages
from services.evaluator.planning.budget import MostCost, reserve, reserve_suite
from services.evaluator.providers.anthropic_wire import DEFAULT_MAX_TOKENS
from tests.dataset_store import row, with_call, with_image
from tests.pictures import PNG, png
from tests.unit.evaluator.planning.planned import PRICED, most, planned, spec
from touchstone.v1 import suite_pb2
from touchstone.v1.endpoint_pb2 import Endpoint, Prices
from touchstone.v1.job_pb2 import JobSpec, Sampling, SuiteWork, TaskPlan


@pytest.mark.parametrize(
    ("asked", "kind", "known", "words"),
    [
        (spec(1.0, max_tokens=5), "openai", None, "Set prices in the endpoints file"),
        (spec(1.0), "openai", PRICED, "needs max_tokens"),
        (spec(1.0, max_tokens=5), "http", PRICED, "application"),
        (spec(1.0, max_tokens=5, extra={"n": 3}), "openai", PRICED, "With n, the cost of an answer has no known limit"),
        (spec(1.0, max_tokens=5, extra={"max_completion_tokens": 9}), "openai", PRICED, "max_completion_tokens"),
        (spec(1.0, max_tokens=5, extra={"service_tier": "priority"}), "openai", PRICED, "service_tier"),
    ],
)
def test_a_budget_that_cannot_be_kept_is_refused(asked: JobSpec, kind: str, known: Prices | None, words: str) -> None:
    with pytest.raises(InvalidRequestError, match=words):
        most(asked, kind=kind, known=known)


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


def test_an_answer_costs_at_most_its_bytes_and_max_tokens() -> None:
    cost = most(spec(1.0, max_tokens=50))
    # 200 bytes of text, 4 of the role, and room for the template; a dollar a million in, ten out.
    assert 204 + 500 <= cost * 1e6 <= 204 + 500 + 300
    assert most(spec(1.0, max_tokens=51)) - cost == pytest.approx(10e-6)
    assert most(spec(1.0, max_tokens=50), "ü" * 101) - cost == pytest.approx(2e-6)
    # What may stand in a prompt unseen, such as a schema, counts too.
    formatted = spec(1.0, max_tokens=50)
    further_fields.write(formatted.sampling, {"response_format": {"type": "json_object"}})
    assert most(formatted) - cost == pytest.approx(len('{"response_format":{"type":"json_object"}}') * 1e-6)


def test_log_likelihoods_cost_every_prompt_once() -> None:
    cost = MostCost(spec(1.0), Endpoint(kind="vllm"), PRICED)
    assert 10 + 2 * 15 + 30 <= cost.scored("x" * 10, ["y" * 5] * 2) * 1e6 <= 10 + 2 * 15 + 30 + 100


def test_claude_is_bounded_by_the_limit_that_its_calls_always_carry() -> None:
    assert most(spec(1.0), kind="anthropic") * 1e6 >= DEFAULT_MAX_TOKENS * 10


def test_what_calls_and_tools_add_to_a_prompt_is_reserved() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"a": "x" * 100}}}
    asked = spec(1.0, max_tokens=5)
    cost = MostCost(asked, Endpoint(kind="openai"), PRICED)
    plain = cost.written(
        messages(row(1, [("user", "How is it?"), ("assistant", ""), ("tool", "Rain")])), asked.sampling
    )
    called = cost.written(messages(with_call(1, '{"a": "' + "x" * 1000 + '"}')), asked.sampling)
    assert called - plain >= 1000e-6
    further_fields.write(asked.sampling, {"tools": [tool], "tool_choice": "auto"})
    assert cost.written(messages(with_call(1)), asked.sampling) - plain > (1024 + 100) * 1e-6
    further_fields.write(asked.sampling, {"tools": [{"type": "web_search"}]})
    with pytest.raises(InvalidRequestError, match="With tools, the cost of an answer has no known limit"):
        cost.written(messages(row(1)), asked.sampling)


async def test_images_are_reserved_for_by_their_pixels() -> None:
    asked = spec(1.0, max_tokens=5)
    text = (await planned([row(2, "What is this?")], asked)).most_cost_usd
    shown = (await planned([with_image(2, png(1024, 1024))], asked)).most_cost_usd
    assert shown - text == pytest.approx((8192 + 16) * 1e-6)
    claude = MostCost(asked, Endpoint(kind="anthropic"), PRICED)
    large, small = (claude.written(messages(with_image(1, png(n, n))), asked.sampling) for n in (750, 75))
    assert large - small == pytest.approx((750 - 9) * 1e-6)


async def test_an_image_without_a_size_is_refused_with_the_row_and_a_budget_below_it_is_too() -> None:
    asked = spec(0.01, max_tokens=5)
    with pytest.raises(InvalidRequestError, match=r"^Row 2 of .* cannot be run: The size of an image cannot be read"):
        await planned([row(1), with_image(2, PNG[:18])], asked)
    with pytest.raises(InvalidRequestError, match=r"^One answer may cost up to \$[\d,.]+, more than the whole budget"):
        await planned([with_image(1, png(2**31 - 1, 2**31 - 1))], asked)
