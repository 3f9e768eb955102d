"""Ollama's own API (v0.33): `/api/chat`, `/api/tags`, `/api/version`, `/api/ps`, `/api/show`.

Options are sent exactly as the job gives them; an absent one is left to the model's own defaults.

A prompt that does not fit is cut silently by default, to about half of the window. Every request therefore says
`truncate: false` and `shift: false` (since 0.12.6): the server then refuses it, which becomes the item's outcome
"input truncated". Older servers ignore both and fill the window instead: there an answer counts as input truncated
when `prompt_eval_count` reaches the window less one token, where the window is the job's `context_length`, or what
`/api/ps` tells of the loaded model.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from services.evaluator.endpoints import Endpoint
from services.evaluator.providers import model_size
from services.evaluator.providers.base import Listing, ProviderError
from services.evaluator.providers.sampling import extra
from services.evaluator.providers.transport import Reply, Transport
from services.evaluator.tasks.base import Item, Response, Task
from touchstone.v1 import endpoint_pb2, job_pb2

_OPTIONS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "max_tokens": "num_predict",
    "context_length": "num_ctx",
    "seed": "seed",
    "repeat_penalty": "repeat_penalty",
}
_TOO_LONG = re.compile(
    r"exceed_context_size|exceeds the (available )?context|longer than the context|context length", re.IGNORECASE
)


class OllamaProvider:
    """One Ollama server."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._http = Transport.to(endpoint, "Start it with `ollama serve`.")
        self._listed: dict[str, endpoint_pb2.Model] | None = None
        self._listing = asyncio.Lock()
        self._windows: dict[str, int] = {}

    async def list_models(self) -> Listing:
        tags, version = await asyncio.gather(self._http.get("/api/tags"), self._http.get("/api/version"))
        if tags.status != 200 or not isinstance(tags.body, dict):
            raise self._failure(tags, "")
        entries = [entry for entry in tags.body.get("models") or [] if isinstance(entry, dict)]
        found = {model.model: model for model in map(_model, entries) if model.model}
        if self._endpoint.models:
            found = {name: found.get(name, endpoint_pb2.Model(model=name)) for name in self._endpoint.models}
        lacking = [model for model in found.values() if not (model.context_length and model.parameters_b)]
        await asyncio.gather(*(self._fill(model) for model in lacking))
        self._listed = found
        number = version.body.get("version") if version.status == 200 and isinstance(version.body, dict) else None
        return Listing(tuple(found.values()), f"Ollama {number}" if number else "Ollama")

    async def generate(self, model: str, sampling: job_pb2.Sampling, task: Task, item: Item) -> Response:
        await self._refuse_larger(model)
        options: dict[str, Any] = {
            _OPTIONS[field.name]: value for field, value in sampling.ListFields() if field.name in _OPTIONS
        }
        body: dict[str, Any] = {
            "model": model,
            "messages": [{"role": message.role, "content": message.content} for message in item.messages],
            "stream": False,
            "truncate": False,
            "shift": False,
        }
        if self._endpoint.keep_alive is not None:
            body["keep_alive"] = self._endpoint.keep_alive
        further = extra(sampling, body)
        further_options = further.pop("options", {})
        # What was recorded must be what was sent: the job's own parameters win.
        options = (further_options if isinstance(further_options, dict) else {}) | options
        body |= further
        if options:
            body["options"] = options
        reply = await self._http.post("/api/chat", body)
        if reply.status == 400 and _TOO_LONG.search(reply.text):
            return Response(
                "", finish_reason="context_length_exceeded", latency_ms=reply.latency_ms, input_truncated=True
            )
        if reply.status != 200:
            raise self._failure(reply, model)
        return await self._response(reply, model, int(options.get("num_ctx") or 0))

    async def close(self) -> None:
        await self._http.close()

    async def _response(self, reply: Reply, model: str, window: int) -> Response:
        name, body = self._endpoint.name, reply.body
        if not isinstance(body, dict):
            raise ProviderError(f"{name} cut an answer short: it is not whole JSON.", retryable=True)
        if body.get("error"):
            raise ProviderError(f"{name} failed while answering: {reply.error_text}", retryable=True)
        message = body.get("message")
        if not isinstance(message, dict) or not body.get("done", True):
            raise ProviderError(f"{name} sent an answer without a message.", retryable=True)
        read = _count(body, "prompt_eval_count")
        return Response(
            text=_text(message, "content"),
            reasoning=_text(message, "thinking"),
            finish_reason=_text(body, "done_reason"),
            input_tokens=read,
            output_tokens=_count(body, "eval_count"),
            latency_ms=reply.latency_ms,
            served_model=_text(body, "model"),
            input_truncated=0 < (window or await self._loaded_window(model)) - 1 <= read,
        )

    async def _loaded_window(self, model: str) -> int:
        """Tokens that the loaded model's context holds, asked once a model; 0 when the server does not tell."""
        if model not in self._windows:
            self._windows[model] = 0  # One question at a time, and none again when it fails.
            try:
                reply = await self._http.get("/api/ps")
            except ProviderError:
                return 0
            loaded = reply.body.get("models") if isinstance(reply.body, dict) else None
            for entry in loaded or []:
                if isinstance(entry, dict) and model in (entry.get("name"), entry.get("model")):
                    self._windows[model] = _count(entry, "context_length")
        return self._windows[model]

    async def _refuse_larger(self, model: str) -> None:
        if not self._endpoint.max_model_b:
            return
        async with self._listing:
            if self._listed is None:
                await self.list_models()
        known = (self._listed or {}).get(model) or (self._listed or {}).get(f"{model}:latest")
        size = known.parameters_b if known is not None else 0.0
        model_size.refuse_larger(
            self._endpoint.name, model, size or model_size.parameters_b(model), self._endpoint.max_model_b
        )

    async def _fill(self, model: endpoint_pb2.Model) -> None:
        """Context length and size of a model that `/api/tags` does not tell; asked once a weights' digest."""
        known = (self._listed or {}).get(model.model)
        if known is not None and known.digest == model.digest:
            model.CopyFrom(known)
            return
        try:
            reply = await self._http.post("/api/show", {"model": model.model}, timeout_s=5)
        except ProviderError:
            return
        info = reply.body.get("model_info") if reply.status == 200 and isinstance(reply.body, dict) else None
        if isinstance(info, dict):
            lengths = (_count(info, key) for key in info if key.endswith(".context_length"))
            model.context_length = model.context_length or min(max(lengths, default=0), 2**31 - 1)
            model.parameters_b = model.parameters_b or round(_count(info, "general.parameter_count") / 1e9, 3)

    def _failure(self, reply: Reply, model: str) -> ProviderError:
        name, status, said = self._endpoint.name, reply.status, reply.error_text
        lower = said.lower()
        if status in (401, 403):
            variable = self._endpoint.api_key_env
            what = f"Set {variable} where the evaluator runs and restart it." if variable else "Give it an api_key_env."
            return ProviderError(f"{name} refused the key. {what}", fatal=True)
        if status == 404 and "model" in lower and model:
            return ProviderError(
                f"{name} does not have model {model}. Run `ollama pull {model}` where it runs.", fatal=True
            )
        if status == 404:
            return ProviderError(
                f"{name} at {self._endpoint.address} is no Ollama server. Correct base_url in the endpoints file.",
                fatal=True,
            )
        if "system memory" in lower or "does not support chat" in lower:
            return ProviderError(f"{name} cannot run {model}: {said}. Choose another model.", fatal=True)
        if status in (429, 503):
            return ProviderError(
                f"{name} has too many calls waiting. Lower concurrency.",
                retryable=True,
                rate_limited=True,
                retry_after_s=reply.retry_after_s,
            )
        if status in (408, 409, 425) or status >= 500:
            return ProviderError(
                f"{name} failed with status {status}{': ' + said if said else ''}.",
                retryable=True,
                unreachable=status in (502, 504),
                retry_after_s=reply.retry_after_s,
            )
        return ProviderError(f"{name} refused a call with status {status}{': ' + said if said else ''}.")


def _model(entry: dict[str, Any]) -> endpoint_pb2.Model:
    """A model of `/api/tags`."""
    details = entry.get("details")
    details = details if isinstance(details, dict) else {}
    return endpoint_pb2.Model(
        model=_text(entry, "name") or _text(entry, "model"),
        digest=_text(entry, "digest"),
        parameters_b=model_size.parameters_b(_text(details, "parameter_size")),
        quantization=_text(details, "quantization_level"),
        disk_bytes=_count(entry, "size"),
        context_length=min(_count(details, "context_length"), 2**31 - 1),
    )


def _text(values: dict[str, Any], key: str) -> str:
    value = values.get(key)
    return value if isinstance(value, str) else ""


def _count(values: dict[str, Any], key: str) -> int:
    """A count that Ollama leaves out when it is zero."""
    value = values.get(key)
    return int(value) if isinstance(value, int | float) and 0 <= value < 2**53 else 0
