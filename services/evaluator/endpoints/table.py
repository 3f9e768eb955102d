"""Reads one `[[endpoint]]` table of the endpoints file. The keys are described in endpoint.py."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import urlsplit

from services.errors import InvalidRequestError
from services.evaluator.endpoints.batch_options import BatchOptions
from services.evaluator.endpoints.engine_options import EngineOptions
from services.evaluator.endpoints.http_options import HttpOptions
from services.evaluator.endpoints.kinds import KINDS, Kind, ollama_url
from services.words.plugins import NAME
from touchstone.v1 import endpoint_pb2

Options = TypeVar("Options")

_WEEK_S = 604_800
_MOST_PER_MINUTE = 10_000_000
_MOST_BILLIONS = 1_000_000
_MOST_PRICE = 1_000_000
_MOST_OF_AN_ADDRESS = 2_000
_MOST_SHOWN = 200
"""Most characters of a wrong value in a message."""
_PRICES = (
    "a table with input and output in US dollars per million tokens, each between 0 and 1,000,000, and optionally "
    "batch_share between 0 and 1"
)
_TYPES: dict[str, tuple[type | tuple[type, ...], str]] = {
    "name": (str, "a text"),
    "kind": (str, "a text"),
    "base_url": (str, "a text"),
    "api_key_env": (str, "a text"),
    "concurrency": (int, "a whole number"),
    "requests_per_minute": (int, "a whole number"),
    "max_model_b": ((int, float), "a number"),
    "models": (list, "a list of strings"),
    "exclusive": (bool, "true or false"),
    "timeout_s": ((int, float), "a number"),
    "first_byte_s": ((int, float), "a number"),
    "keep_alive": ((str, int), 'a duration such as "5m" or a number of seconds'),
    "api": (str, "a text"),
    "prices": (dict, _PRICES),
    "list_prices": (bool, "true or false"),
    "batch": (dict, "a table"),
    "model": (dict, 'tables named after models, as in [endpoint.model."name"]'),
    "http": (dict, "a table"),
    "engine": (dict, "a table"),
    "options": (dict, "a table"),
}
_CAPABILITIES = tuple(field.name for field in endpoint_pb2.Capabilities.DESCRIPTOR.fields)
_MODEL_TYPES: dict[str, tuple[type | tuple[type, ...], str]] = {
    **dict.fromkeys(_CAPABILITIES, (bool, "true or false")),
    "context_length": (int, "a whole number"),
    "parameters_b": ((int, float), "a number"),
    "digest": (str, "a text"),
    "prices": (dict, _PRICES),
}
# Keys that only one kind knows. A key that nothing reads would be a setting without effect.
_OWN_KEYS = {"keep_alive": "ollama", "api": "grok", "http": "http", "engine": "engine"}


class _Table:
    """A table with its name for errors."""

    def __init__(
        self, values: Mapping[str, Any], where: str, types: Mapping[str, tuple[type | tuple[type, ...], str]]
    ) -> None:
        self.values = values
        self.where = where
        for key, value in values.items():
            if key not in types:
                raise InvalidRequestError(f"{where}: {key!r} is not known. Known keys: {', '.join(types)}.", field=key)
            kinds, rule = types[key]
            if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
                raise self.wrong(key, rule)

    def wrong(self, key: str, rule: str) -> InvalidRequestError:
        shown = _shown(self.values[key]) if key in self.values else "missing"
        return InvalidRequestError(f"{self.where}: {key} must be {rule}; it is {shown}.", field=key)

    def between(self, least: float, most: float, *keys: str) -> None:
        for key in keys:
            if not least <= self.values.get(key, least) <= most:
                raise self.wrong(key, f"between {least:,g} and {most:,}")

    def prices(self) -> Mapping[str, float]:
        prices = self.values.get("prices", {})
        known = prices.keys() - {"batch_share"} in (set(), {"input", "output"}) and prices.keys() != {"batch_share"}
        if not known or not all(map(_is_price, prices.values())) or prices.get("batch_share", 0) > 1:
            raise self.wrong("prices", _PRICES)
        return MappingProxyType({name: float(price) for name, price in prices.items()})


RESERVED = frozenset({"plan", "stored", "inspect", "lm_eval", "imported", "recorded"})
"""Endpoints of the bus that do not belong to a server. Written out, as endpoints are also read where no bus is
installed."""


@dataclass(frozen=True, slots=True)
class FurtherKinds:
    """Kinds of plug-ins. `missing` are those that are left out, each with the reason in sentences."""

    kinds: Mapping[str, Kind] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


NO_FURTHER_KINDS = FurtherKinds()


def read(
    values: Mapping[str, Any], where: str, environ: Mapping[str, str], further: FurtherKinds = NO_FURTHER_KINDS
) -> dict[str, Any]:
    """The fields of an Endpoint; `model` holds those of its model entries. Raises InvalidRequestError with `where`."""
    name = values.get("name")
    if isinstance(name, str) and name:
        where = f"{where} ({name[:_MOST_SHOWN]})"
    table = _Table(values, where, _TYPES)
    name, kind = _name(table), _kind(table, further)
    problem = _missing(kind, further)
    # Of a kind that is missing nobody can judge the address.
    usual = Kind(kind, values.get("base_url", "")) if problem else further.kinds.get(kind) or KINDS[kind]
    url = usual.base_url if problem else _url(table, kind, usual, environ)
    table.between(1, 4096, "concurrency")
    table.between(0, _MOST_PER_MINUTE, "requests_per_minute")
    table.between(0, _MOST_BILLIONS, "max_model_b")
    table.between(0, _WEEK_S, "first_byte_s")
    table.between(0.001, _WEEK_S, "timeout_s")
    if not all(isinstance(model, str) and model for model in values.get("models", [])):
        raise table.wrong("models", "a list of strings")
    if values.get("api", "responses") not in ("chat", "responses"):
        raise table.wrong("api", '"chat" or "responses"')
    key_env = values.get("api_key_env", usual.usual_key_env(url, environ))
    http = _own(table, "http", HttpOptions.read) if kind == "http" else None
    if http is not None and http.needs_key and not key_env:
        raise InvalidRequestError(
            f"{where}: a header contains {{key}}. Set api_key_env to the variable that holds the key.",
            field="api_key_env",
        )
    return {
        "name": name,
        "kind": kind,
        "base_url": url.rstrip("/"),
        "api_key_env": key_env,
        "api_key": environ.get(key_env, "").strip() if key_env else "",
        "concurrency": values.get("concurrency", usual.concurrency),
        "requests_per_minute": values.get("requests_per_minute", 0),
        "max_model_b": float(values.get("max_model_b", 0)),
        "models": tuple(values.get("models", [])),
        "exclusive": values.get("exclusive", usual.exclusive),
        "timeout_s": float(values.get("timeout_s", usual.timeout_s)),
        "first_byte_s": float(values.get("first_byte_s", 0)),
        "keep_alive": values.get("keep_alive"),
        "api": values.get("api", "responses"),
        "prices": table.prices(),
        "list_prices": values.get("list_prices", True),
        "batch": _batch(table, kind),
        "http": http,
        "engine": _own(table, "engine", lambda t: EngineOptions.read(t, environ)) if kind == "engine" else None,
        "options": values.get("options", {}),
        "problem": problem,
        "model": [_model(pattern, inner, where) for pattern, inner in values.get("model", {}).items()],
    }


def _name(table: _Table) -> str:
    name = table.values.get("name")
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9-]{1,40}", name):
        raise table.wrong("name", "1 to 40 characters from a-z, 0-9 and -")
    if name in RESERVED:
        raise table.wrong("name", "a name that is not reserved")
    return name


def _kind(table: _Table, further: FurtherKinds) -> str:
    """Raises InvalidRequestError, also for a key that only another kind takes. Any name that a plug-in's kind may have
    is one: its package may be gone, and the other endpoints are used without it."""
    kind = table.values.get("kind")
    if not isinstance(kind, str) or not NAME.fullmatch(kind):
        raise table.wrong("kind", "one of " + ", ".join((*KINDS, *further.kinds)))
    if "options" in table.values and kind in KINDS:
        raise InvalidRequestError(f"{table.where}: options is only for kinds of plug-ins. Remove it.", field="options")
    for key, owner in _OWN_KEYS.items():
        if key in table.values and kind != owner:
            raise InvalidRequestError(f"{table.where}: {key} is only for kind {owner}. Remove it.", field=key)
    return kind


def _missing(kind: str, further: FurtherKinds) -> str:
    """Why an endpoint of this kind cannot be used, in sentences; empty where it can."""
    if kind in KINDS or kind in further.kinds:
        return ""
    return further.missing.get(kind) or (
        f"No installed package offers the kind {kind}. Install the package whose entry point in touchstone.providers "
        f"has that name and restart the evaluator, or set kind to one of {', '.join((*KINDS, *further.kinds))}."
    )


def _url(table: _Table, kind: str, usual: Kind, environ: Mapping[str, str]) -> str:
    """The server's address; empty for a kind that has none."""
    url: str = table.values.get("base_url", ollama_url(environ) if kind == "ollama" else usual.base_url)
    if usual.addressed and not _is_http(url):
        raise table.wrong("base_url", "an address such as http://127.0.0.1:8000/v1")
    if not usual.addressed and url:
        raise InvalidRequestError(f"{table.where}: kind {kind} takes no base_url. Remove it.", field="base_url")
    return url


