"""What an answer cost, and at whose prices: those of the endpoints file, else what the provider bills or lists, else
public list prices.

The table of list prices, list_prices.toml, ships with Touchstone. A list price applies at the provider's own host and
to the exact name of a model; anything else has none.
"""

from __future__ import annotations

import hashlib
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from services import numbers
from services.evaluator.endpoints.endpoint import Endpoint
from touchstone.v1 import endpoint_pb2, unit_pb2
from touchstone.v1.endpoint_pb2 import Prices

FILE = Path(__file__).with_name("list_prices.toml")
_MOST_LISTED = 10_000.0
"""US dollars per million tokens; a higher figure is a mistake, such as a price per billion tokens."""
_PROVIDER = {"kind", "host", "as_of", "source", "batch_share", "price"}
_PRICE = {"models", "input", "output"}
_MAYBE = {"long", "until", "batch_share"}
_LONG = {"above", "input", "output"}


@dataclass(frozen=True, slots=True)
class ListPrice:
    """The price of one model at one host. It applies up to the day `until`; None means that no end is known."""

    prices: endpoint_pb2.Prices
    until: date | None


@dataclass(frozen=True, slots=True)
class ListPrices:
    """The table. `digest` is the SHA-256 of its bytes."""

    digest: str
    by_model: Mapping[tuple[str, str, str], ListPrice]
    """By kind of endpoint, host and model."""

    def of(self, kind: str, base_url: str, model: str, today: date) -> endpoint_pb2.Prices | None:
        """None for a model or a host that the table does not have, and for a price that no longer applies."""
        found = self.by_model.get((kind, _host(base_url), model))
        return found.prices if found is not None and today <= (found.until or today) else None


@cache
def shipped() -> ListPrices:
    """The table of this version."""
    return read(FILE.read_bytes())


def today() -> date:
    """The day in UTC."""
    return datetime.now(UTC).date()


def read(table: bytes) -> ListPrices:
    """Raises ValueError naming the provider and what is wrong."""
    digest = hashlib.sha256(table).hexdigest()
    document = tomllib.loads(table.decode())
    if document.keys() != {"provider"}:
        raise ValueError("A table of list prices has [[provider]] and nothing else.")
    found: dict[tuple[str, str, str], ListPrice] = {}
    for provider in document["provider"]:
        where = f"list prices of {provider.get('host')}"
        _check(provider.keys() == _PROVIDER, f"{where}: the keys must be {', '.join(sorted(_PROVIDER))}")
        _check(type(provider["as_of"]) is date, f"{where}: as_of must be a date such as 2026-10-03")
        for entry in provider["price"]:
            price = _price(entry, provider, digest, where)
            for model in entry["models"]:
                name = (provider["kind"], provider["host"], model)
                _check(name not in found, f"{where}: {model} is listed twice")
                found[name] = price
    return ListPrices(digest, found)


def _price(entry: Mapping[str, Any], provider: Mapping[str, Any], digest: str, where: str) -> ListPrice:
    models = entry.get("models")
    named = isinstance(models, list) and bool(models) and all(isinstance(model, str) for model in models)
    _check(named, f"{where}: models must be a list of names")
    where = f"{where}, {entry['models'][0]}"
    _check(entry.keys() - _MAYBE == _PRICE, f"{where}: a price has {', '.join(sorted(_PRICE | _MAYBE))}")
    prices = endpoint_pb2.Prices(
        input=_dollars(entry, "input", where),
        output=_dollars(entry, "output", where),
        batch_share=_number({**provider, **entry}, "batch_share", 1.0, where),
        source=endpoint_pb2.Prices.SOURCE_LIST,
        as_of=provider["as_of"].isoformat(),
        table_digest=digest,
    )
    if "long" in entry:
        longer = entry["long"]
        _check(longer.keys() == _LONG, f"{where}: long has {', '.join(sorted(_LONG))}")
        prices.long_prompts.above_tokens = int(_number(longer, "above", numbers.MOST_TOKENS, where))
        prices.long_prompts.input = _dollars(longer, "input", where)
        prices.long_prompts.output = _dollars(longer, "output", where)
    until = entry.get("until")
    _check(until is None or type(until) is date, f"{where}: until must be a date such as 2026-12-31")
    return ListPrice(prices, until)


def _dollars(entry: Mapping[str, Any], key: str, where: str) -> float:
    return _number(entry, key, _MOST_LISTED, where)


def _number(entry: Mapping[str, Any], key: str, most: float, where: str) -> float:
    number = numbers.real(entry[key], math.ulp(0.0), most)
    if number is None:
        raise ValueError(f"{where}: {key} must be above 0 and at most {most:,.0f}; it is {entry[key]!r}.")
    return number


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(f"{otherwise}.")


def _host(base_url: str) -> str:
    """Host of an address over TLS at its usual port; empty for any other."""
    parts = urlsplit(base_url)
    return parts.hostname or "" if parts.scheme == "https" and parts.port in (None, 443) else ""


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
    return shipped().of(endpoint.kind, endpoint.base_url, model, today())


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
