"""OpenAI's batch API: a file of requests goes up, files of answers and of errors come down.

Wire: POST /files (purpose "batch"), POST /batches, GET /batches/{id}, GET /batches, POST /batches/{id}/cancel and GET
/files/{id}/content, as in OpenAI's API reference and its SDK 3.52. A batch takes 50,000 requests and 200 MB. The mark
is in the batch's metadata.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Response
from services.evaluator.provider_batches import base
from services.evaluator.provider_batches.base import Answer, Batch, GoneError, Line, Take
from services.evaluator.providers.openai import errors as openai_errors
from services.evaluator.providers.openai.chat import OpenAIProvider
from services.evaluator.providers.openai.wire import text
from services.evaluator.providers.pricing import prices
from services.evaluator.providers.protocol import failures
from services.evaluator.providers.protocol.provider import ProviderError, Request
from services.evaluator.providers.protocol.transport import Reply, Transport
from services.evaluator.providers.protocol.usage import count, entries, inner, string
from touchstone.v1 import endpoint_pb2

_MARK = "touchstone"
_PATH = "/v1/chat/completions"
"""As the protocol names it, without the rest of base_url."""
_ENDED = frozenset({"completed", "expired", "cancelled", "failed"})
_FULL = frozenset({"token_limit_exceeded", "request_limit_exceeded"})
"""More is under way than the account allows at a time."""
_PAGE = 100


class OpenAIBatches:
    """The batch API of one endpoint of kind openai."""

    def __init__(self, endpoint: Endpoint, provider: OpenAIProvider) -> None:
        self.label = base.label(endpoint)
        self._endpoint = endpoint
        self._provider = provider
        self._http = Transport.to(endpoint, "Start the server or correct base_url in the endpoints file.")

    async def written(self, request: Request) -> tuple[dict[str, Any], str]:
        return await self._provider.written(request)

    async def upload(self, mark: str, lines: Sequence[Line]) -> str:
        boundary = uuid.uuid4().hex
        parts = [
            f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{mark}.jsonl"\r\n'
            "Content-Type: application/jsonl\r\n\r\n".encode()
        ]
        for line in lines:
            request = {"custom_id": str(line.position), "method": "POST", "url": _PATH, "body": line.body}
            parts.append(json.dumps(request, separators=(",", ":")).encode() + b"\n")
        parts.append(f"\r\n--{boundary}--\r\n".encode())
        content_type = f"multipart/form-data; boundary={boundary}"
        reply = await self._http.send("/files", b"".join(parts), content_type, timeout_s=base.UPLOAD_S)
        return self._id(reply, "/files")

    async def create(self, model: str, mark: str, prepared: Any) -> str:
        body = {
            "input_file_id": prepared,
            "endpoint": _PATH,
            "completion_window": "24h",
            "metadata": {_MARK: mark},
        }
        return self._id(await self._http.post("/batches", body, timeout_s=base.SEND_S), "/batches")

    async def find(self, mark: str) -> list[str]:
        found: list[str] = []
        after = ""
        for _ in range(base.MOST_PAGES):
            path = f"/batches?limit={_PAGE}" + (f"&after={after}" if after else "")
            reply = await self._http.get(path, timeout_s=base.ASK_S)
            data = reply.body.get("data") if isinstance(reply.body, dict) else None
            if reply.status != 200 or not isinstance(data, list):
                raise self._failure(reply, "/batches")
            listed = [entry for entry in entries(reply.body, "data") if _is_id(string(entry, "id"))]
            found += [entry["id"] for entry in listed if inner(entry, "metadata").get(_MARK) == mark]
            if not reply.body.get("has_more") or not listed:
                break
            after = listed[-1]["id"]
        return found[::-1]

    async def state(self, batch_id: str) -> Batch:
        reply = await self._http.get(f"/batches/{batch_id}", timeout_s=base.ASK_S)
        if reply.status == 404:
            raise GoneError(f"{self.label} no longer knows batch {batch_id}.", fatal=True)
        body = reply.body
        if reply.status != 200 or not isinstance(body, dict):
            raise self._failure(reply, "/batches")
        state = text(body.get("status"))
        counts = inner(body, "request_counts")
        told = entries(inner(body, "errors"), "data")
        return Batch(
            batch_id,
            ended=state in _ENDED,
            done=count(counts, "completed", base.MOST_ROWS),
            failed=count(counts, "failed", base.MOST_ROWS),
            missing=base.missing(self.label, state),
            refused=_words(told) if state == "failed" else "",
            full=any(string(error, "code") in _FULL for error in told),
            output=[string(body, key) for key in ("output_file_id", "error_file_id") if _is_id(string(body, key))],
        )

    async def cancel(self, batch_id: str) -> None:
        reply = await self._http.post(f"/batches/{batch_id}/cancel", {}, timeout_s=base.ASK_S)
        # An ended batch cannot be cancelled.
        if reply.status not in (200, 400, 404, 409):
            raise self._failure(reply, "/batches")

    async def answers(self, batch: Batch, take: Take) -> None:
        for file in batch.output or ():
            path = f"/files/{file}/content"
            reply = await self._http.download(path, partial(self._line, batch, take), timeout_s=base.DOWNLOAD_S)
            if reply.status != 200 and reply.status != 404:
                raise self._failure(reply, path)

    def read(self, reply: Reply, model: str, parameters: str, of_job: endpoint_pb2.Prices | None) -> Response:
        response = self._provider.read(reply, model, parameters, of_job)
        if response.cost_usd is None:
            return response
        share = prices.batch_share(of_job or prices.of(self._endpoint, model))
        return replace(response, cost_usd=response.cost_usd * share)

    async def close(self) -> None:
        await self._http.close()

    async def _line(self, batch: Batch, take: Take, raw: bytes) -> None:
        line = base.parsed(raw)
        place = base.position(line.get("custom_id"))
        if place < 0:
            return
        answer = inner(line, "response")
        if answer:
            # A body that is not an object counts as unreadable, as with a single call.
            body = answer.get("body")
            await take(Answer(place, Reply(count(answer, "status_code"), {}, body, "", 0.0)))
            return
        error = inner(line, "error")
        said = text(error.get("message"))
        code = text(error.get("code"))
        known = code in ("batch_expired", "batch_cancelled")
        await take(Answer(place, None, batch.missing if known or not said else f"{self.label}'s batch: {said}"))

    def _id(self, reply: Reply, path: str) -> str:
        found = string(reply.body, "id")
        if reply.status not in (200, 201):
            raise self._failure(reply, path)
        if not _is_id(found):
            raise failures.lacking(self._endpoint, "an id")
        return found

    def _failure(self, reply: Reply, path: str) -> ProviderError:
        if reply.status in (404, 405, 501):
            return base.no_batch_api(self._endpoint)
        return openai_errors.failure(self._endpoint, reply, "", path)


def _is_id(text: str) -> bool:
    """The id becomes a part of a path."""
    plain = text.replace("-", "").replace("_", "")
    return plain.isascii() and plain.isalnum()


def _words(errors: Sequence[dict[str, Any]]) -> str:
    """Why a batch did not begin, by the first reported errors."""
    said = [f"{text(error.get('message'))} ({string(error, 'code')})" for error in errors[:3] if error.get("message")]
    return " ".join(" ".join(said).split())[:600] or "no reason was given"
