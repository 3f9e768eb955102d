"""A stub that speaks OpenAI's chat completions, and beside them what vLLM and xAI add.

`python -m tests.servers.openai_server --port 8001`
"""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from tests.servers.stub import ARGUMENTS, Behaviour, Fault, StubServer, arguments, run, texts


class OpenAIServer(StubServer):
    """`owned_by` is what its model listing says, which tells clients the server's product ("vllm", "llamacpp").

    `listed` are further fields of every listed model, `message` of every answer, `usage` of its usage.
    """

    def __init__(self, behaviour: Behaviour | None = None, owned_by: str = "stub") -> None:
        super().__init__(behaviour)
        self.owned_by = owned_by
        self.listed: dict[str, Any] = {"max_model_len": 4096}
        self.message: dict[str, Any] = {}
        self.usage: dict[str, Any] = {}
        self.finish_reason = "stop"

    @property
    def url(self) -> str:
        return f"{super().url}/v1"

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/v1/models", self.models), web.post("/v1/chat/completions", self.generate)]

    async def models(self, request: web.Request) -> web.Response:
        if not self.authorized(request):
            return self.failure(self.bad_key())
        data = [
            {"id": name, "object": "model", "created": 1, "owned_by": self.owned_by} | self.listed
            for name in self.behaviour.models
        ]
        return web.json_response({"object": "list", "data": data})

    def answer(self, body: dict[str, Any], text: str) -> dict[str, Any]:
        message = {"role": "assistant", "content": text} | self.message
        words = sum(len(text.split()) for message in body["messages"] for text in texts(message["content"]))
        finish_reason = self.finish_reason
        if body.get("tools") and body["messages"][-1]["role"] != "tool":
            name = body["tools"][0]["function"]["name"]
            call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": ARGUMENTS}}
            message |= {"content": None, "tool_calls": [call]}
            finish_reason = "tool_calls"
        choice = {"index": 0, "message": message, "finish_reason": finish_reason}
        if body.get("logprobs"):
            choice["logprobs"] = {"content": [_token(word, body.get("top_logprobs", 0)) for word in pieces(text)]}
        written = len(text.split())
        usage = {"prompt_tokens": words, "completion_tokens": written, "total_tokens": words + written} | self.usage
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [choice],
            "usage": usage,
        }

    def events(self, request: web.Request, body: dict[str, Any], text: str) -> list[str] | None:
        if not body.get("stream"):
            return None
        whole = self.answer(body, text)
        message = whole["choices"][0]["message"]
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        for key in ("reasoning", "reasoning_content", "refusal", "content"):
            deltas += [{key: piece} for piece in pieces(message.get(key) or "")]
        for index, call in enumerate(message.get("tool_calls") or ()):
            function = call["function"]
            begun = call | {"index": index, "function": {"name": function["name"], "arguments": ""}}
            deltas.append({"tool_calls": [begun]})
            deltas += [
                {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
                for piece in pieces(function["arguments"])
            ]
        chunks = [self._chunk(whole, [{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
        for one in whole["choices"][0].get("logprobs", {}).get("content", []):
            chunks.append(self._chunk(whole, [{"index": 0, "delta": {}, "logprobs": {"content": [one]}}]))
        finish_reason = whole["choices"][0]["finish_reason"]
        chunks.append(self._chunk(whole, [{"index": 0, "delta": {}, "finish_reason": finish_reason}]))
        if (body.get("stream_options") or {}).get("include_usage"):
            chunks.append(self._chunk(whole, []) | {"usage": whole["usage"]})
        return [*(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks), "data: [DONE]\n\n"]

    def empty(self, body: dict[str, Any]) -> dict[str, Any]:
        return self.answer(body, "") | {"choices": []}

    def error(self, fault: Fault) -> dict[str, Any]:
        message = fault.message or f"stub fault {fault.kind}"
        return {"error": {"message": message, "type": "stub_error", "param": None, "code": fault.code or None}}

    @staticmethod
    def _chunk(whole: dict[str, Any], choices: list[dict[str, Any]]) -> dict[str, Any]:
        shared = {key: whole[key] for key in ("id", "created", "model")}
        return shared | {"object": "chat.completion.chunk", "choices": choices}


def _token(text: str, top: int) -> dict[str, Any]:
    others = [{"token": f"{text}{number}", "logprob": -1.0 - number, "bytes": None} for number in range(top)]
    return {"token": text, "logprob": -0.5, "bytes": [1], "top_logprobs": others}


def pieces(text: str) -> list[str]:
    """A text cut into words as a stream brings them."""
    first, *others = text.split(" ")
    return [piece for piece in (first, *(f" {word}" for word in others)) if piece]


if __name__ == "__main__":
    run(OpenAIServer(), arguments(__doc__ or "").parse_args())
