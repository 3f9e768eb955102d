"""The endpoints file: what it may say, and the sentence for what it may not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from services import bus
from services.errors import InvalidRequestError
from services.evaluator.endpoints.endpoint import Endpoint, ModelEntry, load
from services.evaluator.endpoints.table import RESERVED
from touchstone.v1 import endpoint_pb2


def read(folder: Path, text: str, **environ: str) -> tuple[Endpoint, ...]:
    file = folder / "endpoints.toml"
    file.write_text(text)
    return load(file, environ)


def test_without_a_file_there_are_baselines_ollama_and_the_public_services() -> None:
    baseline, ollama, *public = load(None, {})
    assert (baseline.name, baseline.concurrency) == ("baseline", 8)
    assert (ollama.base_url, ollama.exclusive, ollama.configured) == ("http://127.0.0.1:11434", True, True)
    assert [(endpoint.name, endpoint.base_url, endpoint.api_key_env, endpoint.configured) for endpoint in public] == [
        ("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", False),
        ("gemini", "https://generativelanguage.googleapis.com/v1beta", "GOOGLE_API_KEY", False),
        ("grok", "https://api.x.ai/v1", "XAI_API_KEY", False),
        ("anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", False),
    ]


@pytest.mark.parametrize(
    ("kind", "label"),
    [("openai", "OpenAI"), ("gemini", "Gemini"), ("grok", "Grok"), ("anthropic", "Anthropic")],
)
def test_a_missing_key_is_told_in_the_words_of_the_api_document(kind: str, label: str) -> None:
    endpoint = next(endpoint for endpoint in load(None, {}) if endpoint.name == kind)
    assert endpoint.no_key == f"AI provider error: API key not configured for {label}"


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


def test_a_whole_entry_is_read(tmp_path: Path) -> None:
    text = """
        [[endpoint]]
        name = "vllm-a"
        kind = "openai"
        base_url = "http://10.0.0.7:8000/v1/"
        api_key_env = "VLLM_KEY"
        concurrency = 16
        requests_per_minute = 60
        max_model_b = 13
        models = ["a", "b"]
        exclusive = true
        timeout_s = 900
        prices = {input = 0.15, output = 0.6}
    """
    baseline, endpoint = read(tmp_path, text, VLLM_KEY="k")
    assert baseline.kind == "baseline"
    assert endpoint == Endpoint(
        "vllm-a",
        "openai",
        "http://10.0.0.7:8000/v1",
        "VLLM_KEY",
        "k",
        16,
        60,
        13.0,
        ("a", "b"),
        True,
        900.0,
        prices={"input": 0.15, "output": 0.6},
    )
    assert endpoint.address == "10.0.0.7:8000"


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


def test_the_tables_of_http_and_engine_are_read_and_their_errors_placed(tmp_path: Path) -> None:
    http = """
        [[endpoint]]
        name = "app"
        kind = "http"
        base_url = "http://h:1"
        [endpoint.http]
        request = {question = "{prompt}"}
    """
    engine = '[[endpoint]]\nname="gpu"\nkind="engine"\n[endpoint.engine]\ncommand=["s", "{path}", "{port}"]\n'
    app = read(tmp_path, http + 'answer = "$.text"')[1]
    assert app.http is not None
    assert app.http.request == {"question": "{prompt}"}
    gpu = read(tmp_path, engine + 'models = ["/m/a"]')[1]
    assert gpu.engine is not None
    assert (gpu.exclusive, gpu.base_url, gpu.engine.models[0].name) == (True, "", "a")
    for text in (http, engine, '[[endpoint]]\nname = "app"\nkind = "engine"'):
        with pytest.raises(InvalidRequestError, match=r"endpoints.toml, endpoint 1 \((app|gpu)\): "):
            read(tmp_path, text)


def test_openai_itself_needs_its_usual_key_and_other_servers_none(tmp_path: Path) -> None:
    text = '[[endpoint]]\nname="o"\nkind="openai"\n[[endpoint]]\nname="l"\nkind="openai"\nbase_url="http://h:1/v1"'
    _, official, local = read(tmp_path, text)
    assert not official.configured
    assert local.configured


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ('name = "A b"\nkind = "openai"', "name"),
        ('name = "plan"\nkind = "openai"', "name"),
        ('kind = "openai"', "name"),
        ('name = "a"', "kind"),
        ('name = "a"\nkind = "bard"', "kind"),
        ('name = "a"\nkind = "vllm"', "base_url"),
        ('name = "a"\nkind = "http"', "base_url"),
        ('name = "a"\nkind = "engine"\nbase_url = "http://h:1"', "base_url"),
        ('name = "a"\nkind = "openai"\nkeep_alive = "5m"', "keep_alive"),
        ('name = "a"\nkind = "openai"\napi = "chat"', "api"),
        ('name = "a"\nkind = "grok"\napi = "batch"', "api"),
        ('name = "a"\nkind = "openai"\nhttp = {}', "http"),
        ('name = "a"\nkind = "openai"\nengine = {}', "engine"),
        ('name = "a"\nkind = "openai"\nmodel = {m = 1}', "model"),
        ('name = "a"\nkind = "openai"\nmodel = {m = {greedy = 1}}', "greedy"),
        ('name = "a"\nkind = "openai"\nmodel = {m = {clever = true}}', "clever"),
        ('name = "a"\nkind = "openai"\nmodel = {m = {context_length = 0}}', "context_length"),
        ('name = "a"\nkind = "openai"\nmodel = {m = {parameters_b = -1}}', "parameters_b"),
        ('name = "a"\nkind = "openai"\nmodel = {m = {prices = {input = 1}}}', "prices"),
        ('name = "a"\nkind = "openai"\nprices = {input = -1, output = 1}', "prices"),
        ('name = "a"\nkind = "openai"\nbase_url = "localhost:8000"', "base_url"),
        ('name = "a"\nkind = "openai"\nbase_url = "http://a b"', "base_url"),
        ('name = "a"\nkind = "openai"\nbase_url = "http://a\\u0000b"', "base_url"),
        (f'name = "a"\nkind = "openai"\nbase_url = "http://{"a" * 2000}"', "base_url"),
        (f'name = "a"\nkind = "openai"\nconcurrency = 1{"0" * 400}', "concurrency"),
        (f'name = "{"a" * 5000}"\nkind = "openai"', "name"),
        ('name = "a"\nkind = "openai"\nconcurrency = 0', "concurrency"),
        ('name = "a"\nkind = "openai"\nconcurrency = true', "concurrency"),
        ('name = "a"\nkind = "openai"\nconcurrency = "8"', "concurrency"),
        ('name = "a"\nkind = "openai"\nrequests_per_minute = -1', "requests_per_minute"),
        ('name = "a"\nkind = "openai"\nmax_model_b = -1', "max_model_b"),
        ('name = "a"\nkind = "openai"\nmodels = [1]', "models"),
        ('name = "a"\nkind = "openai"\nexclusive = 1', "exclusive"),
        ('name = "a"\nkind = "openai"\ntimeout_s = 0', "timeout_s"),
        ('name = "a"\nkind = "openai"\nprices = {cheap = 1}', "prices"),
        ('name = "a"\nkind = "openai"\nretries = 3', "retries"),
    ],
)
def test_a_wrong_value_is_refused_naming_file_entry_and_key(tmp_path: Path, entry: str, key: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read(tmp_path, f"[[endpoint]]\n{entry}\n")
    assert caught.value.field == key
    assert str(tmp_path / "endpoints.toml") in caught.value.message
    assert "endpoint 1" in caught.value.message
    assert key in caught.value.message
    assert len(caught.value.message) < 600 + len(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[endpoint", "is not valid TOML"),
        ("[endpoint]\nname = 'a'", "with two brackets"),
        ("[[endpoints]]\nname = 'a'", "'endpoints' is not known"),
        ("[[endpoint]]\nname='a'\nkind='ollama'\n[[endpoint]]\nname='a'\nkind='ollama'", "two endpoints have the name"),
        ("endpoint = " + "[" * 5000 + "]" * 5000, "is not valid TOML: it has too many brackets within brackets"),
        (
            "".join(f"[[endpoint]]\nname='e{n}'\nkind='ollama'\n" for n in range(401)),
            "has 401 endpoints. The most are 400",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_a_sentence(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InvalidRequestError, match=words):
        read(tmp_path, text)


def test_a_missing_file_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="which cannot be read"):
        load(tmp_path / "absent.toml", {})


@pytest.mark.parametrize("page", ["endpoints.md", "engines.md"])
def test_every_example_of_the_documentation_is_read(tmp_path: Path, page: str) -> None:
    text = (Path(__file__).parents[3] / "docs" / page).read_text(encoding="utf-8")
    examples = [part for part in re.findall(r"```toml\n(.*?)```", text, re.DOTALL) if "[[endpoint]]" in part]
    assert examples
    for example in examples:
        assert len(read(tmp_path, example)) > 1


def test_no_endpoint_may_have_a_name_that_the_bus_uses(tmp_path: Path) -> None:
    assert {bus.PLAN_ENDPOINT, bus.STORED_ENDPOINT, *bus.IMPORTED_ENDPOINTS} == RESERVED
    with pytest.raises(InvalidRequestError, match="inspect is reserved"):
        read(tmp_path, '[[endpoint]]\nname = "inspect"\nkind = "ollama"\n')
