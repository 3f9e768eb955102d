"""Clients that do everything users do while processes are killed, and remember what they were told."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests import chat_lines
from tests.chaos.world import MODELS
from tests.stack import API

DATASETS = "/admin/datasets"
FINISHED = ("completed", "failed", "cancelled")
PATIENCE_S = 180.0
"""Within which each request gets a definite answer after the last kill."""
ROWS = 40
"""Of each uploaded dataset."""
MOST_STANDING = 12
"""Schedules that stand at once, and webhooks: with more and more of them a long run would only grow."""
_PASSING = (408, 429, 500, 502, 503, 504)
_PAUSE_S = 0.15


@dataclass(frozen=True, slots=True)
class Answer:
    """The first definite answer, and whether an earlier sending of the same request may have been carried out."""

    status: int
    body: Any
    repeated: bool


@dataclass(slots=True)
class KnownJob:
    """A job as its client knows it. `marks` and `notes` hold what the server confirmed last, by job and by item."""

    job_id: str
    items: int
    dataset_id: str = ""
    may_be_cancelled: bool = False
    confirmed_cancelled: bool = False
    attempt: int = 1
    mark: str = ""
    notes: dict[tuple[str, int], str] = field(default_factory=dict)
    busy: bool = False
    is_source: bool = False
    """Whether another job was asked to take its answers."""


@dataclass(slots=True)
class Memory:
    """What all clients together were told."""

    jobs: dict[str, KnownJob] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    """Jobs whose deletion was confirmed."""
    labels: dict[str, str] = field(default_factory=dict)
    """By the label of each request for a job, the job's id; empty when it was never answered."""
    datasets: dict[str, bool] = field(default_factory=dict)
    """By id, whether it was deleted."""
    schedules: dict[str, bool] = field(default_factory=dict)
    webhooks: dict[str, bool] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    done: dict[str, int] = field(default_factory=dict)
    """Confirmed operations by name."""
    killed_at: float = 0.0
    """When a process was last killed, by the monotonic clock."""


