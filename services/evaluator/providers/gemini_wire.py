"""The JSON of Gemini's own API (v1 and v1beta): what is sent, what comes back, and what its errors mean.

A body: `contents`, `systemInstruction`, `generationConfig` and what `extra` adds. Fields of `extra` that a body does
not have go into `generationConfig`, which holds almost everything: `{"thinkingBudget": 0}`, `{"responseMimeType":
"text/plain"}`. Models of the 2.5 line take `thinkingBudget`, those from 3 on `thinkingLevel`.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from services import numbers
from services.evaluator.items.task import Message, Response
from services.evaluator.providers.protocol import common_form
from services.evaluator.providers.protocol.events import Texts, kept, members
from services.evaluator.providers.protocol.provider import ProviderError
from services.evaluator.providers.protocol.usage import (
    Told,
    count,
    entries,
    inner,
    parsed,
    part,
    parts,
    string,
)
from touchstone.v1.content_pb2 import ContentPart, TokenLogprob, ToolCall

OPTIONS = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "max_tokens": "maxOutputTokens",
    "seed": "seed",
}
WRITTEN = ("contents", "systemInstruction")
"""What `extra` may not set, in addition to the parameters that the job sets."""
IMAGES = ("image/png", "image/jpeg", "image/webp")
_API = "Gemini"
_MODES = {"auto": "AUTO", "required": "ANY", "none": "NONE"}
_SIGNED = re.compile(r"gemini-(?:[3-9]|\d\d)|-latest")
"""Models that want a signature with a call."""
_UNSIGNED = "skip_thought_signature_validator"
_TOKEN_BYTES = 200
"""What a token takes in memory with its log-probability."""
_BODY = {"cachedContent", "labels", "safetySettings", "serviceTier", "store", "toolConfig", "tools"}
_BESIDE_TEXTS = ("promptFeedback", "usageMetadata", "modelVersion")
_THINKING = ("thinkingBudget", "thinkingLevel", "includeThoughts")
# By the model itself or by a filter: the question was read and not answered.
_REFUSALS = {
    "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "ESCALATION", "MODEL_ARMOR", "JAILBREAK",
}  # fmt: skip
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")
_NO_QUOTA = re.compile(r"limit:\s*0(?![.\d])")


def prompt(messages: Sequence[Message], model: str = "") -> dict[str, Any]:
    """`contents` and, when there is one, `systemInstruction`."""
    system = [{"text": message.content} for message in messages if message.role == "system"]
    signed = bool(_SIGNED.search(model))
    contents: list[dict[str, Any]] = []
    for message, function in common_form.with_functions(messages):
        if message.role == "system":
            continue
        role = "model" if message.role == "assistant" else "user"
        if message.more is None:
            contents.append({"role": role, "parts": [{"text": message.content}]})
            continue
        written = _said(message, function, signed)
        # The results of several calls belong into one content.
        if message.more.tool_call_id and contents and "functionResponse" in contents[-1]["parts"][-1]:
            contents[-1]["parts"] += written
        else:
            contents.append({"role": role, "parts": written})
    return {"systemInstruction": {"parts": system}, "contents": contents} if system else {"contents": contents}


def _said(message: Message, function: str, signed: bool) -> list[dict[str, Any]]:
    """The parts of a message that holds more than a text. `function` is the one that it is a result of."""
    more = message.more
    assert more is not None
    if more.tool_call_id:
        return [{"functionResponse": {"name": function, "response": _result(message.content)}}]
    found: list[dict[str, Any]] = []
    for piece in more.parts or ([ContentPart(text=message.content)] if message.content else []):
        if piece.WhichOneof("part") == "image":
            data = b64encode(piece.image.data).decode()
            found.append({"inlineData": {"mimeType": piece.image.media_type, "data": data}})
        else:
            found.append({"text": piece.text})
    for place, call in enumerate(more.tool_calls):
        part: dict[str, Any] = {"functionCall": {"name": call.name, "args": common_form.arguments(call)}}
        # Google, "Thought signatures": of calls that another model made, and only of the first of them.
        found.append(part | ({"thoughtSignature": _UNSIGNED} if signed and not place else {}))
    return found


def _result(content: str) -> dict[str, Any]:
    """What a tool said as an object, which the API wants."""
    value = parsed(content)
    return value if isinstance(value, dict) else {"output": content}


def further(fields: dict[str, Any]) -> dict[str, Any]:
    """Further fields in the API's form. Raises ProviderError."""
    asked = common_form.take(fields)
    if asked.parallel is False:
        raise common_form.refusal(_API, "parallel_tool_calls false")
    if asked.functions:
        declared = {"functionDeclarations": list(map(_declaration, asked.functions))}
        fields["tools"] = [declared, *fields.get("tools", [])]
    strict = any(function.get("strict") for function in asked.functions)
    mode = "ANY" if asked.named else _MODES[asked.choice or "auto"]
    if mode == "AUTO" and strict:
        mode = "VALIDATED"
    if asked.choice or asked.named or strict:
        calling = {"mode": mode} | ({"allowedFunctionNames": [asked.named]} if asked.named else {})
        own = fields.get("toolConfig")
        fields["toolConfig"] = (own if isinstance(own, dict) else {}) | {"functionCallingConfig": calling}
    if asked.format:
        fields["responseMimeType"] = "application/json"
    if asked.schema is not None:
        fields["responseJsonSchema"] = asked.schema.get("schema")
    if asked.top >= 0:
        fields |= {"responseLogprobs": True} | ({"logprobs": asked.top} if asked.top else {})
    return fields


