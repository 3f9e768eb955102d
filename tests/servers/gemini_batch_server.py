"""A stub that speaks Gemini's batches beside its calls. `python -m tests.servers.gemini_batch_server --port 8010`"""

from __future__ import annotations

import time
from typing import Any

from aiohttp import web

from tests.servers.gemini_server import GeminiServer
from tests.servers.stub import Behaviour, Fault, arguments, run

_CODES = {400: 3, 404: 5, 429: 8, 500: 13, 503: 14}


class GeminiBatchServer(GeminiServer):
    """Batches end at the first look, or not while `held`, in the state `ends`; others than succeeded have no answers.

    `lost` faults are told after a batch has begun.
    """

    def __init__(self, behaviour: Behaviour | None = None) -> None:
        super().__init__(behaviour)
        self.held = False
        self.ends = "SUCCEEDED"
        self.lost: list[Fault] = []
        self.batches: dict[str, dict[str, Any]] = {}
        self.polls = 0

    def routes(self) -> list[web.RouteDef]:
        return [
            *super().routes(),
            web.post("/{version}/models/{model}:batchGenerateContent", self.create),
            web.get("/{version}/batches", self.listing),
            web.get("/{version}/batches/{batch}", self.retrieve),
            web.post("/{version}/batches/{batch}:cancel", self.cancel),
        ]

    def requests(self, name: str) -> list[dict[str, Any]]:
        """The lines of a batch."""
        lines: list[dict[str, Any]] = self.batches[name]["requests"]
        return lines

    async def create(self, request: web.Request) -> web.StreamResponse:
        if not self.authorized(request):
            return self.failure(self.bad_key())
        if self.behaviour.faults:
            return self.failure(self.behaviour.faults.popleft())
        asked = (await request.json())["batch"]
        name = f"batches/{len(self.batches)}"
        self.batches[name] = {
            "state": "PENDING",
            "displayName": asked["displayName"],
            "model": f"models/{request.match_info['model']}",
            "requests": asked["inputConfig"]["requests"]["requests"],
            "created": time.time(),
        }
        if self.lost:
            return self.failure(self.lost.pop(0))
        return web.json_response(self._operation(name))

    async def listing(self, request: web.Request) -> web.StreamResponse:
        start = int(request.query.get("pageToken", "0"))
        size = min(2, int(request.query.get("pageSize", "2")))
        names = list(self.batches)[::-1]
        body: dict[str, Any] = {"operations": [self._operation(name) for name in names[start : start + size]]}
        if start + size < len(names):
            body["nextPageToken"] = str(start + size)
        return web.json_response(body)

    async def retrieve(self, request: web.Request) -> web.StreamResponse:
        self.polls += 1
        name = f"batches/{request.match_info['batch']}"
        if name not in self.batches:
            return self.failure(Fault("404", message="Requested entity was not found."))
        if self.behaviour.always is not None:
            return self.failure(self.behaviour.always)
        batch = self.batches[name]
        if batch["state"] in ("PENDING", "RUNNING"):
            batch["state"] = "RUNNING" if self.held else self.ends
        return web.json_response(self._operation(name))

    async def cancel(self, request: web.Request) -> web.StreamResponse:
        batch = self.batches[f"batches/{request.match_info['batch']}"]
        if batch["state"] not in ("PENDING", "RUNNING"):
            return self.failure(Fault("400", message="The batch is over."))
        batch["state"] = "CANCELLED"
        return web.json_response({})

    def _operation(self, name: str) -> dict[str, Any]:
        batch = self.batches[name]
        state = batch["state"]
        total = len(batch["requests"])
        stats = {"requestCount": str(total)}
        told: dict[str, Any] = {"name": name}
        answers = [self._answered(line) for line in batch["requests"]] if state == "SUCCEEDED" else []
        failed = sum("error" in answer for answer in answers)
        if state == "SUCCEEDED":
            stats |= {"successfulRequestCount": str(total - failed), "failedRequestCount": str(failed)}
            kind = "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch"
            told["response"] = {"@type": kind, "inlinedResponses": {"inlinedResponses": answers}}
        elif state == "RUNNING":
            stats["pendingRequestCount"] = str(total)
        if state == "FAILED":
            told["error"] = {"code": 3, "message": "The model does not take batches."}
        if state == "CANCELLED":
            told["error"] = {"code": 1, "message": "The batch was cancelled."}
        if state not in ("PENDING", "RUNNING"):
            told["done"] = True
        told["metadata"] = {
            "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
            "model": batch["model"],
            "displayName": batch["displayName"],
            "batchStats": stats,
            "state": f"BATCH_STATE_{state}",
            "name": name,
        }
        return told

    def _answered(self, line: dict[str, Any]) -> dict[str, Any]:
        text = self.behaviour.answer(self.prompt(line["request"]))
        if isinstance(text, Fault):
            error = {"code": _CODES[int(text.kind)], "message": text.message}
            return {"error": error, "metadata": line["metadata"]}
        return {"response": self.answer(line["request"], text), "metadata": line["metadata"]}


if __name__ == "__main__":
    run(GeminiBatchServer(), arguments(__doc__ or "").parse_args())
