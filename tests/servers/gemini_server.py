"""A stub that speaks Gemini's own API (v1beta). `python -m tests.servers.gemini_server --port 8003`"""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from tests.servers.stub import ARGUMENTS, Behaviour, Fault, StubServer, arguments, run, texts

_STATUS = {
    400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL",
    503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}  # fmt: skip


def retry_info(delay: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}


def quota_failure(quota: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota}]}


class GeminiServer(StubServer):
    """`thought` comes before the answer as a thought part; `blocked` blocks every prompt for that reason. The model
    listing comes in pages of `page`.
    """

    def __init__(self, behaviour: Behaviour | None = None) -> None:
        super().__init__(behaviour)
        self.thought = ""
        self.finish_reason = "STOP"
        self.blocked = ""
        self.page = 2

    @property
    def url(self) -> str:
        return f"{super().url}/v1beta"

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/{version}/models", self.models),
            web.post("/{version}/models/{model}:generateContent", self.generate),
            web.post("/{version}/models/{model}:streamGenerateContent", self.generate),
        ]

    async def models(self, request: web.Request) -> web.Response:
        if not self.authorized(request):
            return self.failure(self.bad_key())
        start = int(request.query.get("pageToken", "0"))
        named = [
            {
                "name": f"models/{name}",
                "version": "001",
                "displayName": name,
                "inputTokenLimit": 1048576,
                "outputTokenLimit": 65536,
                "supportedGenerationMethods": ["generateContent", "countTokens"],
                "temperature": 1,
                "topP": 0.95,
                "topK": 64,
                "maxTemperature": 2,
                "thinking": True,
            }
            for name in self.behaviour.models
        ]
        everything = [{"name": "models/an-embedding", "supportedGenerationMethods": ["embedContent"]}, *named]
        body: dict[str, Any] = {"models": everything[start : start + self.page]}
        if start + self.page < len(everything):
            body["nextPageToken"] = str(start + self.page)
        return web.json_response(body)

    def authorized(self, request: web.Request) -> bool:
        return not self.behaviour.api_key or request.headers.get("x-goog-api-key") == self.behaviour.api_key

    def bad_key(self) -> Fault:
        detail = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
        return Fault("400", message="API key not valid. Please pass a valid API key.", details=(detail,))

    def model(self, request: web.Request, body: dict[str, Any]) -> str:
        return request.match_info["model"]

    def missing_model(self, model: str) -> Fault:
        return Fault("404", message=f"models/{model} is not found for API version v1beta.")

    def prompt(self, body: dict[str, Any]) -> str:
        return "\n\n".join(self._texts(body))

    def answer(self, body: dict[str, Any], text: str) -> dict[str, Any]:
        words = sum(len(prompt.split()) for prompt in self._texts(body))
        usage = {"promptTokenCount": words, "totalTokenCount": words}
        if self.blocked:
            return {"promptFeedback": {"blockReason": self.blocked}, "usageMetadata": usage}
        parts: list[dict[str, Any]] = [{"text": text}]
        if body.get("tools") and "functionResponse" not in body["contents"][-1]["parts"][-1]:
            name = body["tools"][0]["functionDeclarations"][0]["name"]
            parts = [{"functionCall": {"name": name, "args": json.loads(ARGUMENTS)}, "thoughtSignature": "s"}]
        thoughts = len(self.thought.split())
        usage["candidatesTokenCount"] = len(text.split())
        if thoughts:
            parts.insert(0, {"text": self.thought, "thought": True})
            usage["thoughtsTokenCount"] = thoughts
        usage["totalTokenCount"] = words + thoughts + len(text.split())
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": self.finish_reason, "index": 0}
        if body.get("generationConfig", {}).get("responseLogprobs"):
            tokens = [{"token": word, "tokenId": 1, "logProbability": -0.5} for word in text.split(" ")]
            tops = [{"candidates": [token]} for token in tokens]
            candidate["logprobsResult"] = {"chosenCandidates": tokens, "topCandidates": tops}
        return {
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": "stub-001",
            "responseId": "r1",
        }

    def events(self, request: web.Request, body: dict[str, Any], text: str) -> list[str] | None:
        if not request.path.endswith(":streamGenerateContent"):
            return None
        whole = self.answer(body, text)
        chunks = []
        for part in whole.get("candidates", [{}])[0].get("content", {}).get("parts", []):
            if "functionCall" in part:
                content = {"role": "model", "parts": [part]}
                chunks.append({"candidates": [{"content": content, "index": 0}], "modelVersion": "stub-001"})
                continue
            words = part["text"].split(" ")
            for index, word in enumerate(words):
                piece = part | {"text": word if index == 0 else f" {word}"}
                chunks.append(
                    {
                        "candidates": [{"content": {"role": "model", "parts": [piece]}, "index": 0}],
                        "modelVersion": "stub-001",
                    }
                )
        if "candidates" in whole:
            whole["candidates"][0]["content"]["parts"] = [{"text": ""}]
        return [f"data: {json.dumps(chunk)}\r\n\r\n" for chunk in [*chunks, whole]]

    def empty(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 1}, "modelVersion": "stub-001"}

    def error(self, fault: Fault) -> dict[str, Any]:
        code = int(fault.kind)
        error = {
            "code": code,
            "message": fault.message or f"stub fault {fault.kind}",
            "status": fault.code or _STATUS.get(code, "UNKNOWN"),
        }
        return {"error": error | ({"details": list(fault.details)} if fault.details else {})}

    @staticmethod
    def _texts(body: dict[str, Any]) -> list[str]:
        turns = [body["systemInstruction"]] if "systemInstruction" in body else []
        return [text for turn in [*turns, *body["contents"]] for text in texts(turn["parts"])]


if __name__ == "__main__":
    run(GeminiServer(), arguments(__doc__ or "").parse_args())