class Client:
    """One user at work until `over` says that it is enough."""

    def __init__(self, url: str, seed: int, memory: Memory, receiver: str) -> None:
        self._http = httpx.AsyncClient(base_url=url, trust_env=False, timeout=30)
        self._rng = random.Random(seed)
        self._memory = memory
        self._receiver = receiver
        self._operations: list[tuple[int, str, Callable[[], Any]]] = [
            (6, "run", self.run),
            (2, "upload", self.upload),
            (3, "dataset run", self.run_over_dataset),
            (3, "cancel", self.cancel),
            (4, "retry", self.retry),
            (2, "rescore", self.rescore),
            (2, "rerun", self.rerun),
            (3, "mark", self.mark),
            (4, "annotate", self.annotate),
            (2, "delete job", self.delete_job),
            (2, "delete dataset", self.delete_dataset),
            (2, "schedule", self.schedule),
            (1, "delete schedule", self.delete_schedule),
            (2, "webhook", self.webhook),
            (1, "delete webhook", self.delete_webhook),
            (3, "export", self.export),
        ]

    async def close(self) -> None:
        await self._http.aclose()

    async def work(self, over: asyncio.Event) -> None:
        """Does one operation after the other."""
        weights = [weight for weight, _, _ in self._operations]
        while not over.is_set():
            _, name, operation = self._rng.choices(self._operations, weights)[0]
            if await operation():
                self._memory.done[name] = self._memory.done.get(name, 0) + 1
            await asyncio.sleep(self._rng.uniform(0, 0.2))

    async def call(self, method: str, path: str, *expected: int, **request: Any) -> Answer:
        """Repeats a request until it gets a definite answer. One that is not expected is noted as a problem."""
        began, repeated = time.monotonic(), False
        while True:
            try:
                answer = await self._http.request(method, path, **request)
            except httpx.HTTPError as error:
                what = repr(error)
            else:
                what = f"{answer.status_code} {answer.text[:300]}"
                if answer.status_code == 500:
                    self._memory.problems.append(f"{method} {path} answered {what}")
                if answer.status_code not in _PASSING:
                    if answer.status_code not in expected:
                        self._memory.problems.append(f"{method} {path} answered {what}")
                    body = answer.json() if answer.content else None
                    return Answer(answer.status_code, body, repeated)
            repeated = True
            if time.monotonic() - max(began, self._memory.killed_at) > PATIENCE_S:
                self._memory.problems.append(f"{method} {path} had no answer in {PATIENCE_S:g} s: {what}")
                return Answer(0, None, repeated)
            await asyncio.sleep(_PAUSE_S)

    # -- new jobs --------------------------------------------------------------------------------------------------

    async def run(self) -> bool:
        items = self._rng.randrange(20, 150)
        body = {
            "project_id": 1,
            "suite": "glue",
            "tasks": [self._rng.choice(["rte", "cola"])],
            "limit": items,
            "config": {"provider": "stub", "model": self._rng.choice(MODELS)},
        }
        return await self._start(f"{API}/run", body, items)

    async def run_over_dataset(self) -> bool:
        dataset_id = self._one([each for each, deleted in self._memory.datasets.items() if not deleted])
        if dataset_id is None:
            return False
        body = {"model_id": self._rng.choice(MODELS), "provider": "stub", "dataset_id": dataset_id}
        # 404 and 409: another client is deleting it.
        return await self._start("/admin/benchmarks/run", body, ROWS, dataset_id, refusals=(404, 409))

    async def rescore(self) -> bool:
        job = await self._in_state("completed")
        return job is not None and await self._again(job, "rescore", {})

    async def rerun(self) -> bool:
        job = await self._in_state("cancelled")
        return job is not None and await self._again(job, "rerun", {"outcomes": ["unparsed"]})

    async def _again(self, job: KnownJob, verb: str, body: dict[str, Any]) -> bool:
        job.is_source = True
        # The dataset may be gone; the source may have been retried since; or no item of it has an answer.
        try:
            path = f"{API}/{verb}/{job.job_id}"
            return await self._start(path, body, job.items, job.dataset_id, refusals=(400, 404, 409), label=False)
        finally:
            job.busy = False

    async def _start(
        self,
        path: str,
        body: dict[str, Any],
        items: int,
        dataset_id: str = "",
        *,
        refusals: tuple[int, ...] = (),
        label: bool = True,
    ) -> bool:
        name = uuid.UUID(int=self._rng.getrandbits(128)).hex
        request = {**body, "request_id": name}
        if label:
            request["labels"] = {"request": name}
            self._memory.labels[name] = ""
        answer = await self.call("POST", path, 200, *refusals, json=request)
        if answer.status != 200:
            return False
        job_id = answer.body.get("job_id") or str(uuid.UUID(answer.body["benchmark_id"].removeprefix("bm_")))
        self._memory.jobs[job_id] = KnownJob(job_id, items, dataset_id)
        if label:
            self._memory.labels[name] = job_id
        return True

    # -- changes of jobs -------------------------------------------------------------------------------------------

    async def cancel(self) -> bool:
        job = self._free([job for job in self._memory.jobs.values() if not job.may_be_cancelled])
        if job is None:
            return False
        job.may_be_cancelled = True
        answer = await self.call("POST", f"{API}/cancel/{job.job_id}", 200, 409)
        job.confirmed_cancelled = answer.status == 200
        job.busy = False
        return answer.status == 200

    async def retry(self) -> bool:
        job = await self._in_state("cancelled")
        if job is None:
            return False
        answer = await self.call("POST", f"{API}/retry/{job.job_id}", 200, 404, 409)
        if answer.status == 200:
            job.attempt = max(job.attempt, answer.body["attempt"])
        if answer.status == 200 or answer.repeated:
            job.confirmed_cancelled = False
            job.may_be_cancelled = False
        job.busy = False
        return answer.status == 200

    async def mark(self) -> bool:
        job = await self._in_state("completed")
        if job is None:
            return False
        reason = f"Doubted by client {self._rng.random()}."
        body = {"mark": "invalidated", "reason": reason}
        answer = await self.call("POST", f"{API}/results/{job.job_id}/mark", 200, 409, json=body)
        if answer.status == 200:
            job.mark = reason
        job.busy = False
        return answer.status == 200

    async def annotate(self) -> bool:
        job = await self._in_state("completed")
        if job is None:
            return False
        listed = await self.call("GET", f"{API}/results/{job.job_id}/items", 200, params={"limit": 5})
        item = self._one(listed.body["items"]) if listed.status == 200 else None
        if item is not None:
            note = f"Read {self._rng.random()}."
            path = f"{API}/results/{job.job_id}/items/{item['task']}/{item['item']}/annotation"
            answer = await self.call("PUT", path, 200, json={"verdict": "wrong", "note": note})
            if answer.status == 200:
                job.notes[item["task"], item["item"]] = note
        job.busy = False
        return item is not None

    async def export(self) -> bool:
        job = await self._in_state("completed")
        if job is None:
            return False
        path = f"{API}/results/{job.job_id}/export"
        with suppress(httpx.HTTPError):
            answer = await self._http.get(path, params={"kind": "items", "format": "jsonl"})
            # A stream that breaks off raises; a whole one has a line for each item.
            if answer.status_code == 200 and len(answer.text.splitlines()) != job.items:
                self._memory.problems.append(f"the export of {job.job_id} has not {job.items} rows")
        job.busy = False
        return True

    async def delete_job(self) -> bool:
        """One that no other takes answers from: a retry of that would ask for them in vain."""
        job = await self._in_state("completed")
        if job is None:
            return False
        if job.is_source:
            job.busy = False
            return False
        answer = await self.call("DELETE", f"{API}/jobs/{job.job_id}", 200, 404)
        # 404: the call before it had deleted the job, and its answer was lost.
        if answer.status == 200 or (answer.status == 404 and answer.repeated):
            self._memory.deleted.append(job.job_id)
            del self._memory.jobs[job.job_id]
            return True
        job.busy = False
        return False

    # -- datasets, schedules, webhooks -----------------------------------------------------------------------------

    async def upload(self) -> bool:
        name = uuid.UUID(int=self._rng.getrandbits(128)).hex
        content = chat_lines.jsonl(chat_lines.lines(ROWS, MODELS[0], user=name))
        files = {"file": (f"{name}.jsonl", content)}
        answer = await self.call("POST", f"{DATASETS}/upload", 200, params={"request_id": name}, files=files)
        if answer.status == 200:
            self._memory.datasets[answer.body["dataset_id"]] = False
        return answer.status == 200

    async def delete_dataset(self) -> bool:
        kept = [each for each, deleted in self._memory.datasets.items() if not deleted]
        dataset_id = self._one(kept) if len(kept) > 2 else None
        if dataset_id is None:
            return False
        answer = await self.call("DELETE", f"{DATASETS}/{dataset_id}", 200, 404, 409)
        if answer.status in (200, 404):
            self._memory.datasets[dataset_id] = True
        return answer.status == 200

    async def schedule(self) -> bool:
        config = {"provider": "stub", "model": MODELS[0]}
        job = {"project_id": 1, "suite": "glue", "tasks": ["rte"], "config": config}
        # It never comes due while the test runs.
        body = {"cron": "0 3 29 2 *", "time_zone": "UTC", "label": "leap days", "job": job}
        return await self._create(f"{API}/schedules", body, "schedule_id", self._memory.schedules)

    async def webhook(self) -> bool:
        return await self._create(f"{API}/webhooks", {"url": self._receiver}, "webhook_id", self._memory.webhooks)

    async def delete_schedule(self) -> bool:
        return await self._delete(f"{API}/schedules", self._memory.schedules)

    async def delete_webhook(self) -> bool:
        return await self._delete(f"{API}/webhooks", self._memory.webhooks)

    async def _create(self, path: str, body: dict[str, Any], field_name: str, known: dict[str, bool]) -> bool:
        if sum(not deleted for deleted in known.values()) >= MOST_STANDING:
            await self._delete(path, known)
        answer = await self.call("POST", path, 200, 201, json=body)
        if answer.status in (200, 201):
            known[answer.body[field_name]] = False
        return answer.status in (200, 201)

    async def _delete(self, path: str, known: dict[str, bool]) -> bool:
        kept = [each for each, deleted in known.items() if not deleted]
        which = self._one(kept) if len(kept) > 2 else None
        if which is None:
            return False
        known[which] = True
        await self.call("DELETE", f"{path}/{which}", 200, 204, 404)
        return True

    # -- choices ---------------------------------------------------------------------------------------------------

    def _one(self, among: list[Any]) -> Any:
        return self._rng.choice(among) if among else None

    def _free(self, among: list[KnownJob]) -> KnownJob | None:
        """A job that no other client changes now; it is this client's until `busy` is taken back."""
        job: KnownJob | None = self._one([job for job in among if not job.busy][-40:])
        if job is not None:
            job.busy = True
        return job

    async def _in_state(self, status: str) -> KnownJob | None:
        """A job that is in this state and busy with this client now, if a few tries find one."""
        for _ in range(4):
            job = self._free(list(self._memory.jobs.values()))
            if job is None:
                return None
            answer = await self.call("GET", f"{API}/results/{job.job_id}", 200)
            if answer.status == 200 and answer.body["status"] == status:
                return job
            job.busy = False
        return None
