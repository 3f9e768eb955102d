"""The NATS contract: streams, subjects, headers and buckets. Nothing else in the tree names them.

Delivery: at least once everywhere. Publishing returns after JetStream has synced the message to disk, so an
acknowledgement that follows a publish never loses work; every consumer tolerates duplicates.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

import httpx
import nats
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api

from services.errors import UnavailableError
from touchstone.v1 import evaluator_pb2, item_result_pb2, job_pb2, token_pb2, unit_pb2

log = logging.getLogger(__name__)

WORK, RESULTS, AUDIT, DLQ, ADVISORIES = "WORK", "RESULTS", "AUDIT", "DLQ", "ADV"
JOBS, LEASE, EVALUATORS, TOKENS, SESSIONS = "JOBS", "LEASE", "EVALUATORS", "TOKENS", "SESSIONS"

PLAN_ENDPOINT = "plan"
"""Reserved endpoint token: every evaluator serves planning units with a slot of its own."""
PLAN_UNIT = -1

KIND_ITEMS, KIND_PLAN, KIND_FAULT = "items", "plan", "fault"

_DAY_S = 24 * 3600
# Server error codes (nats-server errors.json): what each means for us is said where it is handled.
ERR_WRONG_LAST_SEQUENCE = 10071
ERR_WRONG_LAST_SEQUENCE_CONSTANT = 10164
# The stream takes no more: of this subject (WORK) or at all (RESULTS, DLQ).
ERR_STREAM_LIMIT = 10077

_AFTER_RECONNECT_S = 1.0


@dataclass(frozen=True, slots=True)
class Settings:
    """How to reach NATS. RESULTS holds at most `results_max_bytes`, which must be below the disk's size."""

    url: str
    monitor_url: str
    results_max_bytes: int
    replicas: int

    @classmethod
    def from_env(cls) -> Settings:
        return cls(
            url=os.environ.get("TOUCHSTONE_NATS_URL", "nats://127.0.0.1:4222"),
            monitor_url=os.environ.get("TOUCHSTONE_NATS_MONITOR_URL", ""),
            results_max_bytes=int(os.environ.get("TOUCHSTONE_RESULTS_MAX_BYTES", str(2 * 1024**3))),
            replicas=int(os.environ.get("TOUCHSTONE_NATS_REPLICAS", "1")),
        )


class StreamFullError(Exception):
    """RESULTS has no room until the results service has caught up."""


@dataclass(frozen=True, slots=True)
class ResultHeaders:
    """What the scheduler needs of a RESULTS message without its body.

    `items`, `errors` and `output_tokens` count this message only; `done` marks the unit's last message.
    """

    kind: str
    attempt: int
    delivery: int = 1
    task: str = ""
    items: int = 0
    errors: int = 0
    output_tokens: int = 0
    done: bool = False

    def encode(self) -> dict[str, str]:
        return {
            "Touchstone-Kind": self.kind,
            "Touchstone-Attempt": str(self.attempt),
            "Touchstone-Delivery": str(self.delivery),
            "Touchstone-Task": self.task,
            "Touchstone-Items": str(self.items),
            "Touchstone-Errors": str(self.errors),
            "Touchstone-Tokens": str(self.output_tokens),
            "Touchstone-Done": "1" if self.done else "0",
        }

    @classmethod
    def decode(cls, headers: dict[str, str] | None) -> ResultHeaders:
        h = headers or {}
        return cls(
            kind=h.get("Touchstone-Kind", ""),
            attempt=int(h.get("Touchstone-Attempt", "0")),
            delivery=int(h.get("Touchstone-Delivery", "1")),
            task=h.get("Touchstone-Task", ""),
            items=int(h.get("Touchstone-Items", "0")),
            errors=int(h.get("Touchstone-Errors", "0")),
            output_tokens=int(h.get("Touchstone-Tokens", "0")),
            done=h.get("Touchstone-Done") == "1",
        )


@dataclass(frozen=True, slots=True)
class JobHeaders:
    """State and attempt beside every job record, so that evaluators never parse the scheduler's records."""

    state: job_pb2.Job.State
    attempt: int

    def encode(self) -> dict[str, str]:
        return {"Touchstone-State": str(int(self.state)), "Touchstone-Attempt": str(self.attempt)}

    @classmethod
    def decode(cls, headers: dict[str, str] | None) -> JobHeaders:
        h = headers or {}
        state = cast(job_pb2.Job.State, int(h.get("Touchstone-State", "0")))
        return cls(state, int(h.get("Touchstone-Attempt", "0")))


def work_subject(endpoint: str, priority: int, job_id: str, unit: int) -> str:
    return f"work.{endpoint}.{priority}.{job_id}.{unit_token(unit)}"


def job_work_subjects(job_id: str) -> str:
    """Matches every unit of a job on WORK."""
    return f"work.*.*.{job_id}.>"


