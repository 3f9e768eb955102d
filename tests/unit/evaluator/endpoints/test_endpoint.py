"""An endpoint: its key, its address, what is said of its models."""

from __future__ import annotations

from pathlib import Path

import pytest

from services import bus
from services.errors import InvalidRequestError
from services.evaluator.endpoints.endpoint import Endpoint, ModelEntry, load
from services.evaluator.endpoints.table import RESERVED
from tests.unit.evaluator.endpoints.files import read
from touchstone.v1 import endpoint_pb2


@pytest.mark.parametrize(
    ("kind", "environ", "variable"),
    [
        ("openai", {"OPENAI_API_KEY": "right"}, "OPENAI_API_KEY"),
        ("gemini", {"GEMINI_API_KEY": "right"}, "GEMINI_API_KEY"),
        ("gemini", {"GOOGLE_API_KEY": "right", "GEMINI_API_KEY": "other"}, "GOOGLE_API_KEY"),
        ("gemini", {"GOOGLE_API_KEY": " ", "GEMINI_API_KEY": "right"}, "GEMINI_API_KEY"),
        ("grok", {"GROK_API_KEY": "right"}, "GROK_API_KEY"),
        ("grok", {"XAI_API_KEY": "right", "GROK_API_KEY": "other"}, "XAI_API_KEY"),
        ("anthropic", {"ANTHROPIC_API_KEY": "right"}, "ANTHROPIC_API_KEY"),
    ],
)
def test_every_usual_name_of_a_key_is_read(kind: str, environ: dict[str, str], variable: str) -> None:
    endpoint = next(endpoint for endpoint in load(None, environ) if endpoint.name == kind)
    assert (endpoint.api_key_env, endpoint.api_key, endpoint.configured) == (variable, "right", True)


def test_the_key_is_read_from_its_variable_and_never_shown() -> None:
    openai = load(None, {"OPENAI_API_KEY": "sk-secret"})[2]
    assert openai.configured
    assert openai.api_key == "sk-secret"
    assert "sk-secret" not in repr(openai)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("10.0.0.7", "http://10.0.0.7:11434"),
        ("10.0.0.7:9000", "http://10.0.0.7:9000"),
        ("0.0.0.0:9000", "http://127.0.0.1:9000"),
        (":9000", "http://127.0.0.1:9000"),
        ("https://gpu.example/ollama/", "https://gpu.example:443/ollama"),
        ("[::1]:9000", "http://[::1]:9000"),
    ],
)
def test_ollama_host_is_read_as_ollama_reads_it(host: str, url: str) -> None:
    assert load(None, {"OLLAMA_HOST": host})[1].base_url == url


def test_a_public_services_key_is_not_sent_to_another_host(tmp_path: Path) -> None:
    urls = {"gemini": "https://generativelanguage.googleapis.com/v1", "grok": "https://api.x.ai.example/v1"}
    text = "".join(f'[[endpoint]]\nname="{k}"\nkind="{k}"\nbase_url="{url}"\n' for k, url in urls.items())
    _, gemini, grok = read(tmp_path, text, GOOGLE_API_KEY="g", XAI_API_KEY="x")
    assert gemini.api_key == "g"
    assert (grok.api_key_env, grok.api_key) == ("", "")


def test_what_is_said_of_models_is_found_by_name_first_and_pattern_second(tmp_path: Path) -> None:
    text = """
        [[endpoint]]
        name = "v"
        kind = "vllm"
        base_url = "http://h:1/v1"
        [endpoint.model."qwen3-*"]
        reasoning = true
        greedy = false
        context_length = 32768
        [endpoint.model."qwen3-8b"]
        loglikelihood = true
        parameters_b = 8
        digest = "sha256:0f"
        prices = {input = 1, output = 2}
        [endpoint.model."*"]
        stop = false
    """
    endpoint = read(tmp_path, text)[1]

    def said(model: str) -> ModelEntry:
        entry = endpoint.entry(model)
        assert entry is not None
        return entry

    exact, family, other = said("qwen3-8b"), said("qwen3-70b"), said("llama")
    assert (exact.parameters_b, exact.digest, exact.prices) == (8.0, "sha256:0f", {"input": 1.0, "output": 2.0})
    assert exact.capabilities == endpoint_pb2.Capabilities(loglikelihood=True)
    assert family.capabilities == endpoint_pb2.Capabilities(reasoning=True, greedy=False)
    assert family.context_length == 32768
    assert other.capabilities == endpoint_pb2.Capabilities(stop=False)
    assert Endpoint("v", "vllm").entry("qwen3-8b") is None


def test_openai_itself_needs_its_usual_key_and_other_servers_none(tmp_path: Path) -> None:
    text = '[[endpoint]]\nname="o"\nkind="openai"\n[[endpoint]]\nname="l"\nkind="openai"\nbase_url="http://h:1/v1"'
    _, official, local = read(tmp_path, text)
    assert not official.configured
    assert local.configured


def test_no_endpoint_may_have_a_name_that_the_bus_uses(tmp_path: Path) -> None:
    assert {bus.PLAN_ENDPOINT, bus.STORED_ENDPOINT, *bus.IMPORTED_ENDPOINTS} == RESERVED
    with pytest.raises(InvalidRequestError, match="not reserved; it is 'inspect'"):
        read(tmp_path, '[[endpoint]]\nname = "inspect"\nkind = "ollama"\n')
