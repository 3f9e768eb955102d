"""The endpoints file: what it may say, and the sentence for what it may not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from services.errors import InvalidRequestError
from services.evaluator.endpoints.endpoint import Endpoint, load
from tests.unit.evaluator.endpoints.files import read


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
    assert endpoint.unusable == f"AI provider error: API key not configured for {label}"


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


def test_an_endpoint_whose_package_is_gone_is_disabled_and_says_what_to_install(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gone = '[[endpoint]]\nname = "adds"\nkind = "calculator"\n[endpoint.options]\noff_by = 1\n'
    baseline, adds, ollama = read(tmp_path, f'{gone}[[endpoint]]\nname = "here"\nkind = "ollama"\n')

    assert [baseline.configured, adds.configured, ollama.configured] == [True, False, True]
    assert adds.unusable.startswith(
        "adds cannot be used: No installed package offers the kind calculator. Install the package whose entry point "
        "in touchstone.providers has that name and restart the evaluator, or set kind to one of baseline, "
    )
    assert adds.unusable in caplog.text


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ('name = "A b"\nkind = "openai"', "name"),
        ('name = "plan"\nkind = "openai"', "name"),
        ('kind = "openai"', "name"),
        ('name = "a"', "kind"),
        ('name = "a"\nkind = "Bard 2"', "kind"),
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
        ("endpoint = " + "[" * 5000 + "]" * 5000, "is not valid TOML: it is nested too deeply"),
        (
            "".join(f"[[endpoint]]\nname='e{n}'\nkind='ollama'\n" for n in range(401)),
            "has 401 endpoints; at most 400 are allowed",
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
    text = (Path(__file__).parents[4] / "docs" / page).read_text(encoding="utf-8")
    examples = [part for part in re.findall(r"```toml\n(.*?)```", text, re.DOTALL) if "[[endpoint]]" in part]
    assert examples
    for example in examples:
        assert len(read(tmp_path, example)) > 1
