"""The `[endpoint.engine]` table of the endpoints file: which command serves which models.

    [[endpoint]]
    name = "gpu0"
    kind = "engine"                      # exclusive unless said otherwise

    [endpoint.engine]
    command = ["vllm", "serve", "{path}", "--served-model-name", "{model}", "--host", "{host}", "--port", "{port}"]
    api = "vllm"                         # its protocol: "openai" or "vllm"
    served_as = "{model}"                # the model's name in requests; "{path}" for transformers serve
    health = "/health"                   # answers 200 once the model is ready
    device = "gpu"                       # whose free memory counts: "gpu" or "cpu"
    start_timeout_s = 600                # until healthy, loading included
    stop_grace_s = 10                    # from SIGTERM to SIGKILL
    idle_stop_s = 0                      # stops an engine after this time without calls; 0 keeps it
    directory = "/srv/models"            # where the command runs; absent means the state directory
    env = {VLLM_LOGGING_LEVEL = "WARNING"}
    pass_env = ["HF_TOKEN"]              # further variables of the evaluator that the engine may see

    [endpoint.engine.models."qwen2.5-7b"]
    path = "/srv/models/Qwen2.5-7B-Instruct"
    memory_gb = 18                       # free memory it needs to start, in GB of 10^9 bytes; 0 means no check
    args = ["--max-model-len", "8192"]   # added to the command

`models` may also be a list of paths or Hub ids: a path's last part, or the whole id, is then the model's name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from services import environment
from services.errors import InvalidRequestError

APIS = ("openai", "vllm")
DEVICES = ("gpu", "cpu")
PLACEHOLDERS = ("model", "path", "host", "port")
HOST = "127.0.0.1"

_PASSED = frozenset({
    "CONDA_PREFIX", "HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "SHELL", "SSL_CERT_DIR",
    "SSL_CERT_FILE", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV", "XDG_CACHE_HOME",
})  # fmt: skip
_PASSED_PREFIXES = ("LC_", "HF_", "CUDA_", "NVIDIA_", "NCCL_", "HIP_", "ROCR_", "OMP_", "MKL_", "TORCH_", "VLLM_")
_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSWORD|CREDENTIAL")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class EngineModel:
    """A model that the engine can serve. `memory_gb` is in 10^9 bytes, 0 where it is not known."""

    name: str
    path: str
    memory_gb: float = 0.0
    args: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How an engine is started and stopped. Fields as in the file; `env` is the engine's whole environment.

    `state_dir` holds its log and the record of its processes.
    """

    command: tuple[str, ...]
    models: tuple[EngineModel, ...]
    api: str = "openai"
    served_as: str = "{model}"
    health: str = "/health"
    device: str = "gpu"
    start_timeout_s: float = 600.0
    stop_grace_s: float = 10.0
    idle_stop_s: float = 0.0
    directory: Path | None = None
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    state_dir: Path = Path("var")

    @classmethod
    def read(cls, table: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> EngineOptions:
        """Raises InvalidRequestError with a sentence that begins with the wrong key."""
        for key, value in table.items():
            if key not in _TYPES:
                raise _wrong(key, f"is not known. Known keys: {', '.join(_TYPES)}.")
            types, rule = _TYPES[key]
            if not isinstance(value, types) or (isinstance(value, bool) and types is not bool):
                raise _wrong(key, f"must be {rule}; it is {value!r}.")
        for key, choices in (("api", APIS), ("device", DEVICES)):
            if key in table and table[key] not in choices:
                raise _wrong(key, f"must be one of {', '.join(choices)}; it is {table[key]!r}.")
        if not str(table.get("health", "/")).startswith("/"):
            raise _wrong("health", f"must be a path such as /health or /v1/models; it is {table['health']!r}.")
        for key, least, most in _RANGES:
            if not least <= table.get(key, least) <= most:
                raise _wrong(key, f"must be between {least:,g} and {most:,}; it is {table[key]!r}.")
        served_as = table.get("served_as", "{model}")
        _check_placeholders("served_as", served_as, ("model", "path"))
        return cls(
            command=_command(table.get("command")),
            models=_models(table.get("models")),
            api=table.get("api", "openai"),
            served_as=served_as,
            health=table.get("health", "/health"),
            device=table.get("device", "gpu"),
            start_timeout_s=float(table.get("start_timeout_s", 600)),
            stop_grace_s=float(table.get("stop_grace_s", 10)),
            idle_stop_s=float(table.get("idle_stop_s", 0)),
            directory=Path(table["directory"]) if "directory" in table else None,
            env=MappingProxyType(_environment(table, environ)),
            state_dir=Path(environment.text("TOUCHSTONE_STATE_DIR", "var", environ)).expanduser().absolute(),
        )

    def model(self, name: str) -> EngineModel | None:
        return next((model for model in self.models if model.name == name), None)

    def command_for(self, model: EngineModel, port: int) -> list[str]:
        """The command with its placeholders filled in and the model's own arguments at its end."""
        return [_fill(word, model, port) for word in (*self.command, *model.args)]

    def request_name(self, model: EngineModel) -> str:
        """What the engine calls the model."""
        return _fill(self.served_as, model, 0)


_RANGES = (("start_timeout_s", 0.001, 604_800), ("stop_grace_s", 0, 3600), ("idle_stop_s", 0, 604_800))
"""Keys with their minimum and maximum seconds."""
_MOST_MEMORY_GB = 1_000_000
_TYPES: dict[str, tuple[type | tuple[type, ...], str]] = {
    "command": (list, "a list of strings"),
    "models": ((list, dict), "a table of models, or a list of paths"),
    "api": (str, "a text"),
    "served_as": (str, "a text"),
    "health": (str, "a path such as /health"),
    "device": (str, "a text"),
    "start_timeout_s": ((int, float), "a number of seconds"),
    "stop_grace_s": ((int, float), "a number of seconds"),
    "idle_stop_s": ((int, float), "a number of seconds"),
    "directory": (str, "a folder"),
    "env": (dict, "a table of strings"),
    "pass_env": (list, "a list of names"),
}


def _wrong(key: str, what: str) -> InvalidRequestError:
    return InvalidRequestError(f"engine.{key} {what}", field=f"engine.{key}")


def _command(words: object) -> tuple[str, ...]:
    if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
        raise _wrong("command", 'must be a list of strings, such as ["vllm", "serve", "{path}", "--port", "{port}"].')
    for word in words:
        _check_placeholders("command", word, PLACEHOLDERS)
    if not any("{port}" in word for word in words):
        raise _wrong("command", "must contain {port}: the evaluator chooses a free port at each start.")
    return tuple(words)


def _check_placeholders(key: str, text: str, known: tuple[str, ...]) -> None:
    for name in _PLACEHOLDER.findall(text):
        if name not in known:
            shown = ", ".join(f"{{{placeholder}}}" for placeholder in known)
            raise _wrong(key, f"contains {{{name}}}, which is not a known placeholder. Known placeholders: {shown}.")


def _fill(text: str, model: EngineModel, port: int) -> str:
    values = {"model": model.name, "path": model.path, "host": HOST, "port": str(port)}
    return _PLACEHOLDER.sub(lambda found: values[found[1]], text)


def _models(given: object) -> tuple[EngineModel, ...]:
    if isinstance(given, list) and all(isinstance(path, str) and path for path in given):
        models = [EngineModel(_name_of(path), path) for path in given]
    elif isinstance(given, dict):
        models = [_model(name, entry) for name, entry in given.items()]
    else:
        raise _wrong("models", "must be a table of models, or a list of paths.")
    if not models:
        raise _wrong("models", "must name at least one model.")
    names = [model.name for model in models]
    for name in names:
        if names.count(name) > 1:
            raise _wrong("models", f"has two models named {name}. Write them as a table and give each its own name.")
    return tuple(models)


def _name_of(path: str) -> str:
    """A Hub id is its own name; a path's name is its last part without the format's suffix."""
    if re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", path):
        return path
    return Path(path).name.removesuffix(".gguf")


def _model(name: str, entry: object) -> EngineModel:
    where = f"models.{name}"
    if isinstance(entry, str) and name and entry:
        return EngineModel(name, entry)
    if not isinstance(entry, dict) or not name:
        raise _wrong(where, 'must be a path, or a table such as {path = "/srv/models/a", memory_gb = 18}.')
    for key in entry.keys() - {"path", "memory_gb", "args"}:
        raise _wrong(where, f"has {key!r}, which is not known. Known keys: path, memory_gb, args.")
    path, memory_gb, args = entry.get("path", name), entry.get("memory_gb", 0), entry.get("args", [])
    if not isinstance(path, str) or not path:
        raise _wrong(f"{where}.path", f"must be a folder, a file or a Hub id; it is {path!r}.")
    number = isinstance(memory_gb, int | float) and not isinstance(memory_gb, bool)
    if not number or not 0 <= memory_gb <= _MOST_MEMORY_GB:
        raise _wrong(f"{where}.memory_gb", f"must be between 0 and {_MOST_MEMORY_GB:,}; it is {memory_gb!r}.")
    if not isinstance(args, list) or not all(isinstance(word, str) for word in args):
        raise _wrong(f"{where}.args", f"must be a list of strings; it is {args!r}.")
    for word in args:
        _check_placeholders(f"{where}.args", word, PLACEHOLDERS)
    return EngineModel(name, path, float(memory_gb), tuple(args))


def _environment(table: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, str]:
    """The engine's environment: a few plain variables, those that the file names, and those that the file sets.

    Never a variable that looks like a secret unless the file names it: the evaluator holds every provider's key, and an
    engine runs code that comes with models.
    """
    wanted = table.get("pass_env", [])
    own: dict[str, str] = table.get("env", {})
    if not all(isinstance(name, str) for name in wanted):
        raise _wrong("pass_env", "must be a list of variable names.")
    for name, value in own.items():
        if not isinstance(value, str):
            raise _wrong("env", f"has {name} = {value!r}; write the value in quotes.")
    passed = {
        name: value
        for name, value in environ.items()
        if name in wanted or ((name in _PASSED or name.startswith(_PASSED_PREFIXES)) and not _SECRET.search(name))
    }
    return passed | own
