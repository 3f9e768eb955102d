"""At whose prices an answer is charged, and what the table of public list prices may say."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import date

import pytest

from services.evaluator.endpoints.endpoint import Endpoint, ModelEntry
from services.evaluator.endpoints.kinds import KINDS
from services.evaluator.providers.pricing import prices
from services.evaluator.providers.protocol.capabilities import complete
from tests.unit.evaluator.providers.pricing.priced import LISTED, OFFICIAL, OWN
from touchstone.v1.endpoint_pb2 import Model, Prices

TABLE = """
[[provider]]
kind = "openai"
host = "api.openai.com"
as_of = 2026-10-03
source = "https://example.com"
batch_share = 0.5

[[provider.price]]
models = ["m", "m-2026"]
input = 2.0
output = 8.0
long = {above = 1_000, input = 4.0, output = 12.0}
until = 2026-12-31
"""


def source(endpoint: Endpoint, model: str = LISTED, listed: Model | None = None) -> Prices.Source | None:
    found = prices.of(endpoint, model, listed)
    return None if found is None else found.source


def test_the_shipped_table_is_dated_and_told_by_its_digest() -> None:
    table = prices.shipped()
    assert table.digest == hashlib.sha256(prices.FILE.read_bytes()).hexdigest()
    for (kind, host, model), price in table.by_model.items():
        assert kind in KINDS
        assert host
        assert date(2026, 1, 1) <= date.fromisoformat(price.prices.as_of) <= date(2030, 1, 1), model
        assert price.prices.table_digest == table.digest
    for kind in ("openai", "gemini", "grok", "anthropic"):
        own = KINDS[kind].base_url
        first = next(model for known, host, model in table.by_model if known == kind and host in own)
        assert table.of(kind, own, first, date(2026, 11, 1)) is not None


def test_configured_prices_come_first_then_the_providers_then_the_list() -> None:
    told = Model(model=LISTED, input_price=1.0, output_price=2.0)
    assert source(OFFICIAL) == Prices.SOURCE_LIST
    assert source(OFFICIAL, listed=told) == Prices.SOURCE_PROVIDER
    entry = replace(OFFICIAL, model_entries=(ModelEntry("gpt-4.1*", prices=OWN),))
    for configured in (replace(OFFICIAL, prices=OWN), entry):
        found = prices.of(configured, LISTED, told)
        assert found is not None
        assert (found.source, found.input, found.output) == (Prices.SOURCE_ENDPOINTS_FILE, 9.0, 99.0)


def test_a_listed_model_keeps_its_source_when_it_is_completed_again() -> None:
    model = complete(OFFICIAL, complete(OFFICIAL, Model(model=LISTED)))
    assert model.prices.source == Prices.SOURCE_LIST
    assert (model.input_price, model.output_price) == (model.prices.input, model.prices.output)


@pytest.mark.parametrize(
    ("endpoint", "model"),
    [
        (OFFICIAL, "gpt-4.1-mini-of-ours"),
        (OFFICIAL, "GPT-4.1-MINI"),
        (OFFICIAL, "openai/gpt-oss-120b"),
        (replace(OFFICIAL, base_url="http://127.0.0.1:8000/v1"), LISTED),
        (replace(OFFICIAL, base_url="http://api.openai.com/v1"), LISTED),
        (replace(OFFICIAL, base_url="https://api.openai.com:8443/v1"), LISTED),
        (replace(OFFICIAL, base_url="https://api.openai.com.example/v1"), LISTED),
        (replace(OFFICIAL, base_url="https://api.openai.com@example.com/v1"), LISTED),
        (replace(OFFICIAL, base_url="https://eu.api.openai.com/v1"), LISTED),
        (replace(OFFICIAL, kind="vllm"), LISTED),
        (Endpoint("ollama", "ollama", "http://127.0.0.1:11434"), LISTED),
        (replace(OFFICIAL, list_prices=False), LISTED),
    ],
)
def test_other_models_other_hosts_and_those_that_decline_have_no_list_price(endpoint: Endpoint, model: str) -> None:
    assert prices.of(endpoint, model) is None
    assert not complete(endpoint, Model(model=model)).HasField("input_price")
    assert prices.cost_usd(prices.of(endpoint, model), 10, 10) is None


def test_a_price_ends_on_its_last_day() -> None:
    table = prices.read(TABLE.encode())
    assert table.of("openai", OFFICIAL.base_url, "m-2026", date(2026, 12, 31)) is not None
    assert table.of("openai", OFFICIAL.base_url, "m-2026", date(2027, 1, 1)) is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("input = 2.0", "input = nan", "input must .* nan"),
        ("input = 2.0", "input = inf", "input must .* inf"),
        ("output = 8.0", "output = -8.0", "output must .* -8.0"),
        ("output = 8.0", "output = 0", "output must .* 0"),
        ("output = 8.0", "output = 1e9", "output must .* 1000000000.0"),
        ("output = 8.0", 'output = "8"', "output must .* '8'"),
        ("output = 8.0", "output = true", "output must .* True"),
        ("input = 4.0", "input = nan", "input must .* nan"),
        ("above = 1_000", "above = -1", "above must .* -1"),
        ("batch_share = 0.5", "batch_share = 1.5", "batch_share must .* 1.5"),
        ("as_of = 2026-10-03", 'as_of = "3 October"', "as_of must be a date"),
        ("as_of = 2026-10-03", "as_of = 2026-10-03T00:00:00Z", "as_of must be a date"),
        ("until = 2026-12-31", "until = 2026", "until must be a date"),
        ('["m", "m-2026"]', '["m", "m"]', "m is listed twice"),
        ('["m", "m-2026"]', "[]", "models must be a list of names"),
        ("output = 8.0", "", "a price has"),
        ("until =", "untill =", "a price has"),
    ],
)
def test_a_table_that_cannot_be_is_refused_with_its_place(old: str, new: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"list prices of api\.openai\.com.*" + said):
        prices.read(TABLE.replace(old, new, 1).encode())


def test_the_digest_is_that_of_the_whole_file() -> None:
    assert prices.read(TABLE.encode()).digest != prices.read((TABLE + "# later\n").encode()).digest
