"""Gemini's batch API: the requests go up within the call, the answers come down within the operation.

Wire: POST /models/{model}:batchGenerateContent with `batch.inputConfig.requests`, GET /batches/{id}, POST
/batches/{id}:cancel and GET /batches, as in Google's reference and guide (ai.google.dev/api/batch-api, v1beta). A call
takes 20 MB of requests. Units are cut to fit, so that no file is uploaded. The mark is the batch's display name. An
expired or cancelled batch has no answers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Response
from services.evaluator.provider_batches import base
from services.evaluator.provider_batches.base import Answer, Batch, GoneError, Line, Take
from services.evaluator.providers.gemini import GeminiProvider, model_path
from services.evaluator.providers.openai.wire import text
from services.evaluator.providers.pricing import prices
from services.evaluator.providers.protocol import failures
from services.evaluator.providers.protocol.provider import ProviderError, Request
from services.evaluator.providers.protocol.transport import Reply, Transport
from services.evaluator.providers.protocol.usage import count, entries, inner, string
from touchstone.v1 import endpoint_pb2

_MOST_BYTES = 256 * 1024 * 1024
_PAGE = 50
_NAME = re.compile(r"batches/[A-Za-z0-9_-]{1,200}")
_ENDED = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED"})
# Codes of google.rpc.Status as the HTTP status that the single call would have had.
_STATUS = {3: 400, 5: 404, 7: 403, 8: 429, 13: 500, 14: 503, 16: 401}


class GeminiBatches:
    """The batch API of one endpoint of kind gemini."""

    def __init__(self, endpoint: Endpoint, provider: GeminiProvider) -> None:
        self.label = base.label(endpoint)
        self._endpoint = endpoint
        self._provider = provider
        self._http = Transport.to(
            endpoint,
            "Correct base_url in the endpoints file.",
            headers={"x-goog-api-key": endpoint.api_key} if endpoint.api_key else {},
            max_body_bytes=_MOST_BYTES,
        )

    async def written(self, request: Request) -> tuple[dict[str, Any], str]:
        return await self._provider.written(request)

    async def upload(self, mark: str, lines: Sequence[Line]) -> list[dict[str, Any]]:
        return [{"request": line.body, "metadata": {"key": str(line.position)}} for line in lines]

    async def create(self, model: str, mark: str, prepared: Any) -> str:
        body = {"batch": {"displayName": mark, "inputConfig": {"requests": {"requests": prepared}}}}
        reply = await self._http.post(model_path(model) + "batchGenerateContent", body, timeout_s=base.SEND_S)
        if reply.status != 200 or not isinstance(reply.body, dict):
            raise self._failure(reply, model)
        name = text(reply.body.get("name"))
        if not _NAME.fullmatch(name):
            raise failures.lacking(self._endpoint, "a batch's name")
        return name

    async def find(self, mark: str) -> list[str]:
        found: list[str] = []
        token = ""
        for _ in range(base.MOST_PAGES):
            path = f"/batches?pageSize={_PAGE}" + (f"&pageToken={quote(token)}" if token else "")
            reply = await self._http.get(path, timeout_s=base.ASK_S)
            if reply.status != 200 or not isinstance(reply.body, dict):
                raise self._failure(reply, "")
            for entry in entries(reply.body, "operations"):
                name = string(entry, "name")
                if _NAME.fullmatch(name) and inner(entry, "metadata").get("displayName") == mark:
                    found.append(name)
            token = string(reply.body, "nextPageToken")
            if not token:
                break
        return found[::-1]

    async def state(self, batch_id: str) -> Batch:
        reply = await self._http.get(f"/{batch_id}", timeout_s=base.DOWNLOAD_S)
        if reply.status == 404:
            raise GoneError(f"{self.label} no longer knows batch {batch_id}.", fatal=True)
        body = reply.body
        failed = isinstance(body, dict) and bool(body.get("error"))
        if reply.status != 200 or not isinstance(body, dict):
            raise self._failure(reply, "")
        told = inner(body, "metadata")
        # Both BATCH_STATE_… and JOB_STATE_… are documented.
        state = text(told.get("state")).rpartition("STATE_")[2]
        if body.get("done") and state not in _ENDED:
            state = "FAILED" if failed else "SUCCEEDED"
        stats = inner(told, "batchStats")
        why = text(inner(body, "error").get("message")) or "no reason was given"
        output = inner(body, "response") or inner(told, "output")
        return Batch(
            batch_id,
            ended=state in _ENDED,
            done=_count(stats, "successfulRequestCount"),
            failed=_count(stats, "failedRequestCount"),
            missing=base.missing(self.label, state.lower()),
            refused=" ".join(why.split())[:600] if state == "FAILED" else "",
            output=_inlined(output),
        )

    async def cancel(self, batch_id: str) -> None:
        reply = await self._http.post(f"/{batch_id}:cancel", {}, timeout_s=base.ASK_S)
        if reply.status not in (200, 400, 404, 409):
            raise self._failure(reply, "")

    async def answers(self, batch: Batch, take: Take) -> None:
        failed: list[Answer] = []
        for entry in batch.output or ():
            place = base.position(inner(entry, "metadata").get("key"))
            if place < 0:
                continue
            error = inner(entry, "error")
            if not error:
                await take(Answer(place, Reply(200, {}, entry.get("response"), "", 0.0)))
                continue
            code = count(error, "code")
            status = _STATUS.get(code, code if code >= 400 else 500)
            failed.append(Answer(place, Reply(status, {}, {"error": dict(error) | {"code": status}}, "", 0.0)))
        for answer in failed:
            await take(answer)

    def read(self, reply: Reply, model: str, parameters: str, of_job: endpoint_pb2.Prices | None) -> Response:
        response = self._provider.read(reply, model, parameters, of_job)
        if response.cost_usd is None:
            return response
        share = prices.batch_share(of_job or prices.of(self._endpoint, model))
        return replace(response, cost_usd=response.cost_usd * share)

    async def close(self) -> None:
        await self._http.close()

    def _failure(self, reply: Reply, model: str) -> ProviderError:
        if reply.status in (404, 405, 501) and "models/" not in reply.error_text:
            return base.no_batch_api(self._endpoint)
        return self._provider.failure(reply, model)


def _inlined(output: dict[str, Any]) -> list[dict[str, Any]]:
    """The list is in an object of the same name, or alone."""
    found = inner(output, "inlinedResponses")
    return entries(found or output, "inlinedResponses")


def _count(values: dict[str, Any], key: str) -> int:
    """Counts of 64 bits are written as texts."""
    value = values.get(key)
    written = {key: int(value)} if isinstance(value, str) and value.isdecimal() and len(value) < 20 else values
    return count(written, key, base.MOST_ROWS)
