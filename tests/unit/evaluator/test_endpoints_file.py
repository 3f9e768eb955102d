"""The endpoints file: what it may say, and the sentence for what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.errors import InvalidRequestError
from services.evaluator.endpoints import Endpoint, load


def read(folder: Path, text: str, **environ: str) -> tuple[Endpoint, ...]:
    file = folder / "endpoints.toml"
    file.write_text(text)
    return load(file, environ)


def test_without_a_file_there_are_baselines_ollama_and_openai() -> None:
    baseline, ollama, openai = load(None, {})
    assert (baseline.name, baseline.concurrency) == ("baseline", 8)
    assert (ollama.base_url, ollama.exclusive) == ("http://127.0.0.1:11434", True)
    assert (openai.base_url, openai.api_key_env, openai.configured) == (
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        False,
    )


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
        ('name = "a"\nkind = "gemini"', "kind"),
        ('name = "a"\nkind = "openai"\nbase_url = "localhost:8000"', "base_url"),
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[endpoint", "is not valid TOML"),
        ("[endpoint]\nname = 'a'", "with two brackets"),
        ("[[endpoints]]\nname = 'a'", "'endpoints' is not known"),
        ("[[endpoint]]\nname='a'\nkind='ollama'\n[[endpoint]]\nname='a'\nkind='ollama'", "two endpoints have the name"),
    ],
)
def test_a_wrong_file_is_refused_with_a_sentence(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InvalidRequestError, match=words):
        read(tmp_path, text)


def test_a_missing_file_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="which cannot be read"):
        load(tmp_path / "absent.toml", {})