def check(messages: Sequence[Message], fields: dict[str, Any]) -> None:
    """Raises ProviderError for what the API has no form for."""
    common_form.check_images(_API, messages, IMAGES)
    further(dict(fields))


def _declaration(function: Mapping[str, Any]) -> dict[str, Any]:
    declared = {key: function[key] for key in ("name", "description") if function.get(key) is not None}
    return declared | (
        {"parametersJsonSchema": function["parameters"]} if function.get("parameters") is not None else {}
    )


def parameters(config: dict[str, Any], further: dict[str, Any]) -> dict[str, Any]:
    """The body apart from the prompt. `config` are the job's own parameters, which win over those in `further`.

    Raises ProviderError when thinking is set in both ways, which the API refuses.
    """
    body = {key: value for key, value in further.items() if key in _BODY}
    inner = further.get("generationConfig")
    merged = dict(inner) if isinstance(inner, dict) else {}
    known = merged.get("thinkingConfig")
    thinking = dict(known) if isinstance(known, dict) else {}
    for key, value in further.items():
        if key in _THINKING:
            thinking[key] = value
        elif key == "thinkingConfig" and isinstance(value, dict):
            thinking |= value
        elif key not in _BODY and key != "generationConfig":
            merged[key] = value
    if {"thinkingBudget", "thinkingLevel"} <= set(thinking):
        raise ProviderError(
            "Gemini takes either thinkingBudget or thinkingLevel. Leave one of them out of the job's parameters.",
            fatal=True,
            status=400,
        )
    if thinking:
        merged["thinkingConfig"] = thinking
    merged |= config
    return body | ({"generationConfig": merged} if merged else {})


def response(body: dict[str, Any]) -> Response | None:
    """The answer, or None when the body holds neither an answer nor a refusal. Raises MalformedError."""
    candidates = body.get("candidates")
    candidate = candidates[0] if isinstance(candidates, list) and candidates else None
    feedback = body.get("promptFeedback")
    blocked = string(feedback, "blockReason") if isinstance(feedback, dict) else ""
    if not isinstance(candidate, dict):
        if not blocked:
            return None
        candidate = {"finishReason": blocked}
    finish = string(candidate, "finishReason")
    said = _parts(candidate)
    if not said and not finish:
        return None
    usage = body.get("usageMetadata") if isinstance(body.get("usageMetadata"), dict) else {}
    told = Told()
    # Thoughts are counted separately and paid as output. A count of 0 is left out.
    written = [told.tokens(usage, key, absent=0) for key in ("candidatesTokenCount", "thoughtsTokenCount")]
    calls = tuple(
        ToolCall(
            id=string(piece["functionCall"], "id"),
            name=string(piece["functionCall"], "name"),
            arguments=common_form.written(inner(piece, "functionCall").get("args")),
        )
        for piece in said
        if isinstance(piece.get("functionCall"), dict)
    )
    response = Response(
        tool_calls=calls,
        logprobs=_logprobs(candidate),
        text="".join(_text(piece) for piece in said if not piece.get("thought")),
        reasoning="".join(string(piece, "text") for piece in said if piece.get("thought")),
        finish_reason=finish,
        input_tokens=told.tokens(usage, "promptTokenCount"),
        output_tokens=sum(filter(None, written)) if usage and None not in written else None,
        reasoning_tokens=written[1] or 0,
        served_model=string(body, "modelVersion"),
        # An unnamed filter ends with "OTHER" and without text.
        refused=bool(blocked) or finish in _REFUSALS or (finish == "OTHER" and not said),
    )
    return replace(response, doubtful=told.doubtful)


