"""A stub that speaks Ollama's own API (v0.33). `python -m tests.servers.ollama_server --port 8002`"""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from tests.servers.stub import ARGUMENTS, Behaviour, Fault, StubServer, arguments, run


class OllamaServer(StubServer):
    """`window` is the loaded model's context; `cuts` cuts longer prompts silently, as versions before 0.12.6 do.

    `in_memory` is whether models are loaded; `thinks` whether they can think.
    """

    stream_type = "application/x-ndjson"

    def __init__(self, behaviour: Behaviour | None = None) -> None:
        super().__init__(behaviour)
        self.window = 4096
        self.cuts = False
        self.thinking = ""
        self.done_reason = "stop"
        self.parameter_size = "7.6B"
        self.sizes: dict[str, float] = {}
        """By model, billions of parameters where they are not 7.6."""
        self.in_memory = True
        self.thinks = False
        self.abilities = ["tools", "vision"]

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/version", self.version),
            web.get("/api/tags", self.tags),
            web.get("/api/ps", self.loaded),
            web.post("/api/show", self.show),
            web.post("/api/chat", self.chat),
        ]

    async def version(self, request: web.Request) -> web.Response:
        return web.json_response({"version": "0.33.1"})

    async def tags(self, request: web.Request) -> web.Response:
        details = {"quantization_level": "Q4_K_M", "family": "stub"}
        models = [
            {
                "name": name,
                "model": name,
                "modified_at": "2026-11-20T00:00:00Z",
                "size": 4_700_000_000,
                "digest": f"sha256:{name}",
                "details": details | {"parameter_size": self._size(name)},
            }
            for name in self.behaviour.models
        ]
        return web.json_response({"models": models})

    def _size(self, name: str) -> str:
        return f"{self.sizes[name]}B" if name in self.sizes else self.parameter_size

    async def show(self, request: web.Request) -> web.Response:
        size = self.sizes.get((await request.json())["model"], 7.6)
        info = {
            "general.architecture": "stub",
            "general.parameter_count": round(size * 1e9),
            "stub.context_length": 32768,
        }
        abilities = ["completion", *self.abilities, *(["thinking"] if self.thinks else [])]
        return web.json_response({"model_info": info, "capabilities": abilities, "details": {}})

    async def loaded(self, request: web.Request) -> web.Response:
        models = [
            {
                "name": name,
                "model": name,
                "digest": f"sha256:{name}",
                "size": 6_100_000_000,
                "size_vram": 6_100_000_000,
                "expires_at": "2026-11-20T00:05:00Z",
                "context_length": self.window,
            }
            for name in self.behaviour.models
        ]
        return web.json_response({"models": models if self.in_memory else []})

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        window = body.get("options", {}).get("num_ctx", self.window)
        if body.get("truncate") is False and not self.cuts and self._tokens(body) > window - 1:
            text = f'{{"error":{{"code":400,"type":"exceed_context_size_error","n_ctx":{window}}}}}'
            return web.json_response({"error": text}, status=400)
        return await self.generate(request)

    def answer(self, body: dict[str, Any], text: str) -> dict[str, Any]:
        window = body.get("options", {}).get("num_ctx", self.window)
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if self._calls(body):
            call = {"name": body["tools"][0]["function"]["name"], "arguments": json.loads(ARGUMENTS)}
            message |= {"content": "", "tool_calls": [{"function": call}]}
        if self.thinking:
            message["thinking"] = self.thinking
        answer = {
            "model": body["model"],
            "created_at": "2026-11-20T00:00:00Z",
            "message": message,
            "done": True,
            "done_reason": self.done_reason,
            "total_duration": 1_000_000,
            "prompt_eval_count": min(self._tokens(body), window),
            "eval_count": len(text.split()),
        }
        if body.get("logprobs"):
            answer["logprobs"] = [{"token": word, "logprob": -0.5, "bytes": [1]} for word in self._pieces(text)]
        return {key: value for key, value in answer.items() if value != 0}

    def events(self, request: web.Request, body: dict[str, Any], text: str) -> list[str] | None:
        if body.get("stream") is False:
            return None
        whole = self.answer(body, text)
        pieces = [{"thinking": word} for word in self._pieces(self.thinking)]
        calls = whole["message"].get("tool_calls")
        pieces += [{"tool_calls": calls}] if calls else [{"content": word} for word in self._pieces(text)]
        begun = {"model": whole["model"], "created_at": whole["created_at"]}
        lines = [begun | {"message": {"role": "assistant", "content": "", **piece}, "done": False} for piece in pieces]
        last = whole | {"message": {"role": "assistant", "content": ""}}
        return [f"{json.dumps(line)}\n" for line in (*lines, last)]

    def empty(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"model": body["model"], "done": True}

    def error(self, fault: Fault) -> dict[str, Any]:
        return {"error": fault.message or f"stub fault {fault.kind}"}

    @staticmethod
    def _pieces(text: str) -> list[str]:
        first, *others = text.split(" ")
        return [piece for piece in (first, *(f" {word}" for word in others)) if piece]

    @staticmethod
    def _calls(body: dict[str, Any]) -> bool:
        return bool(body.get("tools")) and body["messages"][-1]["role"] != "tool"

    @staticmethod
    def _tokens(body: dict[str, Any]) -> int:
        return sum(len(message["content"].split()) for message in body["messages"])


if __name__ == "__main__":
    run(OllamaServer(), arguments(__doc__ or "").parse_args())
