"""A stub that speaks OpenAI's files and batches beside its chat completions.

`python -m tests.servers.openai_batch_server --port 8009`
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from aiohttp import web

from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault, arguments, run

PAGE = 20


class OpenAIBatchServer(OpenAIServer):
    """Batches end after `takes_s` from their beginning, or not while `held`.

    `ends` is the state that they end in; of "expired" and "cancelled" ones the first `answered` lines have answers.
    Lines whose prompt the behaviour refuses go to the file of errors. `refusals` are errors of validation, one batch
    each. `faults` of the stub are taken by POST /batches before it begins anything, `lost` ones after: the batch runs,
    and the caller hears the fault. `listing_s` is how long a new batch is missing from the list, `upload_s` how
    long a file takes.
    """

    def __init__(self, behaviour: Behaviour | None = None) -> None:
        super().__init__(behaviour)
        self.takes_s = 0.0
        self.held = False
        self.ends = "completed"
        self.answered = 0
        self.refusals: list[dict[str, Any]] = []
        self.lost: list[Fault] = []
        self.listing_s = self.upload_s = 0.0
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.polls = 0

    def routes(self) -> list[web.RouteDef]:
        return [
            *super().routes(),
            web.post("/v1/files", self.upload),
            web.get("/v1/files/{file}/content", self.content),
            web.post("/v1/batches", self.create),
            web.get("/v1/batches", self.listing),
            web.get("/v1/batches/{batch}", self.retrieve),
            web.post("/v1/batches/{batch}/cancel", self.cancel),
        ]

    def requests(self, batch_id: str) -> list[dict[str, Any]]:
        """The lines that a batch was made of."""
        data = self.files[self.batches[batch_id]["input_file_id"]]
        return [json.loads(line) for line in data.splitlines()]

    async def upload(self, request: web.Request) -> web.StreamResponse:
        if not self.authorized(request):
            return self.failure(self.bad_key())
        form = await request.post()
        await asyncio.sleep(self.upload_s)
        file = form["file"]
        assert isinstance(file, web.FileField)
        if form.get("purpose") != "batch":
            return self.failure(Fault("400", message="purpose must be batch"))
        name = f"file-{len(self.files)}"
        self.files[name] = file.file.read()
        made = {"id": name, "object": "file", "bytes": len(self.files[name]), "created_at": int(time.time())}
        return web.json_response(made | {"filename": file.filename, "purpose": "batch", "status": "processed"})

    async def content(self, request: web.Request) -> web.StreamResponse:
        data = self.files.get(request.match_info["file"])
        return web.Response(body=data) if data is not None else self.failure(Fault("404", message="no such file"))

    async def create(self, request: web.Request) -> web.StreamResponse:
        if not self.authorized(request):
            return self.failure(self.bad_key())
        if self.behaviour.faults:
            return self.failure(self.behaviour.faults.popleft())
        body = await request.json()
        assert body["endpoint"] == "/v1/chat/completions"
        assert body["completion_window"] == "24h"
        batch_id = f"batch_{len(self.batches)}"
        now = time.time()
        total = len(self.files[body["input_file_id"]].splitlines())
        self.batches[batch_id] = {
            "id": batch_id,
            "object": "batch",
            "endpoint": body["endpoint"],
            "errors": None,
            "input_file_id": body["input_file_id"],
            "completion_window": "24h",
            "status": "validating",
            "created_at": int(now),
            "request_counts": {"total": total, "completed": 0, "failed": 0},
            "metadata": body.get("metadata") or {},
            "began": now,
        }
        if self.refusals:
            errors = {"object": "list", "data": [self.refusals.pop(0)]}
            self.batches[batch_id] |= {"status": "failed", "errors": errors, "failed_at": int(now)}
        if self.lost:
            fault = self.lost.pop(0)
            if fault.kind == "reset":
                assert request.transport is not None
                request.transport.abort()
            return self.failure(fault) if fault.kind.isdigit() else web.Response()
        return web.json_response(self._shown(batch_id))

    async def listing(self, request: web.Request) -> web.StreamResponse:
        limit, after = int(request.query.get("limit", PAGE)), request.query.get("after", "")
        now = time.time()
        names = [name for name, batch in self.batches.items() if now - batch["began"] >= self.listing_s][::-1]
        start = names.index(after) + 1 if after else 0
        page = [self._shown(name) for name in names[start : start + limit]]
        told = {"object": "list", "data": page, "has_more": start + limit < len(names)}
        ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {}
        return web.json_response(told | ends)

    async def retrieve(self, request: web.Request) -> web.StreamResponse:
        self.polls += 1
        batch_id = request.match_info["batch"]
        if batch_id not in self.batches:
            return self.failure(Fault("404", message="no such batch"))
        if self.behaviour.always is not None:
            return self.failure(self.behaviour.always)
        self._move(batch_id)
        return web.json_response(self._shown(batch_id))

    async def cancel(self, request: web.Request) -> web.StreamResponse:
        batch = self.batches[request.match_info["batch"]]
        if batch["status"] in ("completed", "failed", "expired", "cancelled"):
            return self.failure(Fault("400", message=f"Cannot cancel a batch with status '{batch['status']}'."))
        self._end(batch, "cancelled")
        return web.json_response(self._shown(batch["id"]))

    def _move(self, batch_id: str) -> None:
        batch = self.batches[batch_id]
        if batch["status"] not in ("validating", "in_progress"):
            return
        past = time.time() - batch["began"]
        if self.held or past < self.takes_s:
            batch["status"] = "in_progress"
            total = batch["request_counts"]["total"]
            batch["request_counts"]["completed"] = int(total * min(past / self.takes_s, 0.9)) if self.takes_s else 0
            return
        self._end(batch, self.ends)

    def _end(self, batch: dict[str, Any], state: str) -> None:
        batch["status"] = state
        batch[f"{state}_at"] = int(time.time())
        answers: list[str] = []
        errors: list[str] = []
        for number, line in enumerate(self.requests(batch["id"])):
            told = {"id": f"batch_req_{number}", "custom_id": line["custom_id"], "response": None, "error": None}
            if state != "completed" and number >= self.answered:
                message = "This request could not be executed before the completion window expired."
                errors.append(json.dumps(told | {"error": {"code": f"batch_{state}", "message": message}}))
                continue
            text = self.behaviour.answer(self.prompt(line["body"]))
            if isinstance(text, Fault):
                refused = {"status_code": int(text.kind), "request_id": f"req_{number}", "body": self.error(text)}
                errors.append(json.dumps(told | {"response": refused}))
                continue
            body = self.answer(line["body"], text)
            answered = {"status_code": 200, "request_id": f"req_{number}", "body": body}
            answers.append(json.dumps(told | {"response": answered}))
        # In no order that was promised.
        for name, lines in (("output", answers[::-1]), ("error", errors)):
            if lines:
                file = f"file-{name}-{batch['id']}"
                self.files[file] = "\n".join(lines).encode() + b"\n"
                batch[f"{name}_file_id"] = file
        counts = {"completed": len(answers), "failed": len(errors)}
        batch["request_counts"] |= counts

    def _shown(self, batch_id: str) -> dict[str, Any]:
        return {key: value for key, value in self.batches[batch_id].items() if key != "began"}


if __name__ == "__main__":
    run(OpenAIBatchServer(), arguments(__doc__ or "").parse_args())
