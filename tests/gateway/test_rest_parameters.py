"""The names of sampling parameters in REST: what a body may say, and what refusals call them."""

from __future__ import annotations

import pytest

from services.gateway.fields.job import in_rest
from tests.gateway.gateway_server import Running
from tests.gateway.test_rest_benchmarks import call, dataset, job_of


async def test_max_tokens_is_the_same_as_num_predict(gateway: Running) -> None:
    body = {"model_id": "mistral:7b", "dataset_id": dataset(gateway)}
    for name in ("max_tokens", "num_predict"):
        made = await call(gateway, "POST", "/run", body=body | {"parameters": {name: 40}})
        assert job_of(gateway, made).spec.sampling.max_tokens == 40
    both = await call(gateway, "POST", "/run", 422, body=body | {"parameters": {"max_tokens": 4, "num_predict": 4}})
    assert "not both" in both["errors"][0]["message"]
    wrong = await call(gateway, "POST", "/run", 422, body=body | {"parameters": {"max_tokens": 0}})
    assert wrong["errors"][0]["field"] == "parameters.max_tokens"
    assert wrong["errors"][0]["message"] == "parameters.max_tokens must be between 1 and 1,000,000."


async def test_the_schedulers_sentences_name_fields_of_rest(gateway: Running) -> None:
    body = {"model_id": "qwen2.5:7b", "dataset_id": dataset(gateway), "budget_usd": 1}
    refused = await call(gateway, "POST", "/run", 400, body=body)
    assert refused["detail"].endswith("Set max_tokens, or max_tokens in every row.")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("set sampling.max_tokens, or max_tokens in every row.", "set max_tokens, or max_tokens in every row."),
        ("stub does not take sampling.extra_json.n.", "stub does not take custom_config.n."),
        ("Shorten sampling.extra_json or the list.", "Shorten custom_config or the list."),
        ("spec.sampling.context_length must be between 1 and 9.", "num_ctx must be between 1 and 9."),
        ("Set context_length.", "Set num_ctx."),
    ],
)
def test_fields_of_services_have_their_names_in_rest(said: str, told: str) -> None:
    assert in_rest(said) == told


async def test_a_name_that_several_endpoints_have_is_suggested_once(gateway: Running) -> None:
    body = {"model_id": "llama3.3:70", "dataset_id": dataset(gateway)}
    suggested = (await call(gateway, "POST", "/run", 404, body=body))["detail"].partition("Did you mean ")[2]
    names = suggested.rstrip("?").split(", ")
    assert "llama3.3:70b" in names
    assert len({*names}) == len(names)
