"""How an application is called and where its answer is: the sub-table `[endpoint.http]` of the endpoints file.

    [endpoint.http]
    method = "POST"                        # or "GET": the request's fields become the query
    path = ""                              # appended to base_url as it is
    headers = {"X-Key" = "{key}"}          # {key}: what api_key_env holds; without it, a bearer token
    request = {question = "{prompt}", options = {temperature = "{temperature}"}}   # or the same as JSON text
    answer = "$.reply.text"                # "$" takes the whole reply, which then need not be JSON
    error = "$.error"                      # anything but null, false or "" there is a failed call
    tool_calls = "$.calls"                 # these five are optional; tool calls in OpenAI's form
    input_tokens = "$.usage.input"
    output_tokens = "$.usage.output"
    finish_reason = "$.finish"
    model = "$.model"

A text of the request that is only a placeholder becomes the value itself: "{messages}" a list, "{temperature}" a
number. Within a longer text the value is written into it. A field whose value the job does not give is left out. Values
are put into the parsed template, never into JSON text, and are not searched for placeholders themselves. Write
`{{prompt}}` for the text {prompt}.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from services.errors import InvalidRequestError
from services.evaluator.endpoints.jsonpath import JsonPath
from services.words.sampling import PARAMETERS

PLACEHOLDERS = ("prompt", "messages", "system", "model", "stop", *PARAMETERS)
"""`prompt` is every message's text with blank lines between; without the system's where the request has {system}."""
_WHOLE_ONLY = {"messages", "stop"}
_PATHS = ("answer", "error", "tool_calls", "input_tokens", "output_tokens", "finish_reason", "model")
_KEYS = ("method", "path", "headers", "request", *_PATHS)
_PLACEHOLDER = re.compile(r"\{\{(?P<literal>[a-z_]+)\}\}|\{(?P<name>[a-z_]+)\}")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OWN_HEADERS = {"host", "content-length", "transfer-encoding", "connection"}


class _Absent:
    """The job has no value for this placeholder."""


_ABSENT = _Absent()


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """One application's wire format. Paths are None when they are not configured."""

    request: Any
    answer: JsonPath
    method: str = "POST"
    path: str = ""
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    error: JsonPath | None = None
    tool_calls: JsonPath | None = None
    input_tokens: JsonPath | None = None
    output_tokens: JsonPath | None = None
    finish_reason: JsonPath | None = None
    model: JsonPath | None = None

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> HttpOptions:
        """Raises InvalidRequestError with a sentence that names the key; `field` is "http" and the key."""
        for key in table:
            if key not in _KEYS:
                raise _wrong(str(key), f"http.{key} is not known. Known keys: {', '.join(_KEYS)}.")
        for key in ("request", "answer"):
            if key not in table:
                raise _wrong(key, f"http.{key} is missing. {_MISSING[key]}")
        method = table.get("method", "POST")
        if method not in ("POST", "GET"):
            raise _wrong("method", f"http.method must be POST or GET; it is {method!r}.")
        path = table.get("path", "")
        if not isinstance(path, str) or (path and path[0] not in "/?"):
            raise _wrong("path", f"http.path must be a string that starts with / or ?; it is {path!r}.")
        request = _request(table["request"])
        if method == "GET" and not (isinstance(request, dict) and all(map(_is_plain, request.values()))):
            raise _wrong(
                "request", "http.request must be a table of strings and numbers: it becomes the query of a GET."
            )
        return cls(
            request=request,
            method=method,
            path=path,
            headers=_headers(table.get("headers", {})),
            **{key: _path(key, table[key]) for key in _PATHS if key in table},
        )

    @property
    def needs_key(self) -> bool:
        """Whether a header carries the endpoint's key."""
        return any("{key}" in value for value in self.headers.values())

    @property
    def placeholders(self) -> frozenset[str]:
        """The placeholders that the request uses."""
        return frozenset(_names(self.request))

    def filled(self, values: Mapping[str, Any]) -> Any:
        """The request's JSON with `values` in place of their placeholders; fields without a value are left out."""
        return _fill(self.request, values)


