"""What Gemini is sent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from services import further_fields
from services.evaluator.providers.protocol.provider import ProviderError
from tests.unit.evaluator.providers.gemini_calls import ITEM, MODEL, call, stub_of
from touchstone.v1 import job_pb2


def sampling_of(field: str, value: float) -> job_pb2.Sampling:
    sampling = job_pb2.Sampling(temperature=0.5)
    setattr(sampling, field, value)
    return sampling


def extra_of(fields: dict[str, Any], **given: Any) -> job_pb2.Sampling:
    sampling = job_pb2.Sampling(**given)
    further_fields.write(sampling, fields)
    return sampling


async def test_turns_have_geminis_roles_and_the_systems_words_stand_apart() -> None:
    stub = stub_of()
    response = await call(stub)
    assert stub.records[0].path == f"/v1beta/models/{MODEL}:generateContent"
    assert stub.records[0].body == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "one two three"}]},
            {"role": "model", "parts": [{"text": "four"}]},
            {"role": "user", "parts": [{"text": "five"}]},
        ],
        "generationConfig": {"temperature": 0},
    }
    assert response.parameters == '{"generationConfig":{"temperature":0}}'


@pytest.mark.parametrize(
    ("field", "value", "key"),
    [
        ("temperature", 0.7, "temperature"),
        ("top_p", 0.9, "topP"),
        ("top_k", 40, "topK"),
        ("max_tokens", 64, "maxOutputTokens"),
        ("seed", 3, "seed"),
    ],
)
async def test_each_parameter_is_sent_under_geminis_name(field: str, value: float, key: str) -> None:
    stub = stub_of()
    await call(stub, sampling_of(field, value))
    assert stub.records[0].body["generationConfig"] == {"temperature": 0.5, key: value}


@pytest.mark.parametrize("field", ["repeat_penalty", "min_p", "context_length"])
async def test_a_parameter_that_cannot_be_sent_is_refused_and_not_dropped(field: str) -> None:
    stub = stub_of()
    with pytest.raises(ProviderError) as caught:
        await call(stub, sampling_of(field, 1))
    assert caught.value.fatal
    assert caught.value.message == f"gemini does not take {field}. Leave it out of the job's parameters."
    assert stub.records == []


async def test_gemini_3_is_left_at_its_makers_temperature() -> None:
    stub = stub_of()
    response = await call(stub, model="gemini-3.1-pro")
    assert "generationConfig" not in stub.records[0].body
    assert response.parameters == "{}"


async def test_five_stop_sequences_are_sent() -> None:
    stub = stub_of()
    await call(stub, item=replace(ITEM, stop=tuple("abcdef")))
    assert stub.records[0].body["generationConfig"]["stopSequences"] == list("abcde")


@pytest.mark.parametrize(
    ("fields", "config"),
    [
        ({"thinkingBudget": 0}, {"thinkingConfig": {"thinkingBudget": 0}}),
        ({"thinkingLevel": "low", "includeThoughts": True},
         {"thinkingConfig": {"thinkingLevel": "low", "includeThoughts": True}}),
        ({"thinkingConfig": {"thinkingBudget": -1}}, {"thinkingConfig": {"thinkingBudget": -1}}),
        ({"responseMimeType": "text/plain"}, {"responseMimeType": "text/plain"}),
        ({"generationConfig": {"candidateCount": 1, "temperature": 1.5}}, {"candidateCount": 1}),
    ],
)  # fmt: skip
async def test_further_fields_join_the_generation_config(fields: dict[str, Any], config: dict[str, Any]) -> None:
    stub = stub_of()
    await call(stub, extra_of(fields, temperature=0.5))
    assert stub.records[0].body["generationConfig"] == {"temperature": 0.5, **config}


async def test_further_fields_of_the_body_stay_there() -> None:
    stub = stub_of()
    safety = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}]
    await call(stub, extra_of({"safetySettings": safety}))
    assert stub.records[0].body["safetySettings"] == safety


async def test_a_temperature_among_the_further_fields_is_not_overwritten() -> None:
    stub = stub_of()
    await call(stub, extra_of({"temperature": 0.9}))
    assert stub.records[0].body["generationConfig"] == {"temperature": 0.9}


async def test_thinking_set_in_both_ways_is_refused_before_the_call() -> None:
    stub = stub_of()
    with pytest.raises(ProviderError) as caught:
        await call(stub, extra_of({"thinkingBudget": 0, "thinkingLevel": "low"}))
    assert caught.value.fatal
    assert "either thinkingBudget or thinkingLevel" in caught.value.message
    assert stub.records == []
