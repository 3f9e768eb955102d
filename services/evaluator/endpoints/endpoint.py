"""Configured ways to reach models: the endpoints file, or sensible defaults without one.

The file is TOML, one `[[endpoint]]` table per endpoint:

    [[endpoint]]
    name = "vllm-a"                      # [a-z0-9-]{1,40}, unique; reserved: plan, stored, lm_eval, inspect
    kind = "vllm"                        # ollama, openai, vllm, grok, gemini, anthropic, http, engine
    base_url = "http://10.0.0.7:8000/v1" # ollama, openai, grok, gemini and anthropic have a usual one
    api_key_env = "VLLM_KEY"             # variable that holds the key; keys are never written here
    concurrency = 16                     # calls at once of each evaluator
    requests_per_minute = 0              # over all evaluators; 0 means no limit
    max_model_b = 0.0                    # largest model in billions of parameters; 0 means any
    models = ["a", "b"]                  # instead of asking the server
    exclusive = false                    # one job at a time; true by default for ollama and engine
    timeout_s = 300.0                    # a whole call; 900 by default for grok
    first_byte_s = 0.0                   # longest silence within a call; 0 means `timeout_s`
    keep_alive = "5m"                    # ollama: how long the model stays loaded; absent leaves it to the server
    api = "responses"                    # grok: "responses" for /responses, "chat" for /chat/completions
    prices = {input = 0.15, output = 0.6}  # US dollars per million tokens; batch_share = 0.5 is the share
                                         # of them paid in the provider's batch API
    list_prices = true                   # public list prices where no others are known: providers/list_prices.toml
    batch = {rows = 5000, megabytes = 50, at_once = 4}  # openai, gemini: most of one batch, and batches under way

    [endpoint.model."qwen3-*"]           # facts about models: an exact name wins, else the first pattern that fits
    greedy = false                       # these six as in endpoint.proto's Capabilities; absent means unknown
    reasoning = true
    stop = true
    seed = true
    sampling = true
    loglikelihood = true
    context_length = 32768               # tokens
    parameters_b = 8.2                   # billions
    digest = "sha256:0f3a"               # of the weights, where the server does not give it
    prices = {input = 0.1, output = 0.4}

    [endpoint.http]                      # kind http only: services/evaluator/endpoints/http_options.py
    [endpoint.engine]                    # kind engine only: services/evaluator/endpoints/engine_options.py
    [endpoint.options]                   # kinds of plug-ins only: whatever the plug-in reads
"""

from __future__ import annotations

import logging
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from services.errors import InvalidRequestError
from services.evaluator.endpoints import table
from services.evaluator.endpoints.batch_options import BatchOptions
from services.evaluator.endpoints.engine_options import EngineOptions
from services.evaluator.endpoints.http_options import HttpOptions
from services.words.endpoints import no_key
from touchstone.v1 import endpoint_pb2

log = logging.getLogger(__name__)

_MOST_ENDPOINTS = 400
"""Each has up to two consumers on WORK, and NATS gives a stream 1,000."""


def _no_prices() -> Mapping[str, float]:
    return MappingProxyType({})


