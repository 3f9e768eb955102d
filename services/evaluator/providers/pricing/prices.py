"""What an answer cost, and at whose prices: those of the endpoints file, else what the provider bills or lists, else
public list prices."""

from __future__ import annotations

from services import numbers
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.providers.pricing import list_prices
from touchstone.v1 import endpoint_pb2, unit_pb2
from touchstone.v1.endpoint_pb2 import Prices

USUAL_BATCH_SHARE = 0.5
"""The share of OpenAI and Gemini."""


def of(endpoint: Endpoint, model: str, listed: endpoint_pb2.Model | None = None) -> Prices | None:
    """Prices of a model: configured ones, the model's before the endpoint's; else those of its listing; else list
    prices. None if they are unknown."""
    entry = endpoint.entry(model)
    configured = (entry.prices if entry is not None else None) or endpoint.prices
    if configured:
        return Prices(
            input=configured["input"],
            output=configured["output"],
            batch_share=configured.get("batch_share", USUAL_BATCH_SHARE),
            source=Prices.SOURCE_ENDPOINTS_FILE,
        )
    if listed is not None and (told := of_listed(listed)) is not None:
        return told
    if not endpoint.list_prices:
        return None
    return list_prices.shipped().of(endpoint.kind, endpoint.base_url, model, list_prices.today())


def of_listed(model: endpoint_pb2.Model) -> Prices | None:
    """Prices of a model as its endpoint announces it, or as its provider lists it."""
    if model.HasField("prices"):
        return model.prices
    if not (model.HasField("input_price") and model.HasField("output_price")):
        return None
    return Prices(
        input=model.input_price,
        output=model.output_price,
        batch_share=USUAL_BATCH_SHARE,
        source=Prices.SOURCE_PROVIDER,
    )


def of_unit(unit: unit_pb2.Unit) -> Prices | None:
    """Prices of the unit's job; None if the scheduler does not know them."""
    return unit.prices if unit.HasField("prices") else None


def batch_share(prices: Prices | None) -> float:
    """The share of its usual price that an answer through the provider's batch API costs."""
    return USUAL_BATCH_SHARE if prices is None else prices.batch_share


def cost_usd(
    prices: Prices | None, input_tokens: int | None, output_tokens: int | None, billed: float | None = None
) -> float | None:
    """US dollars: at configured prices; else what the provider says it billed; else at other prices. None if no price
    or no count is known, or the sum is impossible. Cached input counts in full.
    """
    configured = prices is not None and prices.source == Prices.SOURCE_ENDPOINTS_FILE
    if not input_tokens or output_tokens is None or prices is None or (billed is not None and not configured):
        return billed
    per_input, per_output = per_million(prices, input_tokens)
    return numbers.answer_usd((input_tokens * per_input + output_tokens * per_output) / 1e6)


def per_million(prices: Prices, input_tokens: int) -> tuple[float, float]:
    """US dollars of a million tokens read and of a million generated, for a prompt of this many tokens."""
    longer = prices.HasField("long_prompts") and input_tokens > prices.long_prompts.above_tokens
    held = prices.long_prompts if longer else prices
    return held.input, held.output
