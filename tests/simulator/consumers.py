"""Consumers of the fake JetStream: who gets which message, how often, and what an acknowledgement does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tests.simulator.streams import Stored, Stream
from tests.simulator.subjects import encode_headers, matches

Send = Callable[[str, str, bytes, bytes], bool]
"""Delivers subject, reply, headers and data to whoever listens; False when nobody does."""


@dataclass(slots=True)
class PullRequest:
    """`expires` is a moment of the server's clock, None for one that is answered at once."""

    inbox: str
    left: int
    expires: float | None


@dataclass(slots=True)
class _Out:
    """A message that waits for its acknowledgement."""

    consumer_sequence: int
    due: float
    deliveries: int


@dataclass
class Consumer:
    """One consumer of a stream."""

    name: str
    stream: Stream
    config: dict[str, Any]
    send: Send
    due: Callable[[float], None]
    """Called with a moment at which `tick` will have something to do."""
    delivered: int = 0
    """Its own sequence of deliveries."""
    position: int = 0
    """The stream's sequence up to which all were delivered once."""
    chosen: list[int] = field(default_factory=list)
    """Of a consumer of the newest messages, those that it begins with."""
    out: dict[int, _Out] = field(default_factory=dict)
    again: list[int] = field(default_factory=list)
    requests: list[PullRequest] = field(default_factory=list)
    deliveries: dict[int, int] = field(default_factory=dict)
    """By sequence, how often a message that is not done was delivered."""
    idle_since: float = 0.0
    beat_at: float = 0.0

    def __post_init__(self) -> None:
        policy = self.config.get("deliver_policy", "all")
        if policy == "by_start_sequence":
            self.position = self.config["opt_start_seq"] - 1
        elif policy == "new":
            self.position = self.stream.last
        elif policy == "last_per_subject":
            self.chosen = sorted(
                sequences[-1] for subject, sequences in self.stream.by_subject.items() if self.takes(subject)
            )
            self.position = self.stream.last
        self.idle_since = self.beat_at = self.stream.clock()
        if self.heartbeat:
            self.due(self.beat_at)

    # -- settings --------------------------------------------------------------------------------------------------

    @cached_property
    def filters(self) -> list[str]:
        if self.config.get("filter_subjects"):
            return list(self.config["filter_subjects"])
        return [self.config["filter_subject"]] if self.config.get("filter_subject") else []

    def takes(self, subject: str) -> bool:
        return not self.filters or any(matches(pattern, subject) for pattern in self.filters)

    @cached_property
    def acknowledges(self) -> bool:
        return bool(self.config.get("ack_policy", "none") != "none")

    @cached_property
    def ack_wait(self) -> float:
        return float(self.config.get("ack_wait", 30e9)) / 1e9

    @cached_property
    def deliver_subject(self) -> str:
        return str(self.config.get("deliver_subject") or "")

    @cached_property
    def heartbeat(self) -> float:
        return float(self.config.get("idle_heartbeat", 0)) / 1e9

    @cached_property
    def threshold(self) -> float:
        """Seconds after which it is deleted when nobody asks; 0 for one that stays."""
        return 0.0 if self.config.get("durable_name") else float(self.config.get("inactive_threshold", 0)) / 1e9

    @property
    def is_kept(self) -> bool:
        """Whether it survives the server."""
        return bool(self.config.get("durable_name")) and not self.config.get("mem_storage")

    # -- delivering ------------------------------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """Messages that were never delivered."""
        chosen = sum(sequence in self.stream.messages for sequence in self.chosen)
        return chosen + self.stream.count_matching(self.filters, self.position)

    def take(self, request: PullRequest) -> None:
        self.idle_since = self.stream.clock()
        if request.expires is None and not self._has_more():
            self.send(request.inbox, "", encode_headers({}, "404 No Messages"), b"")
            return
        self.requests.append(request)
        if request.expires is not None:
            self.due(request.expires)
        self.deliver()

    def _has_more(self) -> bool:
        return bool(self.again) or self.pending > 0

    def deliver(self) -> None:
        """Sends what there is to whoever asked."""
        if self.deliver_subject:
            while self._may_send() and (message := self._next()) is not None:
                if not self._give(message, self.deliver_subject):
                    self._put_back(message)
                    return
            return
        while self.requests and self._may_send():
            message = self._next()
            if message is None:
                break
            request = self.requests.pop(0)
            if not self._give(message, request.inbox):
                self._put_back(message)
                continue
            request.left -= 1
            if request.left:
                self.requests.append(request)
        for request in [r for r in self.requests if r.expires is None]:
            self.requests.remove(request)
            self._end(request, "404 No Messages")

    def _may_send(self) -> bool:
        most = self.config.get("max_ack_pending", 1000)
        return not self.acknowledges or most <= 0 or len(self.out) < most

    def _next(self) -> Stored | None:
        while self.again:
            stored = self.stream.messages.get(self.again.pop(0))
            if stored is not None:
                return stored
        while self.chosen:
            stored = self.stream.messages.get(self.chosen.pop(0))
            if stored is not None:
                return stored
        stored = self.stream.next_matching(self.filters, self.position)
        if stored is not None:
            self.position = stored.sequence
        return stored

    def _put_back(self, message: Stored) -> None:
        """Nobody was there: the next one gets it, as its first delivery."""
        self.delivered -= 1
        self.out.pop(message.sequence, None)
        count = self.deliveries.get(message.sequence, 0) - 1
        if count > 0:
            self.deliveries[message.sequence] = count
        else:
            self.deliveries.pop(message.sequence, None)
        self.again.insert(0, message.sequence)

    def _give(self, message: Stored, to: str) -> bool:
        self.delivered += 1
        now = self.stream.clock()
        count = self.deliveries.get(message.sequence, 0) + 1
        if self.acknowledges:
            self.deliveries[message.sequence] = count
            self.out[message.sequence] = _Out(self.delivered, now + self.ack_wait, count)
            self.due(now + self.ack_wait)
        at = int(message.at * 1e9)
        reply = (
            f"$JS.ACK.{self.stream.name}.{self.name}.{count}.{message.sequence}.{self.delivered}.{at}.{self.pending}"
        )
        raw, data = message.raw, message.data
        if self.config.get("headers_only"):
            raw = encode_headers(message.headers | {"Nats-Msg-Size": str(len(data))})
            data = b""
        self.beat_at = now + self.heartbeat
        return self.send(to, message.subject + "\n" + reply, raw, data)

    def _end(self, request: PullRequest, status: str) -> None:
        told = {"Nats-Pending-Messages": str(request.left), "Nats-Pending-Bytes": "0"}
        self.send(request.inbox, "", encode_headers({} if status.startswith("404") else told, status), b"")

    # -- time ------------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Ends requests whose time is over, delivers again what was not acknowledged, tells that it lives."""
        if not (self.requests or self.out or self.heartbeat):
            return
        now = self.stream.clock()
        for request in [r for r in self.requests if r.expires is not None and r.expires <= now]:
            self.requests.remove(request)
            self._end(request, "408 Request Timeout")
        late = [sequence for sequence, out in self.out.items() if out.due <= now]
        for sequence in late:
            del self.out[sequence]
            if sequence in self.stream.messages:
                self.again.append(sequence)
        if late:
            self.deliver()
        if self.heartbeat and self.beat_at <= now:
            told = {"Nats-Last-Consumer": str(self.delivered), "Nats-Last-Stream": str(self.position)}
            self.beat_at = now + self.heartbeat
            if self.send(self.deliver_subject, "", encode_headers(told, "100 Idle Heartbeat"), b""):
                self.idle_since = now

    @property
    def next_due(self) -> float | None:
        """When `tick` has something to do."""
        if not (self.requests or self.out):
            return self.beat_at if self.heartbeat else None
        moments = [request.expires for request in self.requests if request.expires is not None]
        moments += [out.due for out in self.out.values()]
        if self.heartbeat:
            moments.append(self.beat_at)
        return min(moments, default=None)

    def is_abandoned(self) -> bool:
        """Whether nobody has asked for longer than its threshold."""
        threshold = self.threshold
        return bool(threshold) and not self.requests and self.stream.clock() - self.idle_since > threshold

    # -- acknowledging ---------------------------------------------------------------------------------------------

    def acknowledge(self, sequence: int, deliveries: int, data: bytes) -> bool:
        """Whether the sender, if it asked, is answered."""
        now = self.stream.clock()
        if data.startswith(b"+WPI"):
            if sequence in self.out:
                self.out[sequence].due = now + self.ack_wait
            return True
        if data.startswith(b"-NAK"):
            if sequence in self.out:
                del self.out[sequence]
                self.again.append(sequence)
                self.deliver()
            return True
        done = [sequence]
        if self.config.get("ack_policy") == "all":
            done = [known for known in self.out if known <= sequence]
        for each in done:
            self.out.pop(each, None)
            self.deliveries.pop(each, None)
            if each in self.again:
                self.again.remove(each)
            if self.stream.is_queue:
                self.stream.remove(each)
        self.deliver()
        return True

    def info(self) -> dict[str, Any]:
        return {
            "stream_name": self.stream.name,
            "name": self.name,
            "config": self.config,
            "delivered": {"consumer_seq": self.delivered, "stream_seq": self.position},
            "ack_floor": {"consumer_seq": 0, "stream_seq": 0},
            "num_ack_pending": len(self.out),
            "num_redelivered": sum(count > 1 for count in self.deliveries.values()),
            "num_waiting": len(self.requests),
            "num_pending": self.pending,
        }
