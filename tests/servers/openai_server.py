"""A stub that speaks OpenAI's chat completions. `python -m tests.servers.openai_server --port 8001`"""

from __future__ import annotations

from typing import Any

from aiohttp import web

from tests.servers.stub import Behaviour, Fault, StubServer, arguments, run


class OpenAIServer(StubServer):
    """`owned_by` is what its model listing says, which tells clients the server's product ("vllm", "llamacpp")."""

    def __init__(self, behaviour: Behaviour | None = None, owned_by: str = "stub") -> None:
        super().__init__(behaviour)
        self.owned_by = owned_by
        self.message: dict[str, Any] = {}
        self.finish_reason = "stop"

    @property
    def url(self) -> str:
        return f"{super().url}/v1"

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/v1/models", self.models), web.post("/v1/chat/completions", self.generate)]

    async def models(self, request: web.Request) -> web.Response:
        if self.behaviour.api_key and request.headers.get("Authorization") != f"Bearer {self.behaviour.api_key}":
            return web.json_response(self.error(Fault("401", code="invalid_api_key")), status=401)
        data = [
            {"id": name, "object": "model", "owned_by": self.owned_by, "max_model_len": 4096}
            for name in self.behaviour.models
        ]
        return web.json_response({"object": "list", "data": data})

    def answer(self, body: dict[str, Any], text: str) -> dict[str, Any]:
        message = {"role": "assistant", "content": text} | self.message
        words = sum(len(message["content"].split()) for message in body["messages"])
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish_reason}],
            "usage": {"prompt_tokens": words, "completion_tokens": len(text.split()), "total_tokens": words},
        }

    def empty(self, body: dict[str, Any]) -> dict[str, Any]:
        return self.answer(body, "") | {"choices": []}

    def error(self, fault: Fault) -> dict[str, Any]:
        message = fault.message or f"stub fault {fault.kind}"
        return {"error": {"message": message, "type": "stub_error", "param": None, "code": fault.code or None}}


if __name__ == "__main__":
    run(OpenAIServer(), arguments(__doc__ or "").parse_args())
