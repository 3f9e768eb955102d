"""What Ollama is sent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services import further_fields
from tests.servers.ollama_server import OllamaServer
from tests.servers.stub import Behaviour
from tests.unit.evaluator.providers.ollama_calls import ITEM, call
from touchstone.v1 import job_pb2


def sampling_of(field: str, value: float) -> job_pb2.Sampling:
    sampling = job_pb2.Sampling()
    setattr(sampling, field, value)
    return sampling


async def test_without_sampling_only_a_temperature_of_zero_is_sent() -> None:
    stub = OllamaServer()
    response = await call(stub)
    assert stub.records[0].path == "/api/chat"
    assert stub.records[0].body == {
        "model": "stub",
        "messages": [{"role": "user", "content": "one two three"}],
        "stream": False,
        "truncate": False,
        "shift": False,
        "options": {"temperature": 0},
    }
    assert response.parameters == '{"options":{"temperature":0},"shift":false,"stream":false,"truncate":false}'


@pytest.mark.parametrize(
    ("field", "value", "option"),
    [
        ("temperature", 0.0, "temperature"),
        ("top_p", 0.9, "top_p"),
        ("top_k", 0, "top_k"),
        ("max_tokens", 64, "num_predict"),
        ("context_length", 8192, "num_ctx"),
        ("seed", 0, "seed"),
        ("repeat_penalty", 1.1, "repeat_penalty"),
        ("min_p", 0.1, "min_p"),
    ],
)
async def test_each_parameter_is_sent_as_its_option(field: str, value: float, option: str) -> None:
    stub = OllamaServer()
    sampling = sampling_of(field, value)
    sampling.temperature = value if field == "temperature" else 0.7
    await call(stub, sampling)
    assert stub.records[0].body["options"] == {"temperature": sampling.temperature, option: value}


async def test_a_thinking_model_is_left_at_its_makers_sampling_and_is_sent_no_stop_sequence() -> None:
    stub = OllamaServer(Behaviour(models=("qwen3:8b",)))
    await call(stub, item=replace(ITEM, stop=("Q:",)), model="qwen3:8b")
    assert "options" not in stub.records[0].body


async def test_stop_sequences_are_sent_unless_the_server_says_that_the_model_thinks() -> None:
    stub = OllamaServer()
    await call(stub, item=replace(ITEM, stop=("\n\n", "Q:")))
    assert stub.records[0].body["options"]["stop"] == ["\n\n", "Q:"]
    stub = OllamaServer()
    stub.thinks = True
    await call(stub, item=replace(ITEM, stop=("Q:",)))
    assert "stop" not in stub.records[0].body["options"]


async def test_a_temperature_among_the_further_options_is_not_overwritten() -> None:
    stub = OllamaServer()
    sampling = job_pb2.Sampling()
    further_fields.write(sampling, {"options": {"temperature": 0.6}})
    await call(stub, sampling)
    assert stub.records[0].body["options"] == {"temperature": 0.6}


async def test_extra_reaches_the_body_and_its_options_join_the_others() -> None:
    stub = OllamaServer()
    sampling = job_pb2.Sampling(temperature=0.0)
    further_fields.write(sampling, {"think": False, "options": {"min_p": 0.5}})
    await call(stub, sampling)
    body = stub.records[0].body
    assert body["think"] is False
    assert body["options"] == {"temperature": 0.0, "min_p": 0.5}


@pytest.mark.parametrize("keep_alive", ["30m", 0, -1])
async def test_keep_alive_is_sent_when_it_is_configured(keep_alive: str | int) -> None:
    stub = OllamaServer()
    await call(stub, keep_alive=keep_alive)
    assert stub.records[0].body["keep_alive"] == keep_alive


async def test_a_jobs_own_keep_alive_goes_before_the_endpoints() -> None:
    stub = OllamaServer()
    sampling = job_pb2.Sampling()
    further_fields.write(sampling, {"keep_alive": 0})
    await call(stub, sampling, keep_alive="30m")
    assert stub.records[0].body["keep_alive"] == 0
