"""What servers of OpenAI's API are sent."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from services import further_fields
from services.evaluator.endpoints.endpoint import Endpoint, ModelEntry
from services.evaluator.providers.openai.chat import OpenAIProvider
from services.evaluator.providers.protocol.provider import ProviderError, Request
from services.words.sampling import offered
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour
from tests.unit.evaluator.providers.openai.calls import ITEM, TASK, call
from touchstone.v1 import job_pb2
from touchstone.v1.endpoint_pb2 import Capabilities


def sampling_of(field: str, value: float) -> job_pb2.Sampling:
    """One parameter, and a temperature so that no other is added."""
    sampling = job_pb2.Sampling(temperature=0.5)
    setattr(sampling, field, value)
    return sampling


async def test_without_sampling_the_model_is_asked_for_its_likeliest_answer() -> None:
    stub = OpenAIServer()
    await call(stub)
    assert stub.records[0].path == "/v1/chat/completions"
    assert stub.records[0].body == {
        "model": "stub",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "one two three"}],
        "temperature": 0,
    }


async def test_what_was_sent_beside_the_messages_is_recorded() -> None:
    stub, item = OpenAIServer(), replace(ITEM, stop=("\n\n", "Q:"))
    sampling = job_pb2.Sampling(max_tokens=16, seed=7)
    further_fields.write(sampling, {"user": "u"})
    response = await call(stub, sampling, item=item, repeat=2, repeats=3, stream=True)
    sent = {key: value for key, value in stub.records[0].body.items() if key not in ("model", "messages")}
    assert json.loads(response.parameters) == sent
    assert sent == {
        "max_tokens": 16,
        "seed": 9,
        "stop": ["\n\n", "Q:"],
        "stream": True,
        "stream_options": {"include_usage": True},
        "user": "u",
    }
    assert response.parameters == json.dumps(sent, sort_keys=True, separators=(",", ":"))


async def test_several_answers_an_item_are_left_to_the_models_own_temperature() -> None:
    stub = OpenAIServer()
    await call(stub, repeats=3)
    assert "temperature" not in stub.records[0].body


async def test_repeats_with_a_seed_have_each_their_own() -> None:
    stub = OpenAIServer()
    async with stub:
        provider = OpenAIProvider(Endpoint("vllm-a", "openai", stub.url))
        sampling = job_pb2.Sampling(seed=5, temperature=1)
        for repeat in (0, 1, 2, 1):
            await provider.generate(Request("stub", sampling, TASK, ITEM, repeat, repeats=3))
        await provider.close()
    assert [record.body["seed"] for record in stub.records] == [5, 6, 7, 6]


@pytest.mark.parametrize(
    ("capabilities", "sent"),
    [
        (Capabilities(), True),
        (Capabilities(stop=True), True),
        (Capabilities(stop=False), False),
        (Capabilities(reasoning=True), False),
    ],
)
async def test_stop_sequences_go_to_models_that_take_them_and_do_not_think(
    capabilities: Capabilities, sent: bool
) -> None:
    stub, item = OpenAIServer(), replace(ITEM, stop=("a", "b", "c", "d", "e"))
    response = await call(stub, item=item, model_entries=(ModelEntry("*", capabilities),))
    assert stub.records[0].body.get("stop") == (["a", "b", "c", "d", "e"] if sent else None)
    assert ("stop" in response.parameters) == sent


async def test_a_model_that_fixes_its_sampling_is_asked_without_and_with_the_limit_it_knows() -> None:
    stub = OpenAIServer(Behaviour(models=("o4-mini",)))
    await call(stub, job_pb2.Sampling(max_tokens=100), model="o4-mini", item=replace(ITEM, stop=("\n",)))
    assert set(stub.records[0].body) == {"model", "messages", "max_completion_tokens"}


async def test_a_parameter_that_the_model_refuses_fails_before_any_call() -> None:
    stub = OpenAIServer(Behaviour(models=("o4-mini",)))
    with pytest.raises(ProviderError) as caught:
        await call(stub, job_pb2.Sampling(temperature=0.5), model="o4-mini")
    assert caught.value.fatal
    assert caught.value.message == "o4-mini does not take temperature. Leave it out of the job's parameters."
    assert stub.records == []


async def test_what_a_listing_says_of_parameters_is_heeded() -> None:
    stub = OpenAIServer()
    stub.listed = {"supported_parameters": ["max_tokens", "seed"], "context_length": 1024}
    await call(stub, item=replace(ITEM, stop=("\n",)))
    assert set(stub.records[0].body) == {"model", "messages"}


@pytest.mark.parametrize(
    ("field", "value", "key"),
    [
        ("temperature", 0, "temperature"),
        ("temperature", 1.5, "temperature"),
        ("top_p", 0.9, "top_p"),
        ("max_tokens", 16, "max_tokens"),
        ("seed", 0, "seed"),
        ("seed", 2**40, "seed"),
    ],
)
async def test_each_parameter_is_sent_when_it_is_set(field: str, value: float, key: str) -> None:
    stub = OpenAIServer()
    await call(stub, sampling_of(field, value))
    assert stub.records[0].body[key] == value
    assert set(stub.records[0].body) == {"model", "messages", "temperature", key}


async def test_every_parameter_that_is_offered_for_the_kind_is_sent_to_any_server() -> None:
    sampling = job_pb2.Sampling()
    for one in offered(["openai"]):
        setattr(sampling, one.name, one.high)
    stub = OpenAIServer()
    await call(stub, sampling)
    assert {one.name for one in offered(["openai"])} == set(stub.records[0].body) - {"model", "messages"}


@pytest.mark.parametrize(
    ("owner", "field", "key"),
    [
        ("vllm", "top_k", "top_k"),
        ("vllm", "repeat_penalty", "repetition_penalty"),
        ("vllm", "min_p", "min_p"),
        ("sglang", "min_p", "min_p"),
        ("someone", "min_p", "min_p"),
        ("llamacpp", "min_p", "min_p"),
        ("llamacpp", "top_k", "top_k"),
        ("llamacpp", "repeat_penalty", "repeat_penalty"),
    ],
)
async def test_servers_known_to_take_more_get_more(owner: str, field: str, key: str) -> None:
    stub = OpenAIServer(owned_by=owner)
    await call(stub, sampling_of(field, 2))
    assert stub.records[0].body[key] == 2


@pytest.mark.parametrize("field", ["top_k", "repeat_penalty", "context_length"])
async def test_a_parameter_that_cannot_be_sent_is_refused_and_not_dropped(field: str) -> None:
    stub = OpenAIServer()
    with pytest.raises(ProviderError) as caught:
        await call(stub, sampling_of(field, 1))
    assert caught.value.fatal
    assert caught.value.message == f"vllm-a does not take {field}. Leave it out of the job's parameters."
    assert stub.records == []


async def test_extra_is_merged_into_the_body_as_it_is() -> None:
    stub = OpenAIServer()
    sampling = job_pb2.Sampling()
    further_fields.write(sampling, {"top_k": 5, "stop": ["\n"], "chat_template_kwargs": {"thinking": False}})
    await call(stub, sampling)
    body = stub.records[0].body
    assert (body["top_k"], body["stop"], body["chat_template_kwargs"]) == (5, ["\n"], {"thinking": False})
    assert isinstance(body["top_k"], int)
