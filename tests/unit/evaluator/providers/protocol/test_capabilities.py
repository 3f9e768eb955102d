"""What is known of models, whose word counts, and what a job's parameters become."""

from __future__ import annotations

import json

import pytest

from services import further_fields
from services.evaluator.endpoints.endpoint import Endpoint, ModelEntry
from services.evaluator.providers.protocol.capabilities import capabilities, resolve
from services.evaluator.providers.protocol.provider import ProviderError
from touchstone.v1 import job_pb2
from touchstone.v1.endpoint_pb2 import Capabilities

OPEN = Capabilities()


@pytest.mark.parametrize(
    ("kind", "model", "known"),
    [
        ("openai", "gpt-4o-mini", Capabilities(loglikelihood=False)),
        ("openai", "llama-3.1-8b", OPEN),
        ("openai", "gpt-j-6b", OPEN),
        ("openai", "gpt-oss-20b", Capabilities(reasoning=True)),
        ("openai", "qwen2.5-7b-instruct", OPEN),
        ("vllm", "meta-llama/Llama-3.1-8B", Capabilities(loglikelihood=True)),
        ("ollama", "qwen3:8b", Capabilities(greedy=False, reasoning=True, loglikelihood=False)),
        ("ollama", "qwen3-coder:30b", Capabilities(loglikelihood=False)),
        ("vllm", "Qwen/Qwen3-4B-Instruct-2507", Capabilities(loglikelihood=True)),
        ("grok", "grok-3", Capabilities(reasoning=False, stop=False, loglikelihood=False)),
        ("grok", "grok-3-mini", Capabilities(greedy=False, reasoning=True, stop=False, loglikelihood=False)),
        ("grok", "grok-4.20-non-reasoning", Capabilities(reasoning=False, stop=False, loglikelihood=False)),
        ("gemini", "gemini-2.0-flash", Capabilities(loglikelihood=False)),
        ("gemini", "gemini-2.5-pro", Capabilities(reasoning=True, loglikelihood=False)),
        ("gemini", "gemini-3.1-pro-preview", Capabilities(greedy=False, reasoning=True, loglikelihood=False)),
        ("gemini", "gemini-flash-latest", Capabilities(greedy=False, reasoning=True, loglikelihood=False)),
    ],
)
def test_families_are_known_by_kind_and_name(kind: str, model: str, known: Capabilities) -> None:
    assert capabilities(Endpoint("e", kind), model) == known


def test_groks_newer_protocol_takes_no_stop_strings() -> None:
    assert not capabilities(Endpoint("e", "grok"), "grok-3").stop
    assert not capabilities(Endpoint("e", "grok", api="chat"), "grok-3").HasField("stop")


@pytest.mark.parametrize("model", ["o1", "o3-mini", "o4-mini-2025-04-16", "gpt-5", "gpt-5.4-mini", "openai/gpt-6"])
def test_openais_reasoning_models_fix_their_sampling(model: str) -> None:
    known = capabilities(Endpoint("e", "openai"), model)
    assert known == Capabilities(greedy=False, reasoning=True, stop=False, sampling=False, loglikelihood=False)


@pytest.mark.parametrize("model", ["gpt-5-chat-latest", "gpt-4.1", "olmo-2-7b", "o-lang"])
def test_other_models_are_not_taken_for_them(model: str) -> None:
    assert not capabilities(Endpoint("e", "openai"), model).reasoning


@pytest.mark.parametrize(
    "model",
    [
        "claude-2.1",
        "claude-3-haiku-20240307",
        "claude-3-5-sonnet-20241022",
        "claude-sonnet-4-20250514",
        "claude-opus-4-1-20250805",
        "claude-sonnet-4-5",
        "claude-haiku-4-5-20251001",
        "claude-opus-4-6",
    ],
)
def test_older_claudes_take_sampling_parameters(model: str) -> None:
    assert capabilities(Endpoint("e", "anthropic"), model) == Capabilities(seed=False, loglikelihood=False)


@pytest.mark.parametrize("model", ["claude-opus-4-7", "claude-sonnet-5", "claude-opus-5-5", "claude-fable-5-1"])
def test_newer_and_unknown_claudes_do_not(model: str) -> None:
    known = capabilities(Endpoint("e", "anthropic"), model)
    assert (known.HasField("sampling"), known.sampling, known.greedy) == (True, False, False)


