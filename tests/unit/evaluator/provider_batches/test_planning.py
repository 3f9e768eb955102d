"""Batches' sizes and settings, and the stub of OpenAI's batch API read by OpenAI's own client.

Clients are imported where they are used: each worker of pytest-xdist imports this file, and they take long.
"""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from services.evaluator.endpoints import table
from services.evaluator.endpoints.batch_options import BatchOptions
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Message
from services.evaluator.planning.budget import reserve
from services.evaluator.provider_batches.planning import line_bytes, unit_rows
from services.evaluator.providers.pricing import prices
from touchstone.v1 import job_pb2


@given(st.lists(st.integers(1, 8_000_000), min_size=1, max_size=300), st.integers(1, 300))
def test_no_unit_is_larger_than_a_batch_may_be(sizes: list[int], most: int) -> None:
    options = BatchOptions(rows=most, megabytes=8)
    rows = unit_rows(sizes, options)
    assert 1 <= rows <= most
    assert all(sum(sizes[start : start + rows]) <= options.most_bytes for start in range(0, len(sizes), rows))


def test_small_rows_fill_a_batch() -> None:
    assert unit_rows([2_000] * 50_000, BatchOptions()) == 5_000
    assert unit_rows([2_000] * 50_000, BatchOptions(rows=50_000, megabytes=190)) == 50_000
    assert unit_rows([2_000] * 70, BatchOptions()) == 70


def test_a_line_is_no_larger_than_planned() -> None:
    messages = [Message("user", 'ü"\\\n' * 900), Message("assistant", "")]
    body = {"model": "m" * 300, "messages": [{"role": m.role, "content": m.content} for m in messages]}
    line = {"custom_id": "49999", "method": "POST", "url": "/v1/chat/completions", "body": body}
    assert len(json.dumps(line)) <= line_bytes(messages, job_pb2.Sampling())


def test_a_budget_is_reserved_in_tenths() -> None:
    planned = job_pb2.TaskPlan(unit_size=5_000)
    reserve(job_pb2.JobSpec(budget_usd=10, provider_batch=True), planned, 0.01)
    assert (planned.unit_size, planned.most_cost_usd) == (100, 0.01)


def test_the_share_is_that_of_the_models_prices() -> None:
    read = table.read({"name": "a", "kind": "openai", "prices": {"input": 1, "output": 2, "batch_share": 0.4}}, "", {})
    read.pop("model")
    assert prices.batch_share(prices.of(Endpoint(**read), "any")) == 0.4
    assert prices.batch_share(prices.of(Endpoint("a", "openai"), "any")) == 0.5
