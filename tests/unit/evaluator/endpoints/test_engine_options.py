"""The engine table of the endpoints file: what it may say, and what an engine may see of the evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.errors import InvalidRequestError
from services.evaluator.endpoints.engine_options import EngineModel, EngineOptions

COMMAND = ["serve", "{path}", "--name", "{model}", "--port", "{port}", "--host={host}"]


def read(environ: dict[str, str] | None = None, **table: Any) -> EngineOptions:
    return EngineOptions.read({"command": COMMAND, "models": ["/srv/a"], **table}, environ or {})


def test_a_command_is_filled_in_with_the_models_own_arguments_behind() -> None:
    options = read(models={"a": {"path": "/srv/models/a", "args": ["--max-model-len", "8192", "--alias={model}"]}})
    (model,) = options.models
    assert options.command_for(model, 4321) == [
        *("serve", "/srv/models/a", "--name", "a", "--port", "4321", "--host=127.0.0.1"),
        *("--max-model-len", "8192", "--alias=a"),
    ]


def test_json_in_a_command_passes_as_it_is() -> None:
    options = read(command=["serve", "{port}", '{"enable_thinking": false}', "{}"])
    assert options.command_for(options.models[0], 1)[2:] == ['{"enable_thinking": false}', "{}"]


def test_a_model_named_by_its_path_alone_is_called_by_the_last_part_and_a_hub_id_by_the_whole() -> None:
    options = read(models=["/srv/models/Qwen2.5-7B", "Qwen/Qwen2.5-7B", "/srv/q4_k_m.gguf"])
    assert [model.name for model in options.models] == ["Qwen2.5-7B", "Qwen/Qwen2.5-7B", "q4_k_m"]


def test_models_are_read_from_a_table_with_their_memory() -> None:
    options = read(models={"a": "/srv/a", "b": {"path": "/srv/b", "memory_gb": 18}, "org/c": {}})
    assert options.models == (
        EngineModel("a", "/srv/a"),
        EngineModel("b", "/srv/b", 18.0),
        EngineModel("org/c", "org/c"),
    )
    assert options.model("b") == options.models[1]
    assert options.model("z") is None


def test_a_server_that_knows_its_model_by_the_path_is_asked_by_the_path() -> None:
    options = read(served_as="{path}")
    assert options.request_name(options.models[0]) == "/srv/a"
    assert read().request_name(options.models[0]) == "a"


def test_absent_keys_have_their_documented_values() -> None:
    options = read()
    assert (options.api, options.health, options.device) == ("openai", "/health", "gpu")
    assert (options.start_timeout_s, options.stop_grace_s, options.idle_stop_s) == (600, 10, 0)
    assert options.state_dir == Path("var").absolute()
    assert read({"TOUCHSTONE_STATE_DIR": "/srv/state"}).state_dir == Path("/srv/state")


def test_an_engine_sees_no_secret_that_is_not_named() -> None:
    environ = {
        "PATH": "/bin",
        "CUDA_VISIBLE_DEVICES": "1",
        "HF_HOME": "/srv/hf",
        "HF_TOKEN": "secret",
        "VLLM_API_KEY": "secret",
        "OPENAI_API_KEY": "secret",
        "TOUCHSTONE_SERVICE_TOKEN": "secret",
        "UNRELATED": "x",
    }
    assert read(environ).env == {"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "1", "HF_HOME": "/srv/hf"}
    named = read(environ, pass_env=["HF_TOKEN", "ABSENT"], env={"PATH": "/opt/bin", "A": "b"})
    assert named.env == {
        **{"PATH": "/opt/bin", "CUDA_VISIBLE_DEVICES": "1", "HF_HOME": "/srv/hf"},
        **{"HF_TOKEN": "secret", "A": "b"},
    }
    assert "secret" not in repr(named)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"command": []}, "engine.command must be a list of strings"),
        ({"command": "vllm serve"}, "engine.command must be a list of strings; it is 'vllm serve'"),
        ({"command": ["serve", "{path}"]}, "engine.command must contain {port}"),
        ({"command": ["{port}", "{gpu}"]}, "engine.command contains {gpu}, which is not a known placeholder"),
        ({"models": []}, "engine.models must name at least one model"),
        ({"models": [1]}, "engine.models must be a table of models, or a list of paths"),
        ({"models": ["/a/x", "/b/x"]}, "engine.models has two models named x"),
        ({"models": {"a": 1}}, "engine.models.a must be a path, or a table"),
        ({"models": {"a": {"memory": 1}}}, "engine.models.a has 'memory', which is not known"),
        ({"models": {"a": {"memory_gb": -1}}}, "engine.models.a.memory_gb must be between 0 and 1,000,000; it is -1"),
        ({"models": {"a": {"args": "x"}}}, "engine.models.a.args must be a list of strings; it is 'x'"),
        ({"models": {"a": {"args": ["{x}"]}}}, "engine.models.a.args contains {x}, which is not a known placeholder"),
        ({"api": "ollama"}, "engine.api must be one of openai, vllm; it is 'ollama'"),
        ({"device": "tpu"}, "engine.device must be one of gpu, cpu; it is 'tpu'"),
        ({"health": "health"}, "engine.health must be a path"),
        ({"served_as": "{port}"}, "engine.served_as contains {port}, which is not a known placeholder"),
        ({"start_timeout_s": 0}, "engine.start_timeout_s must be between 0.001 and 604,800; it is 0"),
        ({"idle_stop_s": -1}, "engine.idle_stop_s must be between 0 and 604,800; it is -1"),
        ({"stop_grace_s": True}, "engine.stop_grace_s must be a number of seconds; it is True"),
        ({"env": {"A": 1}}, "engine.env has A = 1; write the value in quotes"),
        ({"pass_env": [1]}, "engine.pass_env must be a list of variable names"),
        ({"gpu": 1}, "engine.gpu is not known. Known keys: command, models"),
    ],
)
def test_a_wrong_table_is_refused_with_its_key_and_rule(table: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read(**table)
    assert caught.value.message.startswith(sentence)
    assert caught.value.field.startswith("engine.")
