"""The fake NATS server: core messages, and as much of JetStream as the services use.

What it stores survives its crashes; connections, requests under way and consumers in memory do not. How it answers is
held against a real server by `test_jetstream_contract.py`.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

from tests.simulator.consumers import Consumer, PullRequest
from tests.simulator.loop import SimLoop
from tests.simulator.network import Connection, Network
from tests.simulator.streams import Pending, RefusedError, Stored, Stream, iso
from tests.simulator.subjects import encode_headers, overlap, parse_headers
from tests.simulator.subscriptions import Listener, Subscriptions

_API = "$JS.API."
_ACK = "$JS.ACK."
# Arguments and not errors: an error that is raised again keeps all frames of all earlier times.
_NOT_FOUND = 404, 10059, "stream not found"
_NO_CONSUMER = 404, 10014, "consumer not found"
_NO_MESSAGE = 404, 10037, "no message found"
_BATCH_S = 10.0

Refuse = Callable[[str], dict[str, Any] | None]
"""Given a subject, the error that a request is refused with; None to serve it."""


class FakeServer:
    """One server. `choose` picks one of several members of a queue group."""

    def __init__(self, loop: SimLoop, delay: Callable[[], float], choose: Callable[[int], int]) -> None:
        self.loop = loop
        self.network = Network(loop, self, delay)
        self.up = True
        self.streams: dict[str, Stream] = {}
        self.consumers: dict[tuple[str, str], Consumer] = {}
        self.refuse: Refuse = lambda subject: None
        self.lose: Callable[[str], bool] = lambda subject: False
        """Whether a message to a client is lost on its way, as a slow consumer loses it."""
        self.on_stored: Callable[[Stream, Stored], None] = lambda stream, stored: None
        self.on_delivered: Callable[[str, str, bytes], None] = lambda subject, reply, data: None
        self.dies_in_rollup = False
        """Whether the next message that replaces others is its last deed before a crash."""
        self.died = asyncio.Event()
        """Set by that crash."""
        self._choose = choose
        self._subscriptions = Subscriptions()
        self._left: dict[tuple[Connection, int], int] = {}
        self._batches: dict[str, tuple[float, list[Pending]]] = {}
        self._names = 0
        self._tick_at: float | None = None

    def clock(self) -> float:
        return self.loop.wall

    # -- faults ----------------------------------------------------------------------------------------------------

    def crash(self) -> None:
        """SIGKILL: what was acknowledged is kept, and nothing else."""
        self.up = self.dies_in_rollup = False
        self.network.break_all()
        self._batches.clear()
        for key, consumer in list(self.consumers.items()):
            consumer.requests.clear()
            if not consumer.is_kept:
                del self.consumers[key]

    def start(self) -> None:
        self.up = True
        self._look()

    # -- connections -----------------------------------------------------------------------------------------------

    def joined(self, connection: Connection) -> None:
        """A client has connected."""

    def left(self, connection: Connection) -> None:
        self._subscriptions.drop(connection)

    def subscribed(self, connection: Connection, subject: str, queue: str, sid: int) -> None:
        self._subscriptions.add(subject, Listener(connection, sid, queue))
        for consumer in list(self.consumers.values()):
            if consumer.deliver_subject == subject:
                consumer.deliver()

    def unsubscribed(self, connection: Connection, sid: int, most: int) -> None:
        if most:
            self._left[connection, sid] = most
            return
        self._drop(connection, sid)

    def _drop(self, connection: Connection, sid: int) -> None:
        self._left.pop((connection, sid), None)
        self._subscriptions.drop(connection, sid)

    # -- messages --------------------------------------------------------------------------------------------------

    def published(self, connection: Connection, subject: str, reply: str, raw: bytes, data: bytes) -> None:
        if subject.startswith(_ACK):
            heard = self._acknowledged(subject, reply, data)
        elif subject.startswith(_API):
            heard = self._asked(subject, reply, data)
        else:
            # Who watches a bucket hears a write before it is stored, and also when it is refused.
            heard = self.route(subject, reply, raw, data)
            stream = self._stream_of(subject)
            if stream is not None:
                heard = True
                self._store(stream, Pending(subject, raw, data), reply)
        if not heard and reply:
            self.route(reply, "", encode_headers({}, "503"), b"")

    def _stream_of(self, subject: str) -> Stream | None:
        heads = subject.partition(".")[0], "*", ">"
        return next((s for s in self.streams.values() if not s.heads.isdisjoint(heads) and s.takes(subject)), None)

    def route(self, subject: str, reply: str, raw: bytes, data: bytes) -> bool:
        """Delivers to subscribers; whether there are any."""
        found = self._subscriptions.of(subject)
        groups: dict[str, list[tuple[Connection, int]]] = {}
        for connection, sid, queue in found:
            if queue:
                groups.setdefault(queue, []).append((connection, sid))
            else:
                self._deliver(connection, sid, subject, reply, raw, data)
        for members in groups.values():
            connection, sid = members[self._choose(len(members))]
            self._deliver(connection, sid, subject, reply, raw, data)
        return bool(found)

    def _deliver(self, connection: Connection, sid: int, subject: str, reply: str, raw: bytes, data: bytes) -> None:
        told = f"{subject} {sid}{' ' + reply if reply else ''}"
        if not self.lose(subject):
            if raw:
                head = f"HMSG {told} {len(raw)} {len(raw) + len(data)}\r\n".encode()
            else:
                head = f"MSG {told} {len(data)}\r\n".encode()
            connection.send(head + raw + data + b"\r\n")
        left = self._left.get((connection, sid))
        if left is not None:
            if left <= 1:
                self._drop(connection, sid)
            else:
                self._left[connection, sid] = left - 1

    def _from_consumer(self, to: str, named: str, raw: bytes, data: bytes) -> bool:
        """A delivery keeps the message's own subject, though it goes to an inbox."""
        subject, _, reply = named.partition("\n")
        listeners = self._subscriptions.of(to)
        for connection, sid, _ in listeners:
            if reply:
                self.on_delivered(subject, reply, data)
            self._deliver(connection, sid, subject or to, reply, raw, data)
        return bool(listeners)

    # -- storing ---------------------------------------------------------------------------------------------------

    def _store(self, stream: Stream, message: Pending, reply: str) -> None:
        refusal = self.refuse(message.subject)
        if refusal is not None:
            self._answer(reply, {"error": refusal, "stream": stream.name, "seq": 0})
            return
        batch = message.headers.get("Nats-Batch-Id")
        try:
            if batch is not None:
                self._batched(stream, batch, message, reply)
                return
            amid = self.dies_in_rollup and "Nats-Rollup" in message.headers and stream.last_of(message.subject) > 0
            sequence, repeated = stream.store(message, rolls_up=not amid)
        except RefusedError as error:
            self._answer(reply, {"error": error.answer, "stream": stream.name, "seq": 0})
            return
        told: dict[str, Any] = {"stream": stream.name, "seq": sequence}
        if repeated:
            told["duplicate"] = True
        else:
            self._is_stored(stream, stream.messages[sequence])
        if amid:
            self.crash()
            self.died.set()
            return
        self._answer(reply, told)
        self._deliver_of(stream)

    def _batched(self, stream: Stream, batch: str, message: Pending, reply: str) -> None:
        """Raises RefusedError."""
        headers = message.headers
        place = int(headers.get("Nats-Batch-Sequence", "0"))
        if not stream.config.get("allow_atomic"):
            raise RefusedError(400, 10174, "atomic publish is disabled")
        now = self.clock()
        begun, messages = self._batches.get(batch, (now, []))
        if place != len(messages) + 1 or now - begun > _BATCH_S:
            self._batches.pop(batch, None)
            raise RefusedError(400, 10176, "atomic publish batch is incomplete")
        messages.append(message)
        self._batches[batch] = begun, messages
        if headers.get("Nats-Batch-Commit") != "1":
            if reply:
                self.route(reply, "", b"", b"")
            return
        del self._batches[batch]
        before = stream.last
        sequence = stream.store_all(messages)
        for number in range(before + 1, sequence + 1):
            if number in stream.messages:
                self._is_stored(stream, stream.messages[number])
        told = {"stream": stream.name, "seq": sequence, "batch": batch, "count": len(messages)}
        self._answer(reply, told)
        self._deliver_of(stream)

    def _is_stored(self, stream: Stream, message: Stored) -> None:
        if message.expires is not None:
            self._due(message.expires)
        self.on_stored(stream, message)

    def _deliver_of(self, stream: Stream) -> None:
        for consumer in [made for (name, _), made in self.consumers.items() if name == stream.name]:
            consumer.deliver()

    def _answer(self, reply: str, told: dict[str, Any]) -> None:
        if reply:
            self.route(reply, "", b"", json.dumps(told).encode())

    # -- acknowledgements ------------------------------------------------------------------------------------------

    def _acknowledged(self, subject: str, reply: str, data: bytes) -> bool:
        _, _, stream, name, deliveries, sequence, *_ = subject.split(".")
        consumer = self.consumers.get((stream, name))
        if consumer is None:
            return False
        if consumer.acknowledge(int(sequence), int(deliveries), data) and reply:
            self.route(reply, "", b"", b"")
        return True

    # -- the API ---------------------------------------------------------------------------------------------------

    def _asked(self, subject: str, reply: str, data: bytes) -> bool:
        words = subject.removeprefix(_API).split(".")
        refusal = self.refuse(subject)
        if words[:3] == ["CONSUMER", "MSG", "NEXT"]:
            return self._pull(words[3], words[4], reply, data)
        if words[:2] == ["DIRECT", "GET"]:
            return self._direct(words[2], ".".join(words[3:]), reply, data)
        try:
            if refusal is not None:
                raise RefusedError(refusal["code"], refusal["err_code"], refusal["description"])
            asked = json.loads(data) if data else {}
            answer = self._serve(words, asked)
        except RefusedError as error:
            answer = {"error": error.answer}
        self._answer(reply, {"type": "io.nats.jetstream.api.v1.answer"} | answer)
        return True

    def _serve(self, words: list[str], asked: dict[str, Any]) -> dict[str, Any]:
        """Raises RefusedError."""
        kind = ".".join(words[:2])
        if kind == "STREAM.CREATE":
            return self.create_stream(words[2], asked)
        if kind == "STREAM.INFO":
            return self._info(self._stream(words[2]), asked.get("subjects_filter"))
        if kind == "STREAM.NAMES":
            wanted = asked.get("subject", ">")
            found = [s.name for s in self.streams.values() if any(overlap(p, wanted) for p in s.subjects)]
            return {"streams": found or None, "total": len(found), "offset": 0, "limit": 1024}
        if kind == "STREAM.PURGE":
            stream = self._stream(words[2])
            if stream.config.get("deny_purge"):
                raise RefusedError(500, 10110, "stream purge not permitted")
            gone = stream.purge(asked.get("filter"), asked.get("seq"), asked.get("keep"))
            return {"success": True, "purged": gone}
        if words[:3] == ["STREAM", "MSG", "GET"]:
            return {"message": self._get(self._stream(words[3]), asked)}
        if kind in ("CONSUMER.CREATE", "CONSUMER.DURABLE"):
            return self._create_consumer(asked)
        if kind == "CONSUMER.INFO":
            return {"ts": iso(self.clock()), "created": iso(self.clock())} | self._consumer(words[2], words[3]).info()
        if kind == "CONSUMER.DELETE":
            self._consumer(words[2], words[3])
            del self.consumers[words[2], words[3]]
            return {"success": True}
        raise NotImplementedError(f"the fake server does not serve {'.'.join(words)}")

    def _stream(self, name: str) -> Stream:
        if name not in self.streams:
            raise RefusedError(*_NOT_FOUND)
        return self.streams[name]

    def _consumer(self, stream: str, name: str) -> Consumer:
        self._stream(stream)
        if (stream, name) not in self.consumers:
            raise RefusedError(*_NO_CONSUMER)
        return self.consumers[stream, name]

    def _info(self, stream: Stream, subjects_filter: str | None) -> dict[str, Any]:
        consumers = sum(name == stream.name for name, _ in self.consumers)
        return stream.info(consumers, subjects_filter)

    def create_stream(self, name: str, config: dict[str, Any]) -> dict[str, Any]:
        """Answers as the API does. Raises RefusedError."""
        known = self.streams.get(name)
        if known is not None and known.config != config:
            raise RefusedError(400, 10058, "stream name already in use with a different configuration")
        if known is None:
            self.streams[name] = Stream(name, config, self.clock)
        return self._info(self.streams[name], None)

    def _create_consumer(self, asked: dict[str, Any]) -> dict[str, Any]:
        stream, config = self._stream(asked["stream_name"]), asked["config"]
        name = config.get("name") or config.get("durable_name")
        if not name:
            self._names += 1
            name = f"E{self._names:07d}"
        known = self.consumers.get((stream.name, name))
        if known is None:
            made = Consumer(name, stream, config, self._from_consumer, self._due)
            if stream.is_queue:
                self._require_apart(stream, made)
            self.consumers[stream.name, name] = made
            told = made.info()
            self.network.later(0.0, made.deliver)
            return {"ts": iso(self.clock()), "created": iso(self.clock())} | told
        if known.config != config:
            if known.config.get("deliver_policy") != config.get("deliver_policy"):
                raise RefusedError(400, 10012, "deliver policy can not be updated")
            known.config = config
            for cached in ("filters", "acknowledges", "ack_wait", "deliver_subject", "heartbeat", "threshold"):
                known.__dict__.pop(cached, None)
        return {"ts": iso(self.clock()), "created": iso(self.clock())} | self.consumers[stream.name, name].info()

    def _require_apart(self, stream: Stream, made: Consumer) -> None:
        for (name, _), other in self.consumers.items():
            if name == stream.name and any(
                overlap(a, b) for a in made.filters or [">"] for b in other.filters or [">"]
            ):
                raise RefusedError(400, 10100, "filtered consumer not unique on workqueue stream")

    def _pull(self, stream: str, name: str, reply: str, data: bytes) -> bool:
        consumer = self.consumers.get((stream, name))
        if consumer is None or not reply:
            return False
        asked = json.loads(data) if data else {}
        expires = asked.get("expires")
        until = None if expires is None and asked.get("no_wait") else self.clock() + (expires or 0) / 1e9
        consumer.take(PullRequest(reply, asked.get("batch", 1), until))
        return True

    @staticmethod
    def _get(stream: Stream, asked: dict[str, Any]) -> dict[str, Any]:
        found = _lookup(stream, asked)
        if found is None:
            raise RefusedError(*_NO_MESSAGE)
        told: dict[str, Any] = {"subject": found.subject, "seq": found.sequence, "time": iso(found.at)}
        if found.raw:
            told["hdrs"] = base64.b64encode(found.raw).decode()
        if found.data:
            told["data"] = base64.b64encode(found.data).decode()
        return told

    def _direct(self, name: str, subject: str, reply: str, data: bytes) -> bool:
        stream = self.streams.get(name)
        if stream is None or not stream.config.get("allow_direct"):
            return False
        asked = {"last_by_subj": subject} if subject else json.loads(data)
        found = _lookup(stream, asked)
        if found is None:
            self.route(reply, "", encode_headers({}, "404 Message Not Found"), b"")
            return True
        headers = parse_headers(found.raw) if found.raw else {}
        told = {
            "Nats-Stream": name,
            "Nats-Subject": found.subject,
            "Nats-Sequence": str(found.sequence),
            "Nats-Time-Stamp": iso(found.at),
        }
        self.route(reply, "", encode_headers(headers | told), found.data)
        return True

    # -- time ------------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Looks at everything for what is due first."""
        moments = [due for consumer in self.consumers.values() if (due := consumer.next_due) is not None]
        moments += [m.expires for stream in self.streams.values() for m in stream.mortal.values() if m.expires]
        if not moments or not self.up:
            return
        self._due(min(moments))

    def _due(self, moment: float) -> None:
        """Makes sure that `_tick` runs then or before."""
        now = self.clock()
        due = max(moment, now)
        if self._tick_at is None or due < self._tick_at - 1e-6 or self._tick_at < now:
            self._tick_at = due
            self.network.later(due - now + 1e-6, self._tick, due)

    def _tick(self, due: float) -> None:
        if not self.up or self._tick_at != due:
            return
        self._tick_at = None
        for key, consumer in list(self.consumers.items()):
            consumer.tick()
            if consumer.is_abandoned():
                del self.consumers[key]
        for stream in self.streams.values():
            for subject in stream.expire() if stream.config.get("allow_msg_ttl") else ():
                marker = stream.mark_expired(subject)
                if marker is not None:
                    self.route(subject, "", marker.raw, b"")
                    self._deliver_of(stream)
        self._look()


def _lookup(stream: Stream, asked: dict[str, Any]) -> Stored | None:
    if asked.get("last_by_subj"):
        return stream.last_matching(asked["last_by_subj"])
    if asked.get("next_by_subj"):
        return stream.next_matching([asked["next_by_subj"]], max(0, (asked.get("seq") or 1) - 1))
    return stream.messages.get(asked.get("seq", 0))
