"""A stub that speaks xAI's API: `/language-models`, `/responses` and the older `/chat/completions`.

`python -m tests.servers.grok_server --port 8005`
"""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from tests.servers.openai_server import OpenAIServer, pieces
from tests.servers.stub import ARGUMENTS, Behaviour, Fault, arguments, run, texts


def asked(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages of either API; an input may be a text."""
    found = body.get("messages") or body["input"]
    return [{"role": "user", "content": found}] if isinstance(found, str) else found


class GrokServer(OpenAIServer):
    """`reasoning` comes before the answer; `status` and `incomplete` are those of a response. Errors are a text with a
    code beside it, or with `objects` an object as OpenAI's.
    """

    def __init__(self, behaviour: Behaviour | None = None) -> None:
        super().__init__(behaviour, "xai")
        self.listed = {
            "aliases": [],
            "prompt_text_token_price": 20000,
            "completion_text_token_price": 100000,
            "context_length": 256000,
            "input_modalities": ["text"],
            "fingerprint": "fp_1",
        }
        self.reasoning = ""
        self.status = "completed"
        self.incomplete = ""
        self.ticks: int | None = 37756000
        self.objects = False

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/language-models", self.language_models),
            web.post("/v1/chat/completions", self.generate),
            web.post("/v1/responses", self.generate),
        ]

    async def language_models(self, request: web.Request) -> web.Response:
        if not self.authorized(request):
            return self.failure(self.bad_key())
        models = [{"id": name, "object": "model", "created": 1} | self.listed for name in self.behaviour.models]
        return web.json_response({"models": models})

    def bad_key(self) -> Fault:
        return Fault("400", message="Incorrect API key provided: xa***1. You can obtain one in the console.")

    def prompt(self, body: dict[str, Any]) -> str:
        return "\n\n".join(text for item in asked(body) for text in texts(item.get("content")))

    def answer(self, body: dict[str, Any], text: str) -> dict[str, Any]:
        if "input" not in body:
            return self._chat(body, text)
        output: list[dict[str, Any]] = []
        if self.reasoning:
            summary = [{"type": "summary_text", "text": self.reasoning}]
            output.append({"id": "rs_1", "type": "reasoning", "summary": summary, "status": "completed"})
        content: list[dict[str, Any]] = [{"type": "output_text", "text": text, "annotations": [], "logprobs": None}]
        if self.status != "incomplete":
            message = {"type": "message", "role": "assistant", "content": content, "status": "completed"}
            output.append({"id": "msg_1", **message})
        if body.get("tools") and asked(body)[-1].get("type") != "function_call_output":
            call = {"call_id": "call_1", "name": body["tools"][0]["name"], "arguments": ARGUMENTS}
            output = [{"id": "fc_1", "type": "function_call", "status": "completed", **call}]
        read, thought, written = len(self.prompt(body).split()), len(self.reasoning.split()), len(text.split())
        usage: dict[str, Any] = {
            "input_tokens": read,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": written + thought,
            "output_tokens_details": {"reasoning_tokens": thought},
            "total_tokens": read + written + thought,
        }
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "model": body["model"],
            "status": self.status,
            "error": None,
            "incomplete_details": {"reason": self.incomplete} if self.incomplete else None,
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": usage | self._cost(),
        }

    def events(self, request: web.Request, body: dict[str, Any], text: str) -> list[str] | None:
        if "input" not in body:
            return super().events(request, body, text)
        if not body.get("stream"):
            return None
        whole = self.answer(body, text)
        events: list[dict[str, Any]] = [{"type": "response.created", "response": whole | {"status": "in_progress"}}]
        events += [{"type": "response.reasoning_summary_text.delta", "delta": p} for p in pieces(self.reasoning)]
        events += [{"type": "response.output_text.delta", "delta": piece} for piece in pieces(text)]
        events.append({"type": f"response.{self.status}", "response": whole})
        return [
            f"event: {event['type']}\ndata: {json.dumps(event | {'sequence_number': number})}\n\n"
            for number, event in enumerate(events)
        ]

    def empty(self, body: dict[str, Any]) -> dict[str, Any]:
        return self.answer(body, "") | ({"output": []} if "input" in body else {"choices": []})

    def error(self, fault: Fault) -> dict[str, Any]:
        if self.objects:
            return super().error(fault)
        return {"code": fault.code or "stub error", "error": fault.message or f"stub fault {fault.kind}"}

    def _chat(self, body: dict[str, Any], text: str) -> dict[str, Any]:
        whole = super().answer(body, text)
        thought = len(self.reasoning.split())
        if self.reasoning:
            whole["choices"][0]["message"]["reasoning_content"] = self.reasoning
        usage = whole["usage"]
        usage["total_tokens"] += thought
        usage["completion_tokens_details"] = {"reasoning_tokens": thought}
        usage |= self._cost()
        return whole

    def _cost(self) -> dict[str, Any]:
        return {"cost_in_usd_ticks": self.ticks} if self.ticks is not None else {}


if __name__ == "__main__":
    run(GrokServer(), arguments(__doc__ or "").parse_args())