def _logprobs(candidate: dict[str, Any]) -> tuple[TokenLogprob, ...]:
    """`logprobsResult` as other providers write it."""
    found = inner(candidate, "logprobsResult")
    if not found:
        return ()
    tops = entries(found, "topCandidates")
    content = [
        {
            **_token(one),
            "top_logprobs": [_token(other) for other in entries(tops[place], "candidates")]
            if place < len(tops)
            else [],
        }
        for place, one in enumerate(entries(found, "chosenCandidates"))
    ]
    return common_form.token_logprobs({"content": content})


def _token(one: dict[str, Any]) -> dict[str, Any]:
    # 0 is left out.
    return {"token": one.get("token"), "logprob": one.get("logProbability", 0.0)}


class ContentFold:
    """A streamed answer: the texts of all parts, the latest of everything else."""

    def __init__(self) -> None:
        self.size = 0
        self._texts = Texts()
        self._whole: dict[str, Any] = {}
        self._candidate: dict[str, Any] = {}
        self._has_candidate = self._has_parts = False
        self._calls: list[dict[str, Any]] = []
        self._logprobs: dict[str, list[Any]] = {}
        self._error: dict[str, Any] | None = None

    def add(self, event: Any) -> bool:
        if isinstance(event, dict) and event.get("error"):
            self._error = self._error or members(event, ("error",))
            return False
        candidates = parts(event, "candidates")[:1]
        self._whole |= members(event, _BESIDE_TEXTS)
        added = 0
        for candidate in candidates:
            self._has_candidate = True
            self._candidate |= members(candidate, ("finishReason",))
            if "logprobsResult" in candidate:
                self._take_logprobs(inner(candidate, "logprobsResult"))
            for piece in _parts(candidate):
                self._has_parts = True
                if "functionCall" in piece:
                    self._calls.append({"functionCall": piece["functionCall"]})
                    added += len(json.dumps(piece["functionCall"]))
                elif piece.get("thought"):
                    added += self._texts.add("thought", string(piece, "text"))
                else:
                    added += self._texts.add("text", _text(piece))
        self.size += added
        return added > 0

    def whole(self) -> Any:
        if self._error is not None:
            return self._error
        if "finishReason" in self._candidate:
            thought = {"text": self._texts.get("thought"), "thought": True}
            both = [thought, {"text": self._texts.get("text")}, *self._calls] if self._has_parts else []
            told = {"logprobsResult": self._logprobs} if self._logprobs else {}
            candidate = self._candidate | told | {"content": {"role": "model", "parts": both}}
            return self._whole | {"candidates": [candidate]}
        return self._whole if "promptFeedback" in self._whole and not self._has_candidate else None

    def _take_logprobs(self, found: dict[str, Any]) -> None:
        for key in ("topCandidates", "chosenCandidates"):
            told = entries(found, key)
            self._logprobs.setdefault(key, []).extend(map(kept, told))
            self.size += _TOKEN_BYTES * sum(1 + len(entries(one, "candidates")) for one in told)


def retry_after_s(details: Iterable[dict[str, Any]]) -> float | None:
    """Seconds of `google.rpc.RetryInfo`, whose delay is written as "26s" or "1.5s"."""
    for detail in details:
        if str(detail.get("@type", "")).endswith("google.rpc.RetryInfo"):
            found = _DELAY.fullmatch(string(detail, "retryDelay"))
            if found:
                return numbers.real(float(found[1]), 0.0, numbers.MOST_WAIT_S)
    return None


def is_used_up(details: Iterable[dict[str, Any]], message: str) -> bool:
    """Whether a 429 reports a quota that waiting does not restore today: a daily one, or a quota of zero."""
    quotas = [
        str(violation.get("quotaId") or "")
        for detail in details
        if isinstance(detail.get("violations"), list)
        for violation in detail["violations"]
        if isinstance(violation, dict)
    ]
    return any("PerDay" in quota for quota in quotas) or "PerDay" in message or bool(_NO_QUOTA.search(message))


def error_details(body: Any) -> list[dict[str, Any]]:
    error = body.get("error") if isinstance(body, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    return [detail for detail in details if isinstance(detail, dict)] if isinstance(details, list) else []


def error_status(body: Any) -> int:
    """The HTTP status that the error itself names; 0 for none."""
    return count(body.get("error"), "code") if isinstance(body, dict) else 0


def _parts(candidate: dict[str, Any]) -> list[dict[str, Any]]:
    return parts(part(candidate, "content", dict) or {}, "parts")


def _text(piece: dict[str, Any]) -> str:
    return part(piece, "text", str) or ""