def test_configured_wins_over_listed_and_listed_over_known() -> None:
    listed = Capabilities(sampling=True, stop=True)
    endpoint = Endpoint("e", "openai", model_entries=(ModelEntry("gpt-5*", Capabilities(stop=False, greedy=True)),))
    found = capabilities(endpoint, "gpt-5", listed)
    assert found == Capabilities(greedy=True, reasoning=True, stop=False, sampling=True, loglikelihood=False)
    assert listed == Capabilities(sampling=True, stop=True)


@pytest.mark.parametrize(
    ("sampling", "takes", "repeats", "parameters"),
    [
        (job_pb2.Sampling(), OPEN, 1, {"temperature": 0}),
        (job_pb2.Sampling(temperature=0.7), OPEN, 1, {"temperature": 0.7}),
        (job_pb2.Sampling(max_tokens=8), OPEN, 1, {"max_tokens": 8, "temperature": 0}),
        (job_pb2.Sampling(), OPEN, 4, {}),
        (job_pb2.Sampling(temperature=0), OPEN, 4, {"temperature": 0}),
        (job_pb2.Sampling(top_p=0.9), OPEN, 1, {"top_p": 0.9}),
        (job_pb2.Sampling(top_k=40), OPEN, 1, {"top_k": 40}),
        (job_pb2.Sampling(min_p=0.1), OPEN, 1, {"min_p": 0.1}),
        (job_pb2.Sampling(), Capabilities(greedy=False), 1, {}),
        (job_pb2.Sampling(temperature=0), Capabilities(greedy=False), 1, {"temperature": 0}),
        (job_pb2.Sampling(max_tokens=8), Capabilities(sampling=False), 1, {"max_tokens": 8}),
        (job_pb2.Sampling(repeat_penalty=1), OPEN, 1, {"repeat_penalty": 1, "temperature": 0}),
    ],
)
def test_what_a_job_leaves_open_follows_the_policy(
    sampling: job_pb2.Sampling, takes: Capabilities, repeats: int, parameters: dict[str, float]
) -> None:
    assert resolve(sampling, takes, 0, repeats).parameters == parameters


def test_each_repeat_has_its_own_seed() -> None:
    assert [resolve(job_pb2.Sampling(seed=7), OPEN, r, 3).parameters["seed"] for r in range(3)] == [7, 8, 9]


@pytest.mark.parametrize(
    ("sampling", "takes", "words", "which"),
    [
        (job_pb2.Sampling(temperature=1), Capabilities(sampling=False), "temperature", "it"),
        (job_pb2.Sampling(top_p=1, top_k=2), Capabilities(sampling=False), "top_p and top_k", "them"),
        (job_pb2.Sampling(seed=0), Capabilities(seed=False), "seed", "it"),
    ],
)
def test_a_refused_parameter_fails_the_job_and_is_named(
    sampling: job_pb2.Sampling, takes: Capabilities, words: str, which: str
) -> None:
    with pytest.raises(ProviderError) as caught:
        resolve(sampling, takes, model="m")
    assert caught.value.fatal
    assert caught.value.message == f"m does not take {words}. Leave {which} out of the job's parameters."


@pytest.mark.parametrize(
    ("takes", "stop"),
    [
        (OPEN, True),
        (Capabilities(stop=False), False),
        (Capabilities(reasoning=True), False),
        (Capabilities(reasoning=True, stop=True), True),
    ],
)
def test_stop_sequences_are_kept_from_models_that_think_unless_they_are_known_to_take_them(
    takes: Capabilities, stop: bool
) -> None:
    assert resolve(job_pb2.Sampling(), takes).stop == stop


def test_the_record_is_canonical_and_has_further_fields_apart() -> None:
    sampling = job_pb2.Sampling(temperature=0.5, max_tokens=4)
    further_fields.write(sampling, {"b": 2.0, "a": [1.5, {"x": 1}]})
    resolved = resolve(sampling, OPEN)
    assert resolved.json == '{"extra":{"a":[1.5,{"x":1}],"b":2.0},"max_tokens":4,"temperature":0.5}'
    assert json.loads(resolve(job_pb2.Sampling(), OPEN).json) == {"temperature": 0}