def _own(table: _Table, key: str, read: Callable[[Mapping[str, Any]], Options]) -> Options:
    """The sub-table of a kind that needs one, read by its owner."""
    if key not in table.values:
        raise InvalidRequestError(f"{table.where}: kind {key} needs a table [endpoint.{key}].", field=key)
    try:
        return read(table.values[key])
    except InvalidRequestError as error:
        raise InvalidRequestError(f"{table.where}: {error.message}", field=error.field) from error


def _batch(table: _Table, kind: str) -> BatchOptions:
    if "batch" not in table.values:
        return BatchOptions.usual(kind)
    try:
        return BatchOptions.read(table.values["batch"], kind)
    except InvalidRequestError as error:
        raise InvalidRequestError(f"{table.where}: {error.message}", field=error.field) from error


def _model(pattern: str, values: Any, where: str) -> dict[str, Any]:
    where = f"{where}, model {pattern}"
    if not isinstance(values, dict):
        raise InvalidRequestError(f'{where}: write it as a table, [endpoint.model."{pattern}"].', field="model")
    table = _Table(values, where, _MODEL_TYPES)
    table.between(0, _MOST_BILLIONS, "parameters_b")
    table.between(1, 2**31 - 1, "context_length")
    return {
        "pattern": pattern,
        "capabilities": endpoint_pb2.Capabilities(**{key: values[key] for key in _CAPABILITIES if key in values}),
        "context_length": values.get("context_length", 0),
        "parameters_b": float(values.get("parameters_b", 0)),
        "digest": values.get("digest", ""),
        "prices": table.prices(),
    }


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _is_http(url: str) -> bool:
    if len(url) > _MOST_OF_AN_ADDRESS or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False


def _is_price(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST_PRICE