def results_subject(job_id: str, unit: int) -> str:
    return f"results.{job_id}.{unit_token(unit)}"


def audit_subject(job_id: str) -> str:
    return f"audit.{job_id}"


def unit_token(unit: int) -> str:
    return "plan" if unit == PLAN_UNIT else str(unit)


def parse_unit_token(token: str) -> int:
    return PLAN_UNIT if token == "plan" else int(token)


def job_key(job_id: str) -> str:
    return f"job.{job_id}"


def kv_subject(bucket: str, key: str) -> str:
    return f"$KV.{bucket}.{key}"


EPOCH_KEY = "epoch"
FLOOR_KEY = "floor"
"""Last RESULTS position that the scheduler no longer needs, decimal. Results purges up to the lower of both floors."""


def _bucket(name: str, **settings: Any) -> api.StreamConfig:
    """A KV bucket's stream. Made by hand where `create_key_value` lacks a setting (`allow_atomic`)."""
    defaults: dict[str, Any] = {
        "max_msgs_per_subject": 1,
        "discard": api.DiscardPolicy.NEW,
        "allow_rollup_hdrs": True,
        "allow_direct": True,
        "allow_msg_ttl": True,
        "deny_delete": True,
        "storage": api.StorageType.FILE,
    }
    return api.StreamConfig(name=f"KV_{name}", subjects=[f"$KV.{name}.>"], **(defaults | settings))


def stream_configs(results_max_bytes: int, replicas: int = 1) -> list[api.StreamConfig]:
    """Every stream of an installation. `results_max_bytes` must be below the disk's size."""
    limits: dict[str, Any] = {"retention": api.RetentionPolicy.LIMITS, "storage": api.StorageType.FILE}
    configs = [
        api.StreamConfig(
            name=WORK,
            subjects=["work.>"],
            retention=api.RetentionPolicy.WORK_QUEUE,
            storage=api.StorageType.FILE,
            discard=api.DiscardPolicy.NEW,
            max_msgs_per_subject=1,
            discard_new_per_subject=True,
            allow_direct=True,
        ),
        api.StreamConfig(
            name=RESULTS,
            subjects=["results.>"],
            discard=api.DiscardPolicy.NEW,
            max_age=7 * _DAY_S,
            max_bytes=results_max_bytes,
            allow_direct=True,
            **limits,
        ),
        api.StreamConfig(name=AUDIT, subjects=["audit.>"], deny_delete=True, deny_purge=True, **limits),
        api.StreamConfig(name=DLQ, subjects=["dlq.>"], max_age=30 * _DAY_S, **limits),
        api.StreamConfig(
            name=ADVISORIES,
            subjects=[f"$JS.EVENT.ADVISORY.CONSUMER.{kind}.>" for kind in ("MAX_DELIVERIES", "MSG_TERMINATED")],
            max_age=7 * _DAY_S,
            **limits,
        ),
        _bucket(JOBS, max_msgs_per_subject=5, allow_atomic=True),
        _bucket(LEASE, subject_delete_marker_ttl=30),
        _bucket(EVALUATORS, max_age=7 * _DAY_S),
        _bucket(TOKENS),
        _bucket(SESSIONS, max_age=7 * _DAY_S),
    ]
    for config in configs:
        config.num_replicas = replicas
    return configs


class _Client(Client):
    """Ends requests that were on their way when the connection broke: their answers went down with it."""

    def __init__(self) -> None:
        super().__init__()
        self._waits: set[asyncio.Timeout] = set()

    async def request(
        self,
        subject: str,
        payload: bytes = b"",
        timeout: float = 0.5,  # noqa: ASYNC109 - the overridden method's signature
        old_style: bool = False,
        headers: dict[str, Any] | None = None,
    ) -> Msg:
        """As in nats-py, but a reconnect leaves `_AFTER_RECONNECT_S` for the answer, however long `timeout` is."""
        try:
            async with asyncio.timeout(None) as wait:
                self._waits.add(wait)
                try:
                    return await super().request(subject, payload, timeout, old_style, headers)
                finally:
                    self._waits.discard(wait)
        except TimeoutError as error:
            if isinstance(error, nats.errors.Error):
                raise
            raise nats.errors.TimeoutError from error

    def hurry(self) -> None:
        """Call it after a reconnect."""
        # Not at once: what was sent while the connection was down is sent now, and will be answered.
        end = asyncio.get_running_loop().time() + _AFTER_RECONNECT_S
        for wait in self._waits:
            if not wait.expired():
                wait.reschedule(end)