def _no_options() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """What the file says about the models whose names fit `pattern`; zero and empty mean not given."""

    pattern: str
    capabilities: endpoint_pb2.Capabilities = field(default_factory=endpoint_pb2.Capabilities)
    context_length: int = 0
    parameters_b: float = 0.0
    digest: str = ""
    prices: Mapping[str, float] = field(default_factory=_no_prices)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One configured endpoint. Fields as in the file; `base_url` has no slash at its end.

    `api_key_env` is the variable that holds the key: the first of the usual ones that is set.
    `problem` says why the endpoint cannot be used, whatever its key is; empty for others.
    """

    name: str
    kind: str
    base_url: str = ""
    api_key_env: str = ""
    api_key: str = field(default="", repr=False)
    concurrency: int = 8
    requests_per_minute: int = 0
    max_model_b: float = 0.0
    models: tuple[str, ...] = ()
    exclusive: bool = False
    timeout_s: float = 300.0
    first_byte_s: float = 0.0
    keep_alive: str | int | None = None
    prices: Mapping[str, float] = field(default_factory=_no_prices)
    api: str = "responses"
    model_entries: tuple[ModelEntry, ...] = ()
    http: HttpOptions | None = None
    engine: EngineOptions | None = None
    batch: BatchOptions = field(default_factory=BatchOptions)
    list_prices: bool = True
    options: Mapping[str, Any] = field(default_factory=_no_options)
    problem: str = ""

    @property
    def configured(self) -> bool:
        """False while the key it names is not set, and while it cannot be used."""
        return not self.problem and (not self.api_key_env or bool(self.api_key))

    @property
    def unusable(self) -> str:
        """The error of a job while it is not configured (spec: "API Provider Errors")."""
        return f"{self.name} cannot be used: {self.problem}" if self.problem else no_key(self.name, self.kind)

    @property
    def address(self) -> str:
        """Host and port as users know them."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2]

    def entry(self, model: str) -> ModelEntry | None:
        """What the file says about a model: the entry with its exact name, else the first whose pattern fits."""
        exact = (entry for entry in self.model_entries if entry.pattern == model)
        fitting = (entry for entry in self.model_entries if fnmatchcase(model, entry.pattern))
        return next(exact, None) or next(fitting, None)


BASELINE = Endpoint("baseline", "baseline")


def load(
    file: Path | None,
    environ: Mapping[str, str] = os.environ,
    further: table.FurtherKinds = table.NO_FURTHER_KINDS,
) -> tuple[Endpoint, ...]:
    """Every endpoint of this evaluator, `baseline` first. Raises InvalidRequestError naming file, entry and key."""
    if file is None:
        return (BASELINE, *_defaults(environ))
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidRequestError(
            f"TOUCHSTONE_ENDPOINTS names {file}, which cannot be read: {error.strerror}."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidRequestError(f"{file} is not valid TOML: {error}.") from error
    except RecursionError as error:
        raise InvalidRequestError(f"{file} is not valid TOML: it is nested too deeply.") from error
    for key in document.keys() - {"endpoint"}:
        raise InvalidRequestError(f"{file}: {key!r} is not known. Write each endpoint as [[endpoint]].")
    tables = document.get("endpoint", [])
    if not isinstance(tables, list) or not all(isinstance(values, dict) for values in tables):
        raise InvalidRequestError(f"{file}: write each endpoint as [[endpoint]], with two brackets.")
    if len(tables) > _MOST_ENDPOINTS:
        raise InvalidRequestError(f"{file} has {len(tables):,} endpoints; at most {_MOST_ENDPOINTS} are allowed.")
    endpoints = [
        _endpoint(table.read(values, f"{file}, endpoint {number}", environ, further))
        for number, values in enumerate(tables, 1)
    ]
    if not any(endpoint.kind == "baseline" for endpoint in endpoints):
        endpoints.insert(0, BASELINE)
    names = [endpoint.name for endpoint in endpoints]
    for name in names:
        if names.count(name) > 1:
            raise InvalidRequestError(f"{file}: two endpoints have the name {name!r}. Names must differ.")
    for endpoint in endpoints:
        if endpoint.problem:
            log.error("%s: %s", file, endpoint.unusable)
    return tuple(endpoints)


def _endpoint(values: dict[str, Any]) -> Endpoint:
    entries = tuple(ModelEntry(**entry) for entry in values.pop("model", ()))
    return Endpoint(**values, model_entries=entries)


def _defaults(environ: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """Ollama on this machine and the public services, which need a key before they can be used."""
    ollama = table.read({"name": "ollama", "kind": "ollama"}, "", environ)
    public = ("openai", "gemini", "grok", "anthropic")
    return tuple(
        _endpoint(values)
        for values in (ollama, *(table.read({"name": kind, "kind": kind}, "", environ) for kind in public))
    )
