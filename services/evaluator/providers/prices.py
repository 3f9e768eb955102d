"""What an answer cost. Prices come from the endpoints file or from the provider; a built-in list would be stale."""

from __future__ import annotations

from services import numbers
from services.evaluator.endpoints.endpoint import Endpoint
from touchstone.v1 import endpoint_pb2


def cost_usd(
    endpoint: Endpoint,
    model: str,
    input_tokens: int | None,
    output_tokens: int | None,
    listed: endpoint_pb2.Model | None = None,
    billed: float | None = None,
) -> float | None:
    """US dollars: at the configured prices, of the model before the endpoint; else what the provider says that it
    billed; else at its listed prices. None where no price or no count is known, or the sum cannot be. Cached input
    counts in full.
    """
    if not input_tokens or output_tokens is None:
        return billed
    entry = endpoint.entry(model)
    prices = (entry.prices if entry is not None else None) or endpoint.prices
    if prices:
        return numbers.answer_usd((input_tokens * prices["input"] + output_tokens * prices["output"]) / 1e6)
    if billed is not None:
        return billed
    if listed is not None and listed.HasField("input_price") and listed.HasField("output_price"):
        return numbers.answer_usd((input_tokens * listed.input_price + output_tokens * listed.output_price) / 1e6)
    return None