class Bus:
    """One connection to NATS with the operations that the services share."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.js: JetStreamContext = client.jetstream(timeout=10)

    @property
    def connected(self) -> bool:
        return self.client.is_connected

    async def ensure(self, results_max_bytes: int, replicas: int = 1) -> None:
        """Creates missing streams; existing ones keep their settings. Safe from several services at once."""
        for config in stream_configs(results_max_bytes, replicas):
            assert config.name is not None
            try:
                await self.js.stream_info(config.name)
            except nats.js.errors.NotFoundError:
                try:
                    await self.js.add_stream(config)
                except nats.js.errors.BadRequestError:
                    # Another service made it a moment ago with the same settings.
                    await self.js.stream_info(config.name)

    async def close(self) -> None:
        await self.client.close()

    # -- key-value ---------------------------------------------------------------------------------------------

    async def kv_get(self, bucket: str, key: str) -> api.RawStreamMsg | None:
        """The newest message of a key, or None when there is none or it was deleted or has expired."""
        try:
            msg = await self.js.get_last_msg(f"KV_{bucket}", kv_subject(bucket, key), direct=True)
        except nats.js.errors.NotFoundError:
            return None
        return None if is_marker(msg.headers) else msg

    async def kv_put(self, bucket: str, key: str, value: bytes, *, ttl_s: int | None = None) -> int:
        ack = await self.js.publish(kv_subject(bucket, key), value, msg_ttl=ttl_s)
        return ack.seq

    async def kv_delete(self, bucket: str, key: str) -> None:
        # The marker itself goes after a minute, or deleted keys would pile up.
        headers = {"KV-Operation": "PURGE", "Nats-Rollup": "sub"}
        await self.js.publish(kv_subject(bucket, key), headers=headers, msg_ttl=60)

    async def kv_all(self, bucket: str, pattern: str = ">") -> AsyncIterator[tuple[str, Msg]]:
        """Newest value of every live key that matches, as (key, message)."""
        prefix = f"$KV.{bucket}."
        config = api.ConsumerConfig(
            deliver_policy=api.DeliverPolicy.LAST_PER_SUBJECT,
            ack_policy=api.AckPolicy.NONE,
            filter_subject=prefix + pattern,
            inactive_threshold=10,
            mem_storage=True,
        )
        sub = await self.js.pull_subscribe(prefix + pattern, stream=f"KV_{bucket}", config=config)
        try:
            left = (await sub.consumer_info()).num_pending or 0
            while left > 0:
                for msg in await sub.fetch(min(left, 256), timeout=10):
                    left -= 1
                    if not is_marker(msg.headers):
                        yield msg.subject.removeprefix(prefix), msg
        finally:
            await sub.unsubscribe()

    async def kv_watch(self, bucket: str, pattern: str, callback: Callable[[Msg], Awaitable[None]]) -> Any:
        """Core subscription to a bucket's writes. At most once: re-read with `kv_all` after a reconnect.

        Chosen over a KV watch, which resumes only some 19 s after a server restart.
        """
        return await self.client.subscribe(kv_subject(bucket, pattern), cb=callback)

    # -- work --------------------------------------------------------------------------------------------------

    async def release(self, endpoint: str, priority: int, unit: unit_pb2.Unit) -> bool:
        """Offers a unit to evaluators; False when it is offered already. At least once, never two copies at a time."""
        subject = work_subject(endpoint, priority, unit.job_id, unit.unit)
        try:
            await self.js.publish(subject, unit.SerializeToString())
        except nats.js.errors.APIError as error:
            if error.err_code == ERR_STREAM_LIMIT:
                return False
            raise
        return True

    async def work(self, endpoint: str, ack_wait_s: float) -> JetStreamContext.PullSubscription:
        """Pull subscription to an endpoint's units (or PLAN_ENDPOINT's), shared by all evaluators that serve it."""
        config = api.ConsumerConfig(
            durable_name=f"work-{endpoint}",
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=ack_wait_s,
            max_deliver=-1,
            max_ack_pending=10_000,
            filter_subject=f"work.{endpoint}.>",
        )
        await self.js.add_consumer(WORK, config)
        return await self.js.pull_subscribe_bind(f"work-{endpoint}", stream=WORK)

    async def dead_letter(self, endpoint: str, unit: unit_pb2.Unit, reason: str) -> None:
        """Keeps a unit that must not be tried again, with the reason in a header."""
        subject = f"dlq.{endpoint}.{unit.job_id}.{unit_token(unit.unit)}"
        headers = {"Touchstone-Reason": one_line(reason), "Nats-Msg-Id": f"{subject}.{unit.attempt}"}
        await self.js.publish(subject, unit.SerializeToString(), headers=headers)

    # -- results -----------------------------------------------------------------------------------------------

    async def publish_items(self, batch: item_result_pb2.ItemResultBatch, *, delivery: int, done: bool) -> int:
        """Stores item results; returns their position. Raises StreamFullError while RESULTS has no room.

        No message id: a redelivered unit must be able to publish again; the item key makes it harmless.
        """
        headers = ResultHeaders(
            kind=KIND_ITEMS,
            attempt=batch.attempt,
            delivery=delivery,
            task=batch.task,
            items=len(batch.items),
            errors=sum(r.outcome == item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR for r in batch.items),
            output_tokens=sum(r.output_tokens for r in batch.items),
            done=done,
        )
        return await self._publish_result(batch.job_id, batch.unit, batch.SerializeToString(), headers)

    async def publish_plan(self, job_id: str, attempt: int, plan: unit_pb2.Plan) -> int:
        headers = ResultHeaders(kind=KIND_PLAN, attempt=attempt, done=True)
        return await self._publish_result(job_id, PLAN_UNIT, plan.SerializeToString(), headers)

    async def publish_fault(self, job_id: str, attempt: int, unit: int, fault: unit_pb2.Fault) -> int:
        headers = ResultHeaders(kind=KIND_FAULT, attempt=attempt)
        return await self._publish_result(job_id, unit, fault.SerializeToString(), headers)

    async def _publish_result(self, job_id: str, unit: int, data: bytes, headers: ResultHeaders) -> int:
        try:
            ack = await self.js.publish(results_subject(job_id, unit), data, headers=headers.encode())
        except nats.js.errors.APIError as error:
            if error.err_code == ERR_STREAM_LIMIT:
                raise StreamFullError from error
            raise
        return ack.seq

    # -- announcements, job states, tokens --------------------------------------------------------------

    async def announce(self, evaluator: evaluator_pb2.Evaluator) -> None:
        await self.kv_put(EVALUATORS, evaluator.evaluator, evaluator.SerializeToString())

    async def job_headers(self, job_id: str) -> JobHeaders | None:
        """State and attempt of a job now, or None when the scheduler does not know it."""
        msg = await self.kv_get(JOBS, job_key(job_id))
        return JobHeaders.decode(msg.headers) if msg else None

    async def token(self, digest: str) -> token_pb2.Token | None:
        msg = await self.kv_get(TOKENS, digest)
        return token_pb2.Token.FromString(msg.data) if msg and msg.data else None


def is_marker(headers: dict[str, str] | None) -> bool:
    """Whether a KV message says that the key is gone (deleted, purged or expired)."""
    return bool(headers) and ("KV-Operation" in headers or "Nats-Marker-Reason" in headers)  # type: ignore[operator]


def one_line(text: str) -> str:
    """Text that fits into a NATS header."""
    return " ".join(text.split())[:500]


async def connect(url: str, name: str, *, timeout_s: float = 30) -> Bus:
    """Connects and stays connected for ever; raises UnavailableError when NATS does not answer in `timeout_s`."""

    async def on_error(error: Exception) -> None:
        # Permission denials look like timeouts to the caller; their real text comes here only.
        log.warning("nats: %s", error or type(error).__name__)

    async def on_disconnect() -> None:
        # Also called by an orderly close.
        log.info("nats: disconnected")

    async def on_reconnect() -> None:
        log.info("nats: connected again")
        client.hurry()

    deadline = asyncio.get_running_loop().time() + timeout_s
    while True:
        try:
            client = _Client()
            await client.connect(
                url,
                name=name,
                allow_reconnect=True,
                max_reconnect_attempts=-1,
                reconnect_time_wait=0.25,
                connect_timeout=2,
                ping_interval=10,
                max_outstanding_pings=3,
                pending_size=64 * 1024 * 1024,
                error_cb=on_error,
                disconnected_cb=on_disconnect,
                reconnected_cb=on_reconnect,
            )
            return Bus(client)
        except (OSError, nats.errors.Error, TimeoutError) as error:
            if asyncio.get_running_loop().time() > deadline:
                raise UnavailableError(
                    f"NATS does not answer at {url}. Start it (make run does) or set TOUCHSTONE_NATS_URL."
                ) from error
            await asyncio.sleep(0.2)


async def open_bus(settings: Settings, name: str) -> Bus:
    """Connects, checks that the server syncs every write, and creates what is missing. What services start with."""
    bus = await connect(settings.url, name)
    if settings.monitor_url:
        await _require_sync(settings.monitor_url)
    else:
        log.warning("TOUCHSTONE_NATS_MONITOR_URL is not set: cannot check that NATS syncs every write")
    await bus.ensure(settings.results_max_bytes, settings.replicas)
    return bus


async def _require_sync(monitor_url: str) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
        try:
            answer = (await client.get(f"{monitor_url}/varz")).json()
        except (httpx.HTTPError, ValueError) as error:
            raise UnavailableError(f"NATS does not answer at its monitoring address {monitor_url}.") from error
    if not answer.get("jetstream", {}).get("config", {}).get("sync_always"):
        raise UnavailableError(
            "NATS does not sync every write: a power loss would lose acknowledged results. "
            "Set `sync_interval: always` in the jetstream block of its configuration."
        )