_MISSING = {
    "request": 'Give the JSON to send as a table, such as {question = "{prompt}"}.',
    "answer": "Give the path to the answer's text, such as $.reply.text.",
}


def _wrong(key: str, sentence: str) -> InvalidRequestError:
    return InvalidRequestError(sentence, field=f"http.{key}")


def _path(key: str, value: Any) -> JsonPath:
    if not isinstance(value, str):
        raise _wrong(key, f"http.{key} must be a path such as $.reply.text; it is {value!r}.")
    try:
        return JsonPath.parse(value)
    except InvalidRequestError as error:
        raise _wrong(key, f"http.{key}: {error.message}") from error


def _headers(value: Any) -> Mapping[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for text in value.values()):
        raise _wrong("headers", 'http.headers must be a table of strings, such as {"X-Key" = "{key}"}.')
    for name, text in value.items():
        if not _HEADER_NAME.fullmatch(name) or name.lower() in _OWN_HEADERS:
            raise _wrong("headers", f"http.headers: {name!r} cannot be set here.")
        if not text.isprintable() or not text.isascii():
            raise _wrong("headers", f"http.headers: the value of {name} must be printable ASCII on one line.")
    return MappingProxyType(dict(value))


def _request(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise _wrong("request", f"http.request is not valid JSON: {error}.") from error
    names = set(_names(value))
    unknown = sorted(names - set(PLACEHOLDERS))
    if unknown:
        known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
        raise _wrong(
            "request",
            f"http.request: {{{unknown[0]}}} is not a known placeholder. Known placeholders: {known}. Write "
            f"{{{{{unknown[0]}}}}} to send it as it is.",
        )
    if not names & {"prompt", "messages"}:
        raise _wrong("request", 'http.request has no place for the question. Add "{prompt}" or "{messages}".')
    return value


def _names(template: Any) -> Iterator[str]:
    """The placeholders of a template. Raises InvalidRequestError if the template could not be sent."""
    match template:
        case str():
            for found in _PLACEHOLDER.finditer(template):
                name = found["name"]
                if name in _WHOLE_ONLY and found.group() != template:
                    raise _wrong("request", f"http.request: {{{name}}} is a list, so it must be the whole of a string.")
                if name:
                    yield name
        case dict():
            for inner in template.values():
                yield from _names(inner)
        case list():
            for inner in template:
                yield from _names(inner)
        case float() if not math.isfinite(template):
            raise _wrong("request", f"http.request: {template} cannot be written as JSON.")
        case None | bool() | int() | float():
            return
        case _:
            raise _wrong("request", f"http.request: {template} cannot be written as JSON.")


def _is_plain(value: Any) -> bool:
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return isinstance(value, str | int | float) and (not isinstance(value, str) or value[1:-1] not in _WHOLE_ONLY)


def _fill(template: Any, values: Mapping[str, Any]) -> Any:
    match template:
        case str():
            return _fill_text(template, values)
        case dict():
            filled = {key: _fill(inner, values) for key, inner in template.items()}
            return {key: inner for key, inner in filled.items() if inner is not _ABSENT}
        case list():
            return [inner for inner in (_fill(element, values) for element in template) if inner is not _ABSENT]
        case _:
            return template


def _fill_text(template: str, values: Mapping[str, Any]) -> Any:
    whole = _PLACEHOLDER.fullmatch(template)
    if whole and whole["name"]:
        return values.get(whole["name"], _ABSENT)

    def replaced(found: re.Match[str]) -> str:
        if found["literal"]:
            return f"{{{found['literal']}}}"
        value = values.get(found["name"], "")
        return value if isinstance(value, str) else json.dumps(value)

    return _PLACEHOLDER.sub(replaced, template)
