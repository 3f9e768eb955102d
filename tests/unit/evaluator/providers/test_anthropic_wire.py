"""What Anthropic is sent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from services import further_fields
from services.evaluator.items.task import Message
from services.evaluator.providers import anthropic_wire
from services.evaluator.providers.protocol.provider import ProviderError
from tests.unit.evaluator.providers.anthropic_calls import ITEM, LATER, MODEL, call, stub_of
from touchstone.v1 import job_pb2


def extra_of(fields: dict[str, Any], **given: Any) -> job_pb2.Sampling:
    sampling = job_pb2.Sampling(**given)
    further_fields.write(sampling, fields)
    return sampling


async def test_the_systems_words_stand_apart_and_a_limit_is_always_sent() -> None:
    stub = stub_of()
    response = await call(stub)
    assert stub.records[0].path == "/v1/messages"
    assert stub.records[0].body == {
        "model": MODEL,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "one two three"}],
        "max_tokens": 8192,
        "temperature": 0,
    }
    assert response.parameters == '{"max_tokens":8192,"temperature":0}'


def test_what_a_tool_said_comes_from_the_users_side() -> None:
    said = anthropic_wire.prompt([Message("user", "a"), Message("assistant", "b"), Message("tool", "c")])
    assert [turn["role"] for turn in said["messages"]] == ["user", "assistant", "user"]


@pytest.mark.parametrize(("field", "value"), [("temperature", 0.7), ("top_p", 0.9), ("top_k", 40), ("max_tokens", 64)])
async def test_each_parameter_is_sent_when_it_is_set(field: str, value: float) -> None:
    stub = stub_of()
    sampling = job_pb2.Sampling()
    setattr(sampling, field, value)
    await call(stub, sampling)
    assert stub.records[0].body[field] == value


@pytest.mark.parametrize("field", ["seed", "repeat_penalty", "min_p", "context_length"])
async def test_a_parameter_that_cannot_be_sent_is_refused_and_not_dropped(field: str) -> None:
    stub = stub_of()
    sampling = job_pb2.Sampling()
    setattr(sampling, field, 1)
    with pytest.raises(ProviderError) as caught:
        await call(stub, sampling)
    assert caught.value.fatal
    assert f"does not take {field}" in caught.value.message
    assert stub.records == []


async def test_later_models_are_asked_without_sampling() -> None:
    stub = stub_of()
    await call(stub, model=LATER)
    assert "temperature" not in stub.records[0].body
    with pytest.raises(ProviderError) as caught:
        await call(stub_of(), job_pb2.Sampling(temperature=0.0), model=LATER)
    assert caught.value.message == f"{LATER} does not take temperature. Leave it out of the job's parameters."


async def test_thinking_is_asked_for_without_a_temperature() -> None:
    stub = stub_of()
    await call(stub, extra_of({"thinking": {"type": "enabled", "budget_tokens": 2048}}))
    body = stub.records[0].body
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    assert "temperature" not in body


async def test_blank_stop_sequences_which_it_refuses_are_not_sent() -> None:
    stub = stub_of()
    await call(stub, item=replace(ITEM, stop=("\n\n", "\nQ:", " ")))
    assert stub.records[0].body["stop_sequences"] == ["\nQ:"]


@pytest.mark.parametrize("field", ["messages", "system", "stream"])
async def test_further_fields_may_not_replace_what_is_written(field: str) -> None:
    with pytest.raises(ProviderError) as caught:
        await call(stub_of(), extra_of({field: "x"}))
    assert caught.value.fatal
