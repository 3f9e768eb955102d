"""A stub of an application with an interface of its own. `python -m tests.servers.application_server --port 8005`"""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from tests.servers.stub import ARGUMENTS, Behaviour, Fault, StubServer, arguments, run


class ApplicationServer(StubServer):
    """Answers `{"question": …}` at /ask, by POST or GET, and `{"messages": …}` alike. Wants its key as `X-Key`."""

    def __init__(self, behaviour: Behaviour | None = None) -> None:
        super().__init__(behaviour)
        self.plain = False

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/ask", self.generate), web.get("/ask", self.generate)]

    async def body(self, request: web.Request) -> dict[str, Any]:
        return dict(request.query) if request.method == "GET" else await super().body(request)

    def authorized(self, request: web.Request) -> bool:
        return super().authorized(request) or request.headers.get("X-Key") == self.behaviour.api_key

    def model(self, request: web.Request, body: dict[str, Any]) -> str:
        return next(iter(self.behaviour.models))

    def prompt(self, body: dict[str, Any]) -> str:
        return super().prompt(body) if "messages" in body else str(body["question"])

    def answer(self, body: dict[str, Any], text: str) -> dict[str, Any]:
        return {
            "output": [
                {"type": "search", "hits": 3},
                {"type": "message", "content": [{"text": word} for word in text.split(" ")]},
            ],
            "reply": {"text": text, "certain": 0.9, **self._calls(body)},
            "error": None,
            "usage": {"read": len(self.prompt(body).split()), "written": len(text.split())},
            "finish": "done",
            "model": "app-7",
        }

    def _calls(self, body: dict[str, Any]) -> dict[str, Any]:
        if not body.get("tools") or body["messages"][-1]["role"] == "tool":
            return {}
        function = {"name": body["tools"][0]["function"]["name"], "arguments": json.loads(ARGUMENTS)}
        return {"text": "", "calls": [{"id": "call_1", "function": function}]}

    def events(self, request: web.Request, body: dict[str, Any], text: str) -> list[str] | None:
        return [text] if self.plain else None

    def empty(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"reply": {}}

    def error(self, fault: Fault) -> dict[str, Any]:
        return {"message": fault.message or f"stub fault {fault.kind}"}


if __name__ == "__main__":
    run(ApplicationServer(), arguments(__doc__ or "").parse_args())
