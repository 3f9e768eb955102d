"""One script of everything that the services ask of NATS, with answers that can be compared between servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api

from services.bus import Bus, Datasets, stream_configs

Answers = list[tuple[str, Any]]


class Script:
    """Asks one server and notes what it answers."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.js: JetStreamContext = client.jetstream(timeout=5)
        self.bus = Bus(client)
        self.answers: Answers = []

    def note(self, label: str, answer: Any) -> None:
        self.answers.append((label, answer))

    async def attempt(self, label: str, work: Callable[[], Awaitable[Any]]) -> None:
        """Notes the answer, or how it was refused."""
        try:
            answer = await work()
        except nats.js.errors.APIError as error:
            answer = ("refused", error.code, error.err_code)
        except (nats.errors.Error, TimeoutError) as error:
            # The client's fetch raises its own TimeoutError or Python's, as the time runs out early or late in it.
            answer = ("failed", type(error).__name__)
        self.note(label, _plain(answer))

    async def run(self) -> Answers:
        for part in (
            self._streams,
            self._publishing,
            self._expectations,
            self._batches,
            self._expiry,
            self._reading,
            self._queue,
            self._pulling,
            self._pushing,
            self._acknowledging_all,
            self._core,
            self._objects,
        ):
            await part()
        return self.answers

    # -- parts -----------------------------------------------------------------------------------------------------

    async def _streams(self) -> None:
        for config in stream_configs(256 * 1024 * 1024):
            await self.attempt(f"info of missing {config.name}", partial(self.js.stream_info, str(config.name)))
            await self.attempt(f"add {config.name}", partial(self.js.add_stream, config))
            await self.attempt(f"add {config.name} again", partial(self.js.add_stream, config))
        await self.attempt("name by subject", lambda: self.js.find_stream_name_by_subject("work.a.b"))
        await self.attempt("name of nothing", lambda: self.js.find_stream_name_by_subject("nothing"))

    async def _publishing(self) -> None:
        await self.attempt("publish", lambda: self.js.publish("audit.one", b"1"))
        await self.attempt("id", lambda: self.js.publish("audit.one", b"2", headers={"Nats-Msg-Id": "x"}))
        await self.attempt("id again", lambda: self.js.publish("audit.one", b"3", headers={"Nats-Msg-Id": "x"}))
        await self.attempt("nobody", lambda: self.js.publish("unheard.of", b"1"))
        await self.attempt("ttl refused", lambda: self.js.publish("audit.one", b"1", msg_ttl=5))
        await self.attempt("no purge", lambda: self.js.purge_stream("AUDIT"))
        for value in range(7):
            await self.attempt(f"history {value}", partial(self.js.publish, "$KV.JOBS.k", b"%d" % value))
        await self.attempt("kept", lambda: self._values("KV_JOBS", "$KV.JOBS.k"))
        headers = {"KV-Operation": "PURGE", "Nats-Rollup": "sub"}
        await self.attempt("rollup", lambda: self.js.publish("$KV.JOBS.k", b"", headers=headers))
        await self.attempt("kept after rollup", lambda: self._values("KV_JOBS", "$KV.JOBS.k"))
        await self.attempt("rollup refused", lambda: self.js.publish("audit.one", b"", headers=headers))

    async def _expectations(self) -> None:
        def expecting(sequence: int, subject: str = "") -> dict[str, str]:
            found = {"Nats-Expected-Last-Subject-Sequence": str(sequence)}
            return found | ({"Nats-Expected-Last-Subject-Sequence-Subject": subject} if subject else {})

        put = self.js.publish
        await self.attempt("new key", lambda: put("$KV.TOKENS.a", b"1", headers=expecting(0)))
        await self.attempt("not new", lambda: put("$KV.TOKENS.a", b"1", headers=expecting(0)))
        await self.attempt("wrong", lambda: put("$KV.TOKENS.a", b"1", headers=expecting(77)))
        await self.attempt("right", lambda: put("$KV.TOKENS.a", b"2", headers=expecting(1)))
        await self.attempt("of another", lambda: put("$KV.TOKENS.b", b"2", headers=expecting(2, "$KV.TOKENS.a")))
        await self.attempt("wrong other", lambda: put("$KV.TOKENS.b", b"2", headers=expecting(1, "$KV.TOKENS.a")))
        await self.attempt("kv_update", lambda: self.bus.kv_update("TOKENS", "a", b"3", 2))
        await self.attempt("kv_update late", lambda: self.bus.kv_update("TOKENS", "a", b"3", 2))
        await self.attempt("kv_remove late", lambda: self.bus.kv_remove("TOKENS", "a", 1))
        await self.attempt("kv_remove", lambda: self.bus.kv_remove("TOKENS", "a", 4))
        await self.attempt("kv_get removed", lambda: self.bus.kv_get("TOKENS", "a"))
        await self.attempt("kv_get", lambda: self.bus.kv_get("TOKENS", "b"))
        await self.attempt("kv_get missing", lambda: self.bus.kv_get("TOKENS", "c"))

    async def _batches(self) -> None:
        await self.attempt("epoch", lambda: self.bus.kv_put("JOBS", "epoch", b"me"))
        last = (await self.js.stream_info("KV_JOBS")).state.last_seq
        fence = {
            "Nats-Expected-Last-Subject-Sequence": str(last),
            "Nats-Expected-Last-Subject-Sequence-Subject": "$KV.JOBS.epoch",
        }
        stale = fence | {"Nats-Expected-Last-Subject-Sequence": str(last - 1)}
        await self._batch("batch of one", "b1", [("$KV.JOBS.one", fence)])
        await self._batch("batch of three", "b2", [(f"$KV.JOBS.three{i}", fence) for i in range(3)])
        await self._batch("stale batch", "b3", [("$KV.JOBS.one", stale), ("$KV.JOBS.two", stale)])
        await self._batch("stale at its end", "b4", [("$KV.JOBS.one", fence), ("$KV.JOBS.two", stale)])
        await self._batch("with a gap", "b5", [("$KV.JOBS.one", fence)] * 3, leave_out=2)
        await self._batch("where it is not allowed", "b6", [("$KV.TOKENS.one", {})])
        await self.attempt("nothing of it", lambda: self.bus.kv_get("JOBS", "two"))
        await self.attempt("state", lambda: self._state("KV_JOBS"))

    async def _batch(
        self, label: str, batch: str, writes: list[tuple[str, dict[str, str]]], leave_out: int = 0
    ) -> None:
        for place, (subject, extra) in enumerate(writes, 1):
            if place == leave_out:
                continue
            headers = extra | {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(place)}
            if place == len(writes):
                headers["Nats-Batch-Commit"] = "1"
            if place in (1, len(writes)):
                reply = await self.client.request(subject, b"v", headers=headers, timeout=5)
                told = json.loads(reply.data) if reply.data else {}
                refused = told.get("error", {})
                self.note(f"{label} {place}", (told.get("seq"), told.get("count"), refused.get("err_code")))
            else:
                await self.client.publish(subject, b"v", headers=headers)

    async def _expiry(self) -> None:
        heard: list[Any] = []

        async def hear(msg: Msg) -> None:
            heard.append((msg.subject, msg.data, _marks(msg.headers)))

        watch = await self.bus.kv_watch("LEASE", "*", hear)
        await self.attempt("lease", lambda: self.js.publish("$KV.LEASE.leader", b"me", msg_ttl=1))
        await self.attempt("held", lambda: self.bus.kv_get("LEASE", "leader"))
        await asyncio.sleep(2.5)
        await self.attempt("free", lambda: self.bus.kv_get("LEASE", "leader"))
        last = await self.js.get_last_msg("KV_LEASE", "$KV.LEASE.leader")
        self.note("marker", (last.seq, _marks(last.headers), last.data))
        headers = {"Nats-Expected-Last-Subject-Sequence": str(last.seq)}
        take = partial(self.js.publish, "$KV.LEASE.leader", b"you", msg_ttl=30, headers=headers)
        await self.attempt("taken", take)
        await self.attempt("taken twice", take)
        await watch.unsubscribe()
        self.note("watched", [entry for entry in heard if not entry[2]])

    async def _reading(self) -> None:
        for number in range(5):
            await self.js.publish(f"$KV.EVALUATORS.e{number % 3}", b"%d" % number, headers={"X": str(number)})
        await self.attempt("all", lambda: self._all("EVALUATORS"))
        await self.attempt("one", lambda: self._all("EVALUATORS", "e1"))
        await self.attempt("none", lambda: self._all("EVALUATORS", "z"))
        await self.attempt("headers only", lambda: self._all("EVALUATORS", headers_only=True))
        await self.attempt("direct by sequence", lambda: self.js.get_msg("KV_EVALUATORS", seq=4, direct=True))
        await self.attempt("gone by sequence", lambda: self.js.get_msg("KV_EVALUATORS", seq=1, direct=True))
        await self.attempt("from the leader", lambda: self.js.get_msg("KV_EVALUATORS", seq=4))
        await self.attempt("gone from the leader", lambda: self.js.get_msg("KV_EVALUATORS", seq=1))
        await self.attempt("last missing", lambda: self.js.get_last_msg("KV_EVALUATORS", "$KV.EVALUATORS.z"))
        await self.attempt("no stream", lambda: self.js.get_msg("NONE", seq=1))
        await self.attempt("state", lambda: self._state("KV_EVALUATORS"))
        for number in range(3):
            await self.bus.publish_log("job", "info", b"line %d" % number)
        await self.attempt("logs", lambda: self.bus.read_logs("job", ["info", "error"], 1, 10))
        await self.attempt("time", self._told_time)

    async def _queue(self) -> None:
        await self.attempt("offer", lambda: self.js.publish("work.e.3.job.0", b"u0"))
        await self.attempt("offer again", lambda: self.js.publish("work.e.3.job.0", b"u0"))
        await self.attempt("offer other", lambda: self.js.publish("work.e.3.job.1", b"u1"))
        await self.attempt("offer third", lambda: self.js.publish("work.f.3.job.2", b"u2"))
        await self.attempt("offered", lambda: self._subjects("WORK"))
        await self.attempt("consumer", lambda: self.bus.work_consumer("e", 1.0))
        await self.attempt("consumer again", lambda: self.bus.work_consumer("e", 1.0))
        overlapping = api.ConsumerConfig(
            durable_name="other", ack_policy=api.AckPolicy.EXPLICIT, filter_subject="work.>"
        )
        await self.attempt("overlap", lambda: self.js.add_consumer("WORK", overlapping))
        came: asyncio.Queue[Msg] = asyncio.Queue()
        inbox = self.client.new_inbox()
        subscription = await self.client.subscribe(inbox, cb=came.put)
        await self.bus.pull_work("e", inbox, 2, 5)
        first, second = await self._next(came), await self._next(came)
        self.note("first", _delivery(first))
        self.note("second", _delivery(second))
        await first.in_progress()
        await self.attempt("ack", lambda: first.ack_sync(timeout=2))
        await self.attempt("ack twice", lambda: self.client.request(first.reply, timeout=2))
        await self.attempt("left", lambda: self._subjects("WORK"))
        await second.nak()
        await self.bus.pull_work("e", inbox, 1, 5)
        again = await self._next(came)
        self.note("after nak", _delivery(again))
        await self.bus.pull_work("e", inbox, 1, 5)
        late = await self._next(came)
        self.note("after ack_wait", _delivery(late))
        await self.attempt("ack of the older delivery", lambda: again.ack_sync(timeout=2))
        await self.attempt("left now", lambda: self._subjects("WORK"))
        await self.js.publish("work.e.3.job.5", b"u5")
        await self.bus.pull_work("e", inbox, 1, 5)
        held = await self._next(came)
        await self.attempt("purge", lambda: self.js.purge_stream("WORK", subject="work.*.*.job.>"))
        await self.attempt("left after purge", lambda: self._subjects("WORK"))
        await self.attempt("ack of what was purged", lambda: held.ack_sync(timeout=2))
        await self.js.publish("work.e.3.job.6", b"u6")
        await self.bus.pull_work("e", inbox, 1, 5)
        await (await self._next(came)).term()
        await asyncio.sleep(0.2)
        await self.attempt("left after term", lambda: self._subjects("WORK"))
        await subscription.unsubscribe()

    async def _pulling(self) -> None:
        came: asyncio.Queue[Msg] = asyncio.Queue()
        inbox = self.client.new_inbox()
        subscription = await self.client.subscribe(inbox, cb=came.put)
        await self.bus.pull_work("e", inbox, 3, 0.5)
        await self.js.publish("work.e.3.j.0", b"one")
        self.note("one of three", _delivery(await self._next(came)))
        self.note("the rest in vain", _marks((await self._next(came)).headers))
        await self.attempt(
            "pull without a consumer",
            lambda: self.client.request("$JS.API.CONSUMER.MSG.NEXT.WORK.none", b"{}", timeout=2),
        )
        sub = await self.js.pull_subscribe(
            "audit.>",
            stream="AUDIT",
            config=api.ConsumerConfig(
                deliver_policy=api.DeliverPolicy.ALL, ack_policy=api.AckPolicy.NONE, inactive_threshold=10
            ),
        )
        fetched = await sub.fetch(2, timeout=10)
        self.note("fetched", [_delivery(msg) for msg in fetched])
        await self.attempt("nothing more", lambda: sub.fetch(2, timeout=0.5))
        await self.js.publish("work.e.3.j.1", b"two")
        await sub.unsubscribe()
        await subscription.unsubscribe()

    async def _pushing(self) -> None:
        for number in range(3):
            await self.js.publish(f"results.j.{number}", b"body", headers={"N": str(number)})
        came: asyncio.Queue[Msg] = asyncio.Queue()
        inbox = self.client.new_inbox()
        subscription = await self.client.subscribe(inbox, cb=came.put)
        config = api.ConsumerConfig(
            deliver_subject=inbox,
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=2,
            ack_policy=api.AckPolicy.NONE,
            headers_only=True,
            idle_heartbeat=0.4,
            inactive_threshold=30,
            mem_storage=True,
            max_deliver=1,
        )
        info = await self.js.add_consumer("RESULTS", config)
        self.note("backlog", info.num_pending)
        self.note("pushed", [_delivery(await self._next(came)) for _ in range(2)])
        beat = await self._next(came)
        self.note("heartbeat", (_marks(beat.headers), beat.reply, (beat.headers or {}).get("Nats-Last-Consumer")))
        await self.js.publish("results.j.9", b"body")
        msg = await self._next(came)
        while not msg.reply:
            msg = await self._next(came)
        self.note("new", _delivery(msg))
        await subscription.unsubscribe()

    async def _acknowledging_all(self) -> None:
        config = api.ConsumerConfig(
            durable_name="results-items",
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=1,
            ack_policy=api.AckPolicy.ALL,
            ack_wait=1,
            max_ack_pending=3,
        )
        await self.attempt("delete missing", lambda: self.js.delete_consumer("RESULTS", "results-items"))
        await self.js.add_consumer("RESULTS", config)
        came: asyncio.Queue[Msg] = asyncio.Queue()
        inbox = self.client.new_inbox()
        subscription = await self.client.subscribe(inbox, cb=came.put)
        request = json.dumps({"batch": 10, "expires": int(5e9)}).encode()
        await self.client.publish("$JS.API.CONSUMER.MSG.NEXT.RESULTS.results-items", request, reply=inbox)
        three = [await self._next(came) for _ in range(3)]
        self.note("three at most", [_delivery(msg) for msg in three])
        self.note("no more", came.qsize())
        await three[1].ack()
        self.note("then the fourth", _delivery(await self._next(came)))
        info = await self.js.consumer_info("RESULTS", "results-items")
        self.note("its state", (info.num_ack_pending, info.num_pending, info.delivered and info.delivered.consumer_seq))
        await self.attempt("delete", lambda: self.js.delete_consumer("RESULTS", "results-items"))
        await self.attempt("gone", lambda: self.js.consumer_info("RESULTS", "results-items"))
        await subscription.unsubscribe()

    async def _core(self) -> None:
        heard: list[str] = []

        async def hear(msg: Msg) -> None:
            heard.append(msg.subject)

        watch = await self.bus.kv_watch("SESSIONS", "*", hear)
        await self.js.publish("$KV.SESSIONS.a", b"1")
        await self.attempt(
            "refused",
            lambda: self.js.publish("$KV.SESSIONS.b", b"1", headers={"Nats-Expected-Last-Subject-Sequence": "9"}),
        )
        await asyncio.sleep(0.1)
        self.note("a refused write is heard, too", heard)
        await watch.unsubscribe()
        await self.attempt("nobody answers", lambda: self.client.request("ask", timeout=1))

    async def _objects(self) -> None:
        datasets = Datasets(self.bus)
        await self.attempt("no shard", lambda: datasets.shards())
        await self.attempt("put", lambda: datasets.put_shard("d" * 64, b"x" * 700_000))
        await self.attempt("shards", lambda: datasets.shards())
        await self.attempt("strays", lambda: datasets.drop_strays())
        await self.attempt("delete", lambda: datasets.delete_shards(["d" * 64], _all_of))
        await self.attempt("shards left", lambda: datasets.shards())

    # -- how -------------------------------------------------------------------------------------------------------

    @staticmethod
    async def _next(came: asyncio.Queue[Msg]) -> Msg:
        return await asyncio.wait_for(came.get(), 10)

    async def _values(self, stream: str, subject: str) -> list[bytes]:
        sub = await self.js.pull_subscribe(
            subject, stream=stream, config=api.ConsumerConfig(ack_policy=api.AckPolicy.NONE, inactive_threshold=10)
        )
        left = (await sub.consumer_info()).num_pending or 0
        found = [msg.data for msg in await sub.fetch(left, timeout=10)] if left else []
        await sub.unsubscribe()
        return found

    async def _all(self, bucket: str, pattern: str = ">", headers_only: bool = False) -> list[Any]:
        return [
            (key, msg.data, (msg.headers or {}).get("X"))
            async for key, msg in self.bus.kv_all(bucket, pattern, headers_only=headers_only)
        ]

    async def _subjects(self, stream: str) -> dict[str, int]:
        return (await self.js.stream_info(stream, subjects_filter=">")).state.subjects or {}

    async def _state(self, stream: str) -> tuple[Any, ...]:
        state = (await self.js.stream_info(stream)).state
        return state.messages, state.first_seq, state.last_seq

    async def _told_time(self) -> bool:
        return await self.bus.server_time() > 1e9


async def _all_of(digests: Any) -> Any:
    return digests


def _delivery(msg: Msg) -> tuple[Any, ...]:
    about = msg.metadata
    return msg.subject, msg.data, about.num_delivered, about.sequence.stream, about.sequence.consumer, about.num_pending


def _marks(headers: dict[str, str] | None) -> dict[str, str]:
    wanted = ("Status", "Nats-Pending-Messages", "Nats-Marker-Reason", "KV-Operation")
    return {name: value for name, value in (headers or {}).items() if name in wanted}


def _plain(answer: Any) -> Any:
    """Without moments, names that differ, and sizes on disk."""
    if isinstance(answer, api.PubAck):
        return answer.stream, answer.seq, bool(answer.duplicate)
    if isinstance(answer, api.StreamInfo):
        return answer.config.name, answer.state.messages, answer.state.first_seq, answer.state.last_seq
    if isinstance(answer, api.RawStreamMsg):
        return answer.subject, answer.seq, answer.data
    if isinstance(answer, api.ConsumerInfo):
        return answer.num_pending
    if isinstance(answer, Msg):
        return answer.data
    return answer
