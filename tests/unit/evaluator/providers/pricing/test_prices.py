"""Prices of a call."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.evaluator.items.task import Message
from services.evaluator.planning.budget import MostCost
from services.evaluator.providers.pricing import prices
from tests.unit.evaluator.providers.pricing.priced import LISTED, OFFICIAL, OWN
from touchstone.v1.endpoint_pb2 import Endpoint as Announced
from touchstone.v1.endpoint_pb2 import Prices
from touchstone.v1.job_pb2 import JobSpec, Sampling

LONG = Prices(input=2.0, output=8.0, long_prompts={"above_tokens": 1000, "input": 4.0, "output": 12.0}, batch_share=0.5)


def test_long_prompts_have_prices_of_their_own() -> None:
    assert prices.cost_usd(LONG, 1000, 10) == pytest.approx((1000 * 2 + 10 * 8) / 1e6)
    assert prices.cost_usd(LONG, 1001, 10) == pytest.approx((1001 * 4 + 10 * 12) / 1e6)


def test_the_providers_bill_comes_before_a_list_price_and_after_a_configured_one() -> None:
    assert prices.cost_usd(prices.of(OFFICIAL, LISTED), 1000, 1000, 0.5) == 0.5
    assert prices.cost_usd(prices.of(replace(OFFICIAL, prices=OWN), LISTED), 1000, 1000, 0.5) == pytest.approx(0.108)


def test_a_budget_reserves_for_the_longest_prompt_that_its_bytes_may_be() -> None:
    def most(length: int, batch: bool = False) -> float:
        asked = JobSpec(sampling=Sampling(max_tokens=100), budget_usd=1.0, provider_batch=batch)
        return MostCost(asked, Announced(kind="openai"), LONG).written([Message("user", "x" * length)], asked.sampling)

    assert most(100) == pytest.approx((100 + 4 + 16 + 256) * 2e-6 + 100 * 8e-6)
    assert most(2000) == pytest.approx((2000 + 4 + 16 + 256) * 4e-6 + 100 * 12e-6)
    assert most(100, batch=True) == pytest.approx(most(100) / 2)
