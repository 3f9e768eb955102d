"""Any server that speaks OpenAI's chat completions: OpenAI, vLLM, llama.cpp, LM Studio, SGLang, litellm.

What is sent. `temperature`, `top_p`, `seed` and `max_tokens` (to api.openai.com: `max_completion_tokens`, the only name
that all of its models take) when they are set. `top_k` and `repeat_penalty` are no part of the protocol: they go to
servers that are known to read them, by the owner that their model listing names ("vllm": `top_k`,
`repetition_penalty`; "llamacpp": `top_k`, `repeat_penalty`). Elsewhere, as with `context_length`, which no server
takes per request, the job fails and says so: a parameter that is recorded must have been sent. `extra` is merged into
the body last and passes anything.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from services.evaluator.endpoints import OPENAI_URL, Endpoint
from services.evaluator.providers import model_size
from services.evaluator.providers.base import Listing, ProviderError
from services.evaluator.providers.sampling import extra
from services.evaluator.providers.transport import Reply, Transport
from services.evaluator.tasks.base import Item, Response, Task
from touchstone.v1 import endpoint_pb2, job_pb2

_OPTIONAL = {
    "vllm": {"top_k": "top_k", "repeat_penalty": "repetition_penalty"},
    "sglang": {"top_k": "top_k", "repeat_penalty": "repetition_penalty"},
    "llamacpp": {"top_k": "top_k", "repeat_penalty": "repeat_penalty"},
}
_PRODUCTS = {"vllm": "vLLM", "sglang": "SGLang", "llamacpp": "llama.cpp"}
_CONTEXT = re.compile(
    r"(maximum|available|model'?s?) context|context[ _](length|window|size)|exceed_context|prompt is too long|"
    r"(input|prompt|messages?) (is|are|was) too long|reduce the length",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(r"insufficient_quota|billing|exceeded your current quota|credit", re.IGNORECASE)


class OpenAIProvider:
    """One OpenAI-compatible endpoint."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._http = Transport.to(endpoint, "Start the server or correct base_url in the endpoints file.")
        self._official = endpoint.base_url.startswith(OPENAI_URL)
        self._listed: dict[str, endpoint_pb2.Model] | None = None
        self._owner = ""
        self._listing = asyncio.Lock()

    async def list_models(self) -> Listing:
        self._require_key()
        reply = await self._http.get("/models")
        entries: list[dict[str, Any]] = []
        if reply.status == 200 and isinstance(reply.body, dict) and isinstance(reply.body.get("data"), list):
            entries = [entry for entry in reply.body["data"] if isinstance(entry, dict) and entry.get("id")]
        elif not (self._endpoint.models and reply.status in (404, 405)):
            raise self._failure(reply, "")
        found = {str(entry["id"]): _model(entry) for entry in entries}
        owners = {str(entry.get("owned_by", "")).lower() for entry in entries}
        self._owner = next((owner for owner in _OPTIONAL if owner in owners), "")
        if self._endpoint.models:
            found = {name: found.get(name, _model({"id": name})) for name in self._endpoint.models}
        self._listed = found
        return Listing(tuple(found.values()), _PRODUCTS.get(self._owner, ""))

    async def generate(self, model: str, sampling: job_pb2.Sampling, task: Task, item: Item) -> Response:
        self._require_key()
        await self._refuse_larger(model)
        body: dict[str, Any] = {
            "model": model,
            "messages": [{"role": message.role, "content": message.content} for message in item.messages],
            "stream": False,
            **await self._parameters(sampling),
        }
        body.update(extra(sampling, body))
        reply = await self._http.post("/chat/completions", body)
        if reply.status != 200:
            return self._refusal(reply, model)
        return self._response(reply)

    async def close(self) -> None:
        await self._http.close()

    async def _parameters(self, sampling: job_pb2.Sampling) -> dict[str, Any]:
        limit = "max_completion_tokens" if self._official else "max_tokens"
        names = {"temperature": "temperature", "top_p": "top_p", "seed": "seed", "max_tokens": limit}
        if sampling.HasField("top_k") or sampling.HasField("repeat_penalty"):
            await self._ensure_listed()
            names |= _OPTIONAL.get(self._owner, {})
        parameters = {}
        for field, value in sampling.ListFields():
            if field.name == "extra":
                continue
            if field.name not in names:
                raise ProviderError(
                    f"{self._endpoint.name} does not take {field.name}. Leave it out of the job's parameters.",
                    fatal=True,
                )
            parameters[names[field.name]] = value
        return parameters

    async def _refuse_larger(self, model: str) -> None:
        if not self._endpoint.max_model_b:
            return
        await self._ensure_listed()
        known = (self._listed or {}).get(model)
        size = known.parameters_b if known is not None else model_size.parameters_b(model)
        model_size.refuse_larger(self._endpoint.name, model, size, self._endpoint.max_model_b)

    async def _ensure_listed(self) -> None:
        async with self._listing:
            if self._listed is None:
                await self.list_models()

    def _require_key(self) -> None:
        if not self._endpoint.configured:
            raise ProviderError(self._endpoint.no_key, fatal=True)

    def _response(self, reply: Reply) -> Response:
        name = self._endpoint.name
        body = reply.body
        if not isinstance(body, dict):
            raise ProviderError(f"{name} cut an answer short: it is not whole JSON.", retryable=True)
        if body.get("error"):
            raise ProviderError(f"{name} failed while answering: {reply.error_text}", retryable=True)
        choices = body.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(choice, dict) or not isinstance(message, dict):
            raise ProviderError(f"{name} sent an answer without a choice.", retryable=True)
        finish = str(choice.get("finish_reason") or "")
        usage = body.get("usage") if isinstance(body.get("usage"), dict) else {}
        refusal = message.get("refusal")
        return Response(
            text=_text(message.get("content")) or _text(refusal),
            reasoning=_text(message.get("reasoning") or message.get("reasoning_content")),
            finish_reason=finish,
            input_tokens=_count(usage, "prompt_tokens"),
            output_tokens=_count(usage, "completion_tokens"),
            latency_ms=reply.latency_ms,
            served_model=_text(body.get("model")),
            refused=finish == "content_filter" or bool(refusal),
        )

    def _refusal(self, reply: Reply, model: str) -> Response:
        """An answer that says no to this item alone; every other failure raises ProviderError."""
        words = f"{reply.error_code} {reply.error_text}"
        if reply.status in (400, 413, 422):
            if "content_filter" in words or "content_policy" in words:
                return Response("", finish_reason="content_filter", latency_ms=reply.latency_ms, refused=True)
            if _CONTEXT.search(words):
                return Response(
                    "", finish_reason="context_length_exceeded", latency_ms=reply.latency_ms, input_truncated=True
                )
        raise self._failure(reply, model)

    def _failure(self, reply: Reply, model: str) -> ProviderError:
        name, status, said = self._endpoint.name, reply.status, reply.error_text
        words = f"{reply.error_code} {said}"
        if status in (401, 403):
            # Without the provider's words: some repeat parts of the key.
            if self._endpoint.api_key_env:
                what = f"Set {self._endpoint.api_key_env} where the evaluator runs and restart it."
            else:
                what = "Name the variable that holds it as api_key_env in the endpoints file."
            return ProviderError(f"{name} refused the key. {what}", fatal=True)
        if status == 402 or (status == 429 and _NO_CREDIT.search(words)):
            return ProviderError(f"{name} says that the quota is used up. Add credit there, then retry.", fatal=True)
        if status == 429:
            return ProviderError(
                f"{name} asks for fewer calls. Lower concurrency or set requests_per_minute.",
                retryable=True,
                rate_limited=True,
                retry_after_s=reply.retry_after_s,
            )
        if "model" in words.lower() and (status == 404 or "model_not_found" in words) and reply.body is not None:
            return ProviderError(f"{name} does not have model {model}. Choose one that it lists.", fatal=True)
        if status in (404, 405):
            return ProviderError(
                f"{name} has no chat completions at {self._endpoint.address}. "
                "Correct base_url in the endpoints file; it usually ends in /v1.",
                fatal=True,
            )
        if status in (408, 409, 425) or status >= 500:
            return ProviderError(
                f"{name} failed with status {status}{': ' + said if said else ''}.",
                retryable=True,
                unreachable=status in (502, 503, 504),
                retry_after_s=reply.retry_after_s,
            )
        return ProviderError(f"{name} refused a call with status {status}{': ' + said if said else ''}.")


def _model(entry: dict[str, Any]) -> endpoint_pb2.Model:
    """A model of `/v1/models`; `max_model_len` is vLLM's, `meta` llama.cpp's."""
    meta = entry.get("meta") if isinstance(entry.get("meta"), dict) else {}
    assert isinstance(meta, dict)
    name = str(entry["id"])
    return endpoint_pb2.Model(
        model=name,
        parameters_b=round(_count(meta, "n_params") / 1e9, 3) or model_size.parameters_b(name),
        disk_bytes=_count(meta, "size"),
        context_length=_count(entry, "max_model_len") or _count(meta, "n_ctx") or _count(meta, "n_ctx_train"),
    )


def _text(value: object) -> str:
    """Text of a content field: a text, or parts as some servers send them."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(part["text"] for part in value if isinstance(part, dict) and isinstance(part.get("text"), str))
    return ""


def _count(values: Any, key: str) -> int:
    value = values.get(key) if isinstance(values, dict) else None
    return int(value) if isinstance(value, int | float) and 0 <= value < 2**53 else 0
