"""Answers of every wire as bytes, and a session that gives them to a provider without a network."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from multidict import CIMultiDict

from services.evaluator import make_provider
from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.endpoints.http_options import HttpOptions
from services.evaluator.items.task import Item, Message
from services.evaluator.providers.protocol.provider import Provider, Request
from services.evaluator.providers.protocol.transport import Transport
from touchstone.v1 import job_pb2

ANSWER = "Answer: positive"
MODEL = "stub"
TASK = Catalogue(None).task("demo", "sentiment")
ITEM = Item(
    0, (Message("user", "How was it?"),), "positive", "h", "p", context="How was it?", choices=(" good", " bad")
)
PRICES = {"input": 1.0, "output": 2.0}
HTTP = HttpOptions.read(
    {
        "request": {"q": "{prompt}"},
        "answer": "$.reply",
        "error": "$.error",
        "input_tokens": "$.used.read",
        "output_tokens": "$.used.written",
        "finish_reason": "$.finish",
        "model": "$.model",
    }
)


class Session:
    """Answers every request with the same bytes, in pieces."""

    def __init__(
        self, body: bytes, kind: str = "application/json", status: int = 200, headers: Any = (), piece: int = 37
    ) -> None:
        self.body, self.kind, self.status, self.piece = body, kind, status, piece
        self.headers = CIMultiDict(headers)

    def request(self, *_: Any, **__: Any) -> Session:
        return self

    async def __aenter__(self) -> SimpleNamespace:
        pieces = (self.body[start : start + self.piece] for start in range(0, len(self.body), self.piece))

        async def iter_any() -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece

        async def readany() -> bytes:
            return next(pieces, b"")

        content = SimpleNamespace(iter_any=iter_any, readany=readany)
        return SimpleNamespace(
            status=self.status,
            headers=self.headers,
            content_type=self.kind,
            content=content,
            close=lambda: None,
        )

    async def __aexit__(self, *_: object) -> None:
        return None

    async def close(self) -> None:
        return None


def endpoint(kind: str, **changes: Any) -> Endpoint:
    made = Endpoint(kind, kind, "http://stub.invalid", http=HTTP if kind == "http" else None)
    return replace(made, models=(MODEL,), **changes)


def provider(kind: str, session: Session, **changes: Any) -> Provider:
    """A provider whose every transport has this session."""
    return cast(Provider, with_session(make_provider.provider(endpoint(kind, **changes)), session))


def with_session(owner: Any, session: Session) -> Any:
    for held in list(vars(owner).values()):
        if isinstance(held, Transport):
            cast(Any, held)._session = session
    return owner


def request(*, stream: bool = False) -> Request:
    return Request(MODEL, job_pb2.Sampling(), TASK, ITEM, stream=stream)


def sse(events: list[Any]) -> bytes:
    return b"".join(b"data: " + written(event) + b"\n\n" for event in events) + b"data: [DONE]\n\n"


def ndjson(events: list[Any]) -> bytes:
    return b"".join(written(event) + b"\n" for event in events)


class Raw(str):
    """Stands in JSON as it is: what Python would not write."""


def written(value: Any) -> bytes:
    """JSON with anything in it, also what is not JSON."""
    if isinstance(value, Raw):
        return value.encode("latin-1")
    if isinstance(value, dict):
        return b"{" + b",".join(json.dumps(name).encode() + b":" + written(held) for name, held in value.items()) + b"}"
    if isinstance(value, list):
        return b"[" + b",".join(map(written, value)) + b"]"
    return json.dumps(value).encode()


_USAGE = {
    "prompt_tokens": 5,
    "completion_tokens": 3,
    "cost": 0.01,
    "completion_tokens_details": {"reasoning_tokens": 1},
}
_GROK_USAGE = {
    "input_tokens": 5,
    "output_tokens": 3,
    "total_tokens": 9,
    "cost_in_usd_ticks": 100_000,
    "output_tokens_details": {"reasoning_tokens": 1},
}
_GEMINI_USAGE = {"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 1}
_CLAUDE_USAGE = {
    "input_tokens": 5,
    "output_tokens": 3,
    "cache_read_input_tokens": 1,
    "output_tokens_details": {"thinking_tokens": 1},
}
_CHAT = {
    "id": "c",
    "created": 1_700_000_000,
    "model": MODEL,
    "choices": [{"index": 0, "message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}],
    "usage": _USAGE,
}
_GROK = {
    "model": MODEL,
    "status": "completed",
    "created_at": 1_700_000_000,
    "output": [{"type": "message", "content": [{"type": "output_text", "text": ANSWER}]}],
    "usage": _GROK_USAGE,
}
_GEMINI = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": ANSWER}]}, "finishReason": "STOP", "index": 0}],
    "usageMetadata": _GEMINI_USAGE,
    "modelVersion": MODEL,
}
_CLAUDE = {
    "type": "message",
    "model": MODEL,
    "content": [{"type": "text", "text": ANSWER}],
    "stop_reason": "end_turn",
    "usage": _CLAUDE_USAGE,
}
_OLLAMA = {
    "model": MODEL,
    "message": {"role": "assistant", "content": ANSWER},
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 5,
    "eval_count": 3,
    "total_duration": 12345,
}
_HTTP = {"reply": ANSWER, "used": {"read": 5, "written": 3}, "finish": "stop", "model": MODEL}
WHOLE: dict[str, dict[str, Any]] = {
    "openai": _CHAT,
    "vllm": _CHAT,
    "grok": _GROK,
    "gemini": _GEMINI,
    "anthropic": _CLAUDE,
    "ollama": _OLLAMA,
    "http": _HTTP,
}
"""A whole answer by kind of endpoint."""

_HALF, _REST = ANSWER[:6], ANSWER[6:]
STREAMED: dict[str, list[dict[str, Any]]] = {
    "openai": [
        {"choices": [{"index": 0, "delta": {"content": _HALF}}], "model": MODEL},
        {"choices": [{"index": 0, "delta": {"content": _REST}, "finish_reason": "stop"}]},
        {"choices": [], "usage": _USAGE},
    ],
    "grok": [
        {"type": "response.output_text.delta", "delta": ANSWER},
        {"type": "response.completed", "response": _GROK},
    ],
    "gemini": [
        {"candidates": [{"content": {"parts": [{"text": _HALF}]}}]},
        {
            "candidates": [{"content": {"parts": [{"text": _REST}]}, "finishReason": "STOP"}],
            "usageMetadata": _GEMINI_USAGE,
            "modelVersion": MODEL,
        },
    ],
    "anthropic": [
        {"type": "message_start", "message": {"model": MODEL, "usage": {"input_tokens": 5}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ANSWER}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ],
    "ollama": [
        {"model": MODEL, "message": {"content": _HALF}, "done": False},
        _OLLAMA | {"message": {"content": _REST}},
    ],
}
"""The same as events."""

STREAM_TYPE = {"ollama": "application/x-ndjson"}
LISTED: dict[str, dict[str, Any]] = {
    "openai": {
        "data": [
            {
                "id": MODEL,
                "created": 1,
                "owned_by": "vllm",
                "max_model_len": 4096,
                "context_length": 4096,
                "meta": {"n_params": 7_000_000_000, "size": 1, "n_ctx": 1, "n_ctx_train": 1},
                "pricing": {"prompt": "0.000001", "completion": 0.000002},
                "supported_parameters": ["temperature"],
            }
        ]
    },
    "grok": {
        "models": [
            {
                "id": MODEL,
                "context_length": 4096,
                "prompt_text_token_price": 20000,
                "completion_text_token_price": 40000,
                "aliases": ["other"],
                "capabilities": {"reasoning_effort": ["low"], "default_reasoning_effort": "none"},
            }
        ]
    },
    "gemini": {
        "models": [
            {"name": f"models/{MODEL}", "inputTokenLimit": 4096, "supportedGenerationMethods": ["generateContent"]}
        ],
        "nextPageToken": "",
    },
    "anthropic": {
        "data": [{"id": MODEL, "max_input_tokens": 4096, "display_name": "Stub"}],
        "has_more": False,
        "last_id": MODEL,
    },
    "ollama": {
        "models": [
            {
                "name": MODEL,
                "size": 4_000_000_000,
                "size_vram": 1,
                "digest": "d",
                "details": {"parameter_size": "7.6B", "quantization_level": "Q4", "context_length": 4096},
                "capabilities": ["thinking"],
                "context_length": 4096,
            }
        ],
        "version": "0.33",
        "model_info": {"x.context_length": 4096, "general.parameter_count": 7_000_000_000},
    },
}
LISTED["vllm"] = LISTED["openai"] | {"version": "0.32", "max_model_len": 4096}
SCORED = {
    "choices": [
        {
            "index": place,
            "logprobs": {
                "tokens": ["How", " was", " it?", " good"],
                "token_logprobs": [None, -1.0, -2.0, -0.5],
                "top_logprobs": [None, {" was": -1.0}, {" it?": -2.0}, {" good": -0.5}],
            },
        }
        for place in range(3)
    ],
    "usage": _USAGE,
    "model": MODEL,
}
"""Log-probabilities of a context and two choices."""

BATCH_STATES: dict[str, dict[str, Any]] = {
    "openai": {
        "id": "batch_1",
        "status": "completed",
        "request_counts": {"completed": 1, "failed": 0},
        "errors": {"data": [{"code": "token_limit_exceeded", "message": "m"}]},
        "output_file_id": "file-1",
        "error_file_id": None,
        "created_at": 1,
    },
    "gemini": {
        "name": "batches/1",
        "done": True,
        "metadata": {
            "displayName": "mark",
            "state": "BATCH_STATE_SUCCEEDED",
            "batchStats": {"successfulRequestCount": "1", "failedRequestCount": 0},
        },
        "response": {
            "inlinedResponses": {
                "inlinedResponses": [
                    {"metadata": {"key": "0"}, "response": _GEMINI},
                    {"metadata": {"key": "1"}, "error": {"code": 8, "message": "m"}},
                ]
            }
        },
    },
}
BATCH_LISTS: dict[str, dict[str, Any]] = {
    "openai": {"data": [{"id": "batch_1", "metadata": {"touchstone": "mark"}}], "has_more": False},
    "gemini": {"operations": [{"name": "batches/1", "metadata": {"displayName": "mark"}}], "nextPageToken": ""},
}
BATCH_LINES = [
    {"custom_id": "0", "response": {"status_code": 200, "body": _CHAT}, "error": None},
    {"custom_id": "1", "response": None, "error": {"code": "batch_expired", "message": "m"}},
]

Place = tuple[str | int, ...]


def places(document: Any, at: Place = ()) -> list[Place]:
    """Every place of a document, the document itself not."""
    inner = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    found: list[Place] = []
    for key, value in inner:
        found += [(*at, key), *places(value, (*at, key))]
    return found


def changed(document: Any, at: Place, value: Any) -> Any:
    """The document with another value at a place."""
    if not at:
        return value
    copy: Any = dict(document) if isinstance(document, dict) else list(document)
    copy[at[0]] = changed(document[at[0]], at[1:], value)
    return copy


def value_at(document: Any, at: Place) -> Any:
    for key in at:
        document = document[key]
    return document
