"""A stub that speaks Anthropic's messages API. `python -m tests.servers.anthropic_server --port 8004`"""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from tests.servers.stub import ARGUMENTS, Behaviour, Fault, StubServer, arguments, run, texts

_TYPES = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
    404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 504: "timeout_error",
    529: "overloaded_error",
}  # fmt: skip


class AnthropicServer(StubServer):
    """`thinking` comes before the answer as a block of its own. The model listing comes in pages of `page`.

    `breaks` ends a stream with that error after its first words.
    """

    def __init__(self, behaviour: Behaviour | None = None) -> None:
        super().__init__(behaviour)
        self.thinking = ""
        self.stop_reason = "end_turn"
        self.page = 2
        self.breaks: Fault | None = None

    @property
    def url(self) -> str:
        return f"{super().url}/v1"

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/v1/models", self.models), web.post("/v1/messages", self.generate)]

    async def models(self, request: web.Request) -> web.Response:
        if not self.authorized(request):
            return self.failure(self.bad_key())
        names = list(self.behaviour.models)
        after = request.query.get("after_id")
        start = names.index(after) + 1 if after else 0
        shown = names[start : start + self.page]
        data = [
            {
                "type": "model",
                "id": name,
                "display_name": name.title(),
                "created_at": "2026-01-01T00:00:00Z",
                "lifecycle": "active",
                "max_input_tokens": 200000,
                "max_tokens": 64000,
            }
            for name in shown
        ]
        more = start + self.page < len(names)
        body = {"data": data, "has_more": more, "first_id": shown[0], "last_id": shown[-1]}
        return web.json_response(body)

    def authorized(self, request: web.Request) -> bool:
        """Both ways that the API takes a key: the header of its own, and a bearer token."""
        return super().authorized(request) or request.headers.get("x-api-key") == self.behaviour.api_key

    def bad_key(self) -> Fault:
        return Fault("401", message="invalid x-api-key")

    def missing_model(self, model: str) -> Fault:
        return Fault("404", message=f"model: {model}")

    def prompt(self, body: dict[str, Any]) -> str:
        return "\n\n".join(self._texts(body))

    async def _respond(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        for required in ("max_tokens", "model", "messages"):
            if required not in body:
                return self.failure(Fault("400", message=f"{required}: Field required"))
        if "anthropic-version" not in request.headers:
            return self.failure(Fault("400", message="anthropic-version: header is required"))
        return await super()._respond(request, body)

    def answer(self, body: dict[str, Any], text: str) -> dict[str, Any]:
        blocks: list[dict[str, Any]] = [{"type": "text", "text": text}]
        stop_reason, last = self.stop_reason, body["messages"][-1]["content"]
        if body.get("tools") and not (isinstance(last, list) and last[-1]["type"] == "tool_result"):
            called = {"name": body["tools"][0]["name"], "input": json.loads(ARGUMENTS)}
            blocks = [{"type": "tool_use", "id": "toolu_1", **called}]
            stop_reason = "tool_use"
        thought = len(self.thinking.split())
        usage: dict[str, Any] = {
            "input_tokens": sum(len(prompt.split()) for prompt in self._texts(body)),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": len(text.split()) + thought,
        }
        if self.thinking:
            blocks.insert(0, {"type": "thinking", "thinking": self.thinking, "signature": "s"})
            usage["output_tokens_details"] = {"thinking_tokens": thought}
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": f"{body['model']}-20260101",
            "content": blocks,
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": usage,
        }

    def events(self, request: web.Request, body: dict[str, Any], text: str) -> list[str] | None:
        if not body.get("stream"):
            return None
        whole = self.answer(body, text)
        blocks = whole["content"]
        start = whole | {"content": [], "stop_reason": None, "usage": whole["usage"] | {"output_tokens": 1}}
        events: list[dict[str, Any]] = [{"type": "message_start", "message": start}, {"type": "ping"}]
        for index, block in enumerate(blocks):
            key = block["type"]
            if key == "tool_use":
                events.append({"type": "content_block_start", "index": index, "content_block": block | {"input": {}}})
                for piece in ("", *ARGUMENTS.partition(",")):
                    delta = {"type": "input_json_delta", "partial_json": piece}
                    events.append({"type": "content_block_delta", "index": index, "delta": delta})
                events.append({"type": "content_block_stop", "index": index})
                continue
            begun = {"type": key, key: ""} | ({"signature": ""} if key == "thinking" else {})
            events.append({"type": "content_block_start", "index": index, "content_block": begun})
            for place, word in enumerate(block[key].split(" ")):
                delta = {"type": f"{key}_delta", key: word if place == 0 else f" {word}"}
                events.append({"type": "content_block_delta", "index": index, "delta": delta})
            if key == "thinking":
                signed = {"type": "signature_delta", "signature": block["signature"]}
                events.append({"type": "content_block_delta", "index": index, "delta": signed})
            events.append({"type": "content_block_stop", "index": index})
        if self.breaks is not None:
            events = [*events[:4], self.error(self.breaks)]
        else:
            ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
            events.append({"type": "message_delta", "delta": ended, "usage": whole["usage"]})
            events.append({"type": "message_stop"})
        return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]

    def empty(self, body: dict[str, Any]) -> dict[str, Any]:
        return self.answer(body, "") | {"content": [], "stop_reason": None}

    def error(self, fault: Fault) -> dict[str, Any]:
        kind = fault.code or _TYPES.get(int(fault.kind), "api_error")
        message = fault.message or f"stub fault {fault.kind}"
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}

    @staticmethod
    def _texts(body: dict[str, Any]) -> list[str]:
        system = [body["system"]] if "system" in body else []
        return [*system, *(text for message in body["messages"] for text in texts(message["content"]))]


if __name__ == "__main__":
    run(AnthropicServer(), arguments(__doc__ or "").parse_args())
