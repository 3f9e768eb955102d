"""Configured ways to reach models: the endpoints file, or what is sensible without one.

The file is TOML, one `[[endpoint]]` table per endpoint:

    [[endpoint]]
    name = "vllm-a"                      # [a-z0-9-]{1,40}, unique; "plan" is reserved
    kind = "openai"                      # "openai" or "ollama"; "baseline" is always there
    base_url = "http://10.0.0.7:8000/v1"
    api_key_env = "VLLM_KEY"             # variable that holds the key; keys are never written here
    concurrency = 16                     # calls at once of each evaluator
    requests_per_minute = 0              # over all evaluators; 0 means no limit
    max_model_b = 0.0                    # largest model in billions of parameters; 0 means any
    models = ["a", "b"]                  # instead of asking the server
    exclusive = false                    # one job at a time; true by default for ollama
    timeout_s = 300.0                    # a whole call
    first_byte_s = 0.0                   # longest silence within a call; 0 means `timeout_s`
    keep_alive = "5m"                    # ollama: how long the model stays loaded; absent leaves it to the server
    prices = {input = 0.15, output = 0.6}  # per million tokens
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from services.errors import InvalidRequestError

KINDS = ("baseline", "ollama", "openai")
OPENAI_URL = "https://api.openai.com/v1"
OLLAMA_URL = "http://127.0.0.1:11434"
_OLLAMA_PORT = 11434


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One configured endpoint. Fields as in the file; `base_url` has no slash at its end."""

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
    prices: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def configured(self) -> bool:
        """False while the key it names is not set."""
        return not self.api_key_env or bool(self.api_key)

    @property
    def no_key(self) -> str:
        """The sentence for a job while the key is not set (spec: "API Provider Errors")."""
        return f"AI provider error: API key not configured for {'OpenAI' if self.name == 'openai' else self.name}"

    @property
    def address(self) -> str:
        """Host and port as a user knows them."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2]


BASELINE = Endpoint("baseline", "baseline")


def load(file: Path | None, environ: Mapping[str, str] = os.environ) -> tuple[Endpoint, ...]:
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
    for key in document.keys() - {"endpoint"}:
        raise InvalidRequestError(f"{file}: {key!r} is not known. Write each endpoint as [[endpoint]].")
    tables = document.get("endpoint", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InvalidRequestError(f"{file}: write each endpoint as [[endpoint]], with two brackets.")
    endpoints = [_read(table, f"{file}, endpoint {number}", environ) for number, table in enumerate(tables, 1)]
    if not any(endpoint.kind == "baseline" for endpoint in endpoints):
        endpoints.insert(0, BASELINE)
    names = [endpoint.name for endpoint in endpoints]
    for name in names:
        if names.count(name) > 1:
            raise InvalidRequestError(f"{file}: two endpoints have the name {name!r}. Names must differ.")
    return tuple(endpoints)


def _defaults(environ: Mapping[str, str]) -> tuple[Endpoint, ...]:
    return (
        Endpoint("ollama", "ollama", _ollama_url(environ), concurrency=1, exclusive=True),
        Endpoint("openai", "openai", OPENAI_URL, "OPENAI_API_KEY", environ.get("OPENAI_API_KEY", "").strip()),
    )


def _ollama_url(environ: Mapping[str, str]) -> str:
    """OLLAMA_HOST as Ollama itself reads it: host, host:port or URL; 0.0.0.0 listens everywhere and is called here."""
    host = environ.get("OLLAMA_HOST", "").strip()
    if not host:
        return OLLAMA_URL
    parts = urlsplit(host if "://" in host else f"http://{host}")
    name = parts.hostname or "127.0.0.1"
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)
    default = {"http": 80, "https": 443}[parts.scheme] if "://" in host and parts.scheme in ("http", "https") else None
    try:
        port = parts.port or default or _OLLAMA_PORT
    except ValueError:
        port = _OLLAMA_PORT
    return f"{parts.scheme}://{f'[{name}]' if ':' in name else name}:{port}{parts.path.rstrip('/')}"


_TYPES: dict[str, tuple[type | tuple[type, ...], str]] = {
    "name": (str, "a text"),
    "kind": (str, "a text"),
    "base_url": (str, "a text"),
    "api_key_env": (str, "a text"),
    "concurrency": (int, "a whole number"),
    "requests_per_minute": (int, "a whole number"),
    "max_model_b": ((int, float), "a number"),
    "models": (list, "a list of texts"),
    "exclusive": (bool, "true or false"),
    "timeout_s": ((int, float), "a number"),
    "first_byte_s": ((int, float), "a number"),
    "keep_alive": ((str, int), 'a duration such as "5m" or a number of seconds'),
    "prices": (dict, "a table with input and output per million tokens"),
}


def _read(table: dict[str, Any], where: str, environ: Mapping[str, str]) -> Endpoint:
    name = table.get("name")
    if isinstance(name, str) and name:
        where = f"{where} ({name})"

    def wrong(key: str, rule: str) -> InvalidRequestError:
        shown = repr(table[key]) if key in table else "missing"
        return InvalidRequestError(f"{where}: {key} is {shown}; it must be {rule}.", field=key)

    for key, value in table.items():
        if key not in _TYPES:
            raise InvalidRequestError(f"{where}: {key!r} is not known. Known keys: {', '.join(_TYPES)}.", field=key)
        types, rule = _TYPES[key]
        if not isinstance(value, types) or (isinstance(value, bool) and types is not bool):
            raise wrong(key, rule)
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9-]{1,40}", name):
        raise wrong("name", "1 to 40 of a-z, 0-9 and -")
    if name == "plan":
        raise wrong("name", "another word: plan is reserved")
    kind = table.get("kind")
    if kind not in KINDS:
        raise wrong("kind", "one of " + ", ".join(KINDS))
    url = table.get("base_url", {"ollama": _ollama_url(environ), "openai": OPENAI_URL, "baseline": ""}[kind])
    if kind != "baseline" and not _is_http(url):
        raise wrong("base_url", "an address such as http://127.0.0.1:8000/v1")
    if not 1 <= table.get("concurrency", 1) <= 4096:
        raise wrong("concurrency", "from 1 to 4096")
    for key in ("requests_per_minute", "max_model_b", "first_byte_s"):
        if table.get(key, 0) < 0:
            raise wrong(key, "0 or more")
    if not table.get("timeout_s", 1) > 0:
        raise wrong("timeout_s", "more than 0")
    if not all(isinstance(model, str) and model for model in table.get("models", [])):
        raise wrong("models", "a list of texts")
    prices = table.get("prices", {})
    if not set(prices) <= {"input", "output"} or not all(_is_price(price) for price in prices.values()):
        raise wrong("prices", "a table with input and output per million tokens, each 0 or more")
    key_env = table.get("api_key_env", "OPENAI_API_KEY" if kind == "openai" and url.startswith(OPENAI_URL) else "")
    return Endpoint(
        name=name,
        kind=kind,
        base_url=url.rstrip("/"),
        api_key_env=key_env,
        api_key=environ.get(key_env, "").strip() if key_env else "",
        concurrency=table.get("concurrency", 1 if kind == "ollama" else 8),
        requests_per_minute=table.get("requests_per_minute", 0),
        max_model_b=float(table.get("max_model_b", 0)),
        models=tuple(table.get("models", [])),
        exclusive=table.get("exclusive", kind == "ollama"),
        timeout_s=float(table.get("timeout_s", 300)),
        first_byte_s=float(table.get("first_byte_s", 0)),
        keep_alive=table.get("keep_alive"),
        prices=MappingProxyType(dict(prices)),
    )


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False


def _is_price(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
