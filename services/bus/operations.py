"""What the services do over one connection to NATS."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from math import fsum
from typing import Any

import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import api

from services import numbers
from services.bus import streams
from services.bus.contract import (
    AUDIT,
    ERR_STREAM_LIMIT,
    EVALUATORS,
    JOBS,
    LIMITS,
    LOGS,
    PLAN_UNIT,
    RESULTS,
    TOKENS,
    USAGE,
    WORK,
    dlq_subject,
    drain_key,
    endpoint_work_subjects,
    info_subject,
    job_key,
    logs_subject,
    one_line,
    pull_subject,
    results_subject,
    run_end_subject,
    run_text_subject,
    usage_subject,
    work_subject,
)
from services.bus.headers import KIND_BEGUN, KIND_FAULT, KIND_ITEMS, KIND_PLAN, KIND_RETURNED, JobHeaders, ResultHeaders
from services.bus.key_values import CONFLICTS, KeyValues, expecting
from services.errors import UnavailableError
from touchstone.v1 import call_pb2, evaluator_pb2, item_result_pb2, token_pb2, unit_pb2

_USE_NOTED_EVERY_S = 600


class StreamFullError(Exception):
    """RESULTS has no room until the results service has caught up."""


class OvertakenError(Exception):
    """Another sender has published about the unit since."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A message that may be stored only right after the unit's message at position `after` of RESULTS (0: none).

    `name` is unique to the message and the same each time it is sent.
    """

    after: int
    name: str


def _work_name(endpoint: str) -> str:
    return f"work-{endpoint}"


_WEBHOOKS_CONSUMER = "webhooks"
_HEARD_NS = 5e9


def _has_majority(cluster: Mapping[str, Any]) -> bool:
    """Of a stream's nodes; a single server says nothing of them. A leader that is alone notices it after 12 s, but it
    knows since when it has not heard of the others."""
    if not cluster:
        return True
    others = cluster.get("replicas") or []
    heard = [other for other in others if other.get("active", 0) < _HEARD_NS]
    return bool(cluster.get("leader")) and 2 * (1 + len(heard)) > 1 + len(others)


@dataclass(frozen=True, slots=True)
class Listeners:
    """Who is called when a connection breaks, and after each reconnect."""

    breaks: set[Callable[[], None]] = field(default_factory=set)
    reconnects: set[Callable[[], None]] = field(default_factory=set)


@contextmanager
def _among(told: set[Callable[[], None]], tell: Callable[[], None]) -> Iterator[None]:
    told.add(tell)
    try:
        yield
    finally:
        told.discard(tell)


class Bus(KeyValues):
    """One connection to NATS with the operations that the services share."""

    def __init__(self, client: Client, listeners: Listeners | None = None) -> None:
        """`listeners` are called when the connection breaks, and after each reconnect."""
        super().__init__(client)
        self._listeners = listeners or Listeners()

    @contextmanager
    def telling_of_reconnects(self, tell: Callable[[], None]) -> Iterator[None]:
        """Calls `tell` after each reconnect."""
        with _among(self._listeners.reconnects, tell):
            yield

    @contextmanager
    def telling_of_breaks(self, tell: Callable[[], None]) -> Iterator[None]:
        """Calls `tell` each time the connection breaks."""
        with _among(self._listeners.breaks, tell):
            yield

    async def ensure(self, results_max_bytes: int, replicas: int = 1) -> None:
        """Creates missing streams: see `services.bus.streams.ensure`."""
        await streams.ensure(self.js, results_max_bytes, replicas)

    async def close(self) -> None:
        # NATS may already be gone; then there is no connection to close.
        with suppress(OSError, nats.errors.Error):
            await self.client.close()

    # -- work --------------------------------------------------------------------------------------------------

    async def release(self, endpoint: str, priority: int, unit: unit_pb2.Unit) -> bool:
        """Offers a unit to evaluators; False if it is already offered. At least once, never two copies at a time."""
        subject = work_subject(endpoint, priority, unit.job_id, unit.unit)
        try:
            await self.js.publish(subject, unit.SerializeToString())
        except nats.js.errors.APIError as error:
            if error.err_code == ERR_STREAM_LIMIT:
                return False
            raise
        return True

    async def work_inbox(
        self, endpoint: str, ack_wait_s: float, callback: Callable[[Msg], Awaitable[None]]
    ) -> Subscription:
        """An inbox to whose subject `pull_work` brings an endpoint's units (or PLAN_ENDPOINT's), and messages that say
        why none come. All evaluators that serve the endpoint share the units."""
        await self.work_consumer(endpoint, ack_wait_s)
        return await self.client.subscribe(self.client.new_inbox(), cb=callback)

    async def pull_work(self, endpoint: str, inbox: str, units: int, expires_s: float) -> None:
        """Asks for up to this many units. They come as they are available; at most once per request, as any core
        message."""
        await self._pull(WORK, _work_name(endpoint), inbox, units, expires_s)

    async def _pull(self, stream: str, consumer: str, inbox: str, batch: int, expires_s: float) -> None:
        request = json.dumps({"batch": batch, "expires": int(expires_s * 1e9)}).encode()
        await self.client.publish(pull_subject(stream, consumer), request, reply=inbox)

    async def work_consumer(self, endpoint: str, ack_wait_s: float) -> str:
        """Creates an endpoint's consumer on WORK if there is none; returns its name."""
        name = _work_name(endpoint)
        config = api.ConsumerConfig(
            durable_name=name,
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=ack_wait_s,
            max_deliver=-1,
            max_ack_pending=10_000,
            filter_subject=endpoint_work_subjects(endpoint),
        )
        await self.js.add_consumer(WORK, config)
        return name

    async def dead_letter(self, endpoint: str, unit: unit_pb2.Unit, reason: str) -> None:
        """Keeps a unit that must not be tried again, with the reason in a header."""
        subject = dlq_subject(endpoint, unit.job_id, unit.unit)
        headers = {"Touchstone-Reason": one_line(reason), "Nats-Msg-Id": f"{subject}.{unit.attempt}"}
        await self.js.publish(subject, unit.SerializeToString(), headers=headers)

    # -- results -----------------------------------------------------------------------------------------------

    async def publish_items(
        self,
        batch: item_result_pb2.ItemResultBatch,
        *,
        delivery: int,
        done: bool,
        told: Container[int] = (),
        turn: Turn | None = None,
        name: str = "",
    ) -> int:
        """Stores item results; returns their position. `told` are the positions of items that an earlier delivery has
        published with their costs.

        A message that is sent again with the same `name` is stored once; a `turn` has its own name. A later delivery of
        the unit uses another name, as it must be able to publish again. Raises StreamFullError while RESULTS has no
        room, OvertakenError when it is not the message's turn.
        """
        # Stored answers were generated, and paid, earlier, not now.
        asked = [r for r in batch.items if not r.reused and r.calls and r.position not in told]
        # Answers that an earlier version stored are published again unchanged, with its numbers.
        costs = (numbers.answer_usd(r.cost_usd) for r in asked if r.HasField("cost_usd"))
        prices = [cost for cost in costs if cost is not None]
        headers = ResultHeaders(
            kind=KIND_ITEMS,
            attempt=batch.attempt,
            delivery=delivery,
            task=batch.task,
            items=len(batch.items),
            errors=sum(r.outcome == item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR for r in batch.items),
            output_tokens=sum(r.output_tokens for r in batch.items if not r.reused),
            untold=sum(r.output_untold and r.outcome != item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR for r in asked),
            done=done,
            cost=fsum(prices) * 1e6 if prices else None,
            unpriced=len(asked) - len(prices),
            retries=sum(r.calls - 1 for r in asked),
            evaluator=one_line(batch.evaluator),
        )
        return await self._publish_result(batch.job_id, batch.unit, batch.SerializeToString(), headers, turn, name)

    async def publish_plan(self, job_id: str, attempt: int, plan: unit_pb2.Plan) -> int:
        headers = ResultHeaders(kind=KIND_PLAN, attempt=attempt, done=True)
        return await self._publish_result(job_id, PLAN_UNIT, plan.SerializeToString(), headers)

    async def publish_fault(self, job_id: str, attempt: int, unit: int, fault: unit_pb2.Fault) -> int:
        headers = ResultHeaders(kind=KIND_FAULT, attempt=attempt)
        return await self._publish_result(job_id, unit, fault.SerializeToString(), headers)

    async def publish_returned(self, job_id: str, attempt: int, unit: int, delivery: int, *, counted: bool) -> int:
        """Publishes that a unit of a job with a budget has left WORK undone. Call it after the unit has left."""
        headers = ResultHeaders(kind=KIND_RETURNED, attempt=attempt, delivery=delivery, counted=counted)
        return await self._publish_result(job_id, unit, b"", headers)

    async def publish_begun(
        self, unit: unit_pb2.Unit, evaluator: str, items: int, turn: Turn | None = None, *, delivery: int = 1
    ) -> int:
        """Notes that this many items of a unit are stored or have begun. Raises StreamFullError, OvertakenError."""
        headers = ResultHeaders(
            kind=KIND_BEGUN,
            attempt=unit.attempt,
            delivery=delivery,
            task=unit.task,
            items=items,
            evaluator=one_line(evaluator),
        )
        return await self._publish_result(unit.job_id, unit.unit, b"", headers, turn)

    async def last_result(self, job_id: str, unit: int) -> tuple[int, str]:
        """Position and id of a unit's newest message on RESULTS; 0 and an empty id where there is none."""
        try:
            # Of the stream's leader: a replica may answer a moment late.
            msg = await self.js.get_last_msg(RESULTS, results_subject(job_id, unit))
        except nats.js.errors.NotFoundError:
            return 0, ""
        return msg.seq or 0, (msg.headers or {}).get(api.Header.MSG_ID.value, "")

    async def _publish_result(
        self, job_id: str, unit: int, data: bytes, headers: ResultHeaders, turn: Turn | None = None, name: str = ""
    ) -> int:
        sent = headers.encode() | ({api.Header.MSG_ID.value: name} if name else {})
        if turn is not None:
            sent |= expecting(turn.after) | {api.Header.MSG_ID.value: turn.name}
        try:
            ack = await self.js.publish(results_subject(job_id, unit), data, headers=sent)
        except nats.js.errors.APIError as error:
            if error.err_code == ERR_STREAM_LIMIT:
                raise StreamFullError from error
            if turn is None or error.err_code not in CONFLICTS:
                raise
            position, name = await self.last_result(job_id, unit)
            if name != turn.name:
                raise OvertakenError from error
            return position  # It was stored the first time, and the answer was lost.
        return ack.seq

    async def publish_usage(self, call: call_pb2.Call) -> int:
        """Stores what a call took so far; returns the position on USAGE. At least once; a later message of the same
        call replaces an earlier one."""
        return (await self.js.publish(usage_subject(call.endpoint), call.SerializeToString())).seq

    async def publish_call_text(self, call: call_pb2.Call, text: call_pb2.CallText) -> None:
        """Stores a part of what a recorded call said. At least once; parts are numbered."""
        headers = {api.Header.MSG_ID.value: f"{text.call_id}.{text.part}"}
        await self.js.publish(run_text_subject(call.owner, call.run), text.SerializeToString(), headers=headers)

    async def publish_run_end(self, run: call_pb2.RecordedRun, end: call_pb2.RunEnd) -> int:
        """Ends a recorded run; returns the position of that on USAGE. A second end changes nothing."""
        return (await self.js.publish(run_end_subject(run.owner, run.name), end.SerializeToString())).seq

    async def last_usage(self) -> int:
        """The newest position of USAGE."""
        return (await self.js.stream_info(USAGE)).state.last_seq

    async def purge_run_texts(self, run: call_pb2.RecordedRun, last: int) -> None:
        """Removes the texts recorded under the run's name up to a position of USAGE."""
        await self.js.purge_stream(USAGE, seq=last + 1, subject=run_text_subject(run.owner, run.name))

    # -- the audit trail and logs of jobs ----------------------------------------------------------------------

    async def webhooks_consumer(self) -> None:
        """Creates the consumer for webhooks if there is none: it has AUDIT from then on, each event until it is
        acknowledged."""
        config = api.ConsumerConfig(
            durable_name=_WEBHOOKS_CONSUMER,
            deliver_policy=api.DeliverPolicy.NEW,
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=30,
            max_deliver=-1,
        )
        await self.js.add_consumer(AUDIT, config)

    async def pull_audit(self, inbox: str, events: int, expires_s: float) -> None:
        """Asks the webhooks' consumer for up to this many events, as `pull_work` does for units."""
        await self._pull(AUDIT, _WEBHOOKS_CONSUMER, inbox, events, expires_s)

    async def publish_log(self, job_id: str, level: str, line: bytes) -> None:
        """Stores a serialised LogLine. At least once."""
        await self.js.publish(logs_subject(job_id, level), line)

    async def read_logs(self, job_id: str, levels: Sequence[str], after: int, most: int) -> list[tuple[int, bytes]]:
        """Up to this many lines after position `after` of LOGS, oldest first, each with its position."""
        return await self.read_after(LOGS, [logs_subject(job_id, level) for level in levels], after, most)

    async def read_after(self, stream: str, subjects: Sequence[str], after: int, most: int) -> list[tuple[int, bytes]]:
        """Up to this many messages of these subjects after a position of the stream, in order, each with its
        position."""
        config = api.ConsumerConfig(
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=after + 1,
            ack_policy=api.AckPolicy.NONE,
            filter_subjects=list(subjects),
            inactive_threshold=10,
            mem_storage=True,
        )
        found = self.pulled(stream, config, most)
        return [(msg.metadata.sequence.stream, msg.data) async for msg in found]

    async def announce(self, evaluator: evaluator_pb2.Evaluator) -> None:
        await self.kv_put(EVALUATORS, evaluator.evaluator, evaluator.SerializeToString())

    async def answers(self, timeout_s: float) -> bool:
        """Whether NATS answers now and could store something: a node that has lost the others is connected, and of no
        use."""
        if not self.connected:
            return False
        try:
            told = json.loads((await self.client.request(info_subject(JOBS), timeout=timeout_s)).data)
        except (nats.errors.Error, ValueError):
            return False
        return "error" not in told and _has_majority(told.get("cluster") or {})

    async def server_time(self) -> float:
        """Seconds since 1970 by the server's clock: the one that all evaluators share."""
        started = time.monotonic()
        answer = await self.client.request(info_subject(LIMITS), timeout=5)
        told = json.loads(answer.data)
        if "error" in told:
            raise nats.js.errors.APIError.from_error(told["error"])
        return datetime.fromisoformat(told["ts"]).timestamp() + (time.monotonic() - started) / 2

    async def job_headers(self, job_id: str) -> JobHeaders | None:
        """State and attempt of a job now, or None when the scheduler does not know it."""
        msg = await self.kv_get(JOBS, job_key(job_id))
        return JobHeaders.decode(msg.headers) if msg else None

    async def is_drained(self, evaluator: str) -> bool:
        """Whether an admin drains the evaluator now."""
        msg = await self.kv_get(JOBS, drain_key(evaluator))
        return bool(msg and msg.data)

    async def token(self, digest: str, *, note_use: bool = True) -> token_pb2.Token | None:
        """The stored token; with `note_use`, its use is noted now and then. Raises UnavailableError without NATS."""
        try:
            msg = await self.kv_get(TOKENS, digest)
        except (nats.errors.Error, OSError) as error:
            raise UnavailableError(
                "NATS does not answer, so your token cannot be checked. Try again in a moment."
            ) from error
        if not (msg and msg.data):
            return None
        token = token_pb2.Token.FromString(msg.data)
        if note_use and time.time() - token.last_used_at.seconds >= _USE_NOTED_EVERY_S:
            token.last_used_at.GetCurrentTime()
            # Only over the value that was read: a token that was revoked in between stays revoked. The token stays
            # valid if its use cannot be noted, as on a full disk.
            with suppress(nats.errors.Error):
                await self.kv_update(TOKENS, digest, token.SerializeToString(), msg.seq or 0)
        return token
