"""Streams of the fake JetStream: what is stored, what is refused, what expires. They survive the server's crashes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import Any

from tests.simulator.subjects import encode_headers, matches, parse_headers

_NO_HEADERS: Mapping[str, str] = {}
_DEDUPLICATED_S = 120.0


class RefusedError(Exception):
    """An error as JetStream answers it."""

    def __init__(self, code: int, err_code: int, description: str) -> None:
        super().__init__(description)
        self.answer = {"code": code, "err_code": err_code, "description": description}


@dataclass(slots=True)
class Stored:
    """One message. `raw` are its headers as sent."""

    sequence: int
    subject: str
    raw: bytes
    data: bytes
    at: float
    expires: float | None = None

    @property
    def headers(self) -> dict[str, str]:
        return parse_headers(self.raw)

    @property
    def size(self) -> int:
        return len(self.subject) + len(self.raw) + len(self.data) + 30


@dataclass
class Pending:
    """A message on its way into a stream."""

    subject: str
    raw: bytes
    data: bytes

    @cached_property
    def headers(self) -> Mapping[str, str]:
        return parse_headers(self.raw) if self.raw else _NO_HEADERS


@dataclass
class Stream:
    """One stream with the settings that it was made with. `clock` gives seconds since 1970."""

    name: str
    config: dict[str, Any]
    clock: Callable[[], float]
    created: float = 0.0
    messages: dict[int, Stored] = field(default_factory=dict)
    """In order of their sequence."""
    by_subject: dict[str, list[int]] = field(default_factory=dict)
    mortal: dict[int, Stored] = field(default_factory=dict)
    """Of these messages, those that expire."""
    last: int = 0
    size: int = 0
    seen: dict[str, tuple[float, int]] = field(default_factory=dict)
    """By message id, when it came and its sequence."""
    revived: list[str] = field(default_factory=list)
    """Subjects of values that were to be seen again after what had replaced them was gone."""

    def __post_init__(self) -> None:
        self.created = self.clock()

    @property
    def subjects(self) -> list[str]:
        found: list[str] = self.config["subjects"]
        return found

    @property
    def first(self) -> int:
        return next(iter(self.messages), self.last + 1 if self.last else 0)

    @property
    def is_queue(self) -> bool:
        return self.config.get("retention") == "workqueue"

    def takes(self, subject: str) -> bool:
        return any(matches(pattern, subject) for pattern in self.subjects)

    @cached_property
    def heads(self) -> set[str]:
        """The first tokens of its subjects."""
        return {subject.partition(".")[0] for subject in self.subjects}

    # -- writing ---------------------------------------------------------------------------------------------------

    def store(self, message: Pending, *, rolls_up: bool = True) -> tuple[int, bool]:
        """The sequence, and whether it was a repetition. Without `rolls_up` what the message replaces stays, as after a
        kill in between. Raises RefusedError."""
        known = self._repeated(message)
        if known is not None:
            return known, True
        self.check(message, {})
        return self.append(message, rolls_up=rolls_up).sequence, False

    def store_all(self, messages: list[Pending]) -> int:
        """All or none; the last sequence. Raises RefusedError."""
        written: dict[str, int] = {}
        for place, message in enumerate(messages, 1):
            self.check(message, written)
            written[message.subject] = self.last + place
        return [self.append(message).sequence for message in messages][-1]

    def _repeated(self, message: Pending) -> int | None:
        number = message.headers.get("Nats-Msg-Id")
        if number is None or number not in self.seen:
            return None
        at, sequence = self.seen[number]
        return sequence if self.clock() - at < _DEDUPLICATED_S else None

    def check(self, message: Pending, written: Mapping[str, int]) -> None:
        """Raises RefusedError. `written` are the sequences that the batch gives before this message, by subject."""
        headers, config = message.headers, self.config
        if "Nats-TTL" in headers and not config.get("allow_msg_ttl"):
            raise RefusedError(400, 10166, "per-message TTL is disabled")
        if "Nats-Rollup" in headers and not config.get("allow_rollup_hdrs"):
            raise RefusedError(500, 10111, "rollup not permitted")
        expected = headers.get("Nats-Expected-Last-Subject-Sequence")
        if expected is not None:
            subject = headers.get("Nats-Expected-Last-Subject-Sequence-Subject", message.subject)
            newest = written.get(subject, self.last_of(subject))
            if newest != int(expected):
                raise RefusedError(400, 10071, f"wrong last sequence: {newest}")
        most = config.get("max_msgs_per_subject", -1)
        if config.get("discard") == "new":
            if (
                most > 0
                and config.get("discard_new_per_subject")
                and len(self.by_subject.get(message.subject, ())) >= most
            ):
                raise RefusedError(503, 10077, "maximum messages per subject exceeded")
            size = len(message.subject) + len(message.raw) + len(message.data) + 30
            if config.get("max_bytes", -1) > 0 and self.size + size > config["max_bytes"]:
                raise RefusedError(503, 10077, "maximum bytes exceeded")

    def append(self, message: Pending, *, rolls_up: bool = True) -> Stored:
        """Stores what was checked."""
        headers = message.headers
        self.last += 1
        now = self.clock()
        life = headers.get("Nats-TTL")
        stored = Stored(
            self.last, message.subject, message.raw, message.data, now, None if life is None else now + seconds(life)
        )
        self.messages[self.last] = stored
        if stored.expires is not None:
            self.mortal[self.last] = stored
        self.size += stored.size
        of_subject = self.by_subject.setdefault(message.subject, [])
        of_subject.append(self.last)
        if "Nats-Msg-Id" in headers:
            self.seen[headers["Nats-Msg-Id"]] = now, self.last
        most = self.config.get("max_msgs_per_subject", -1)
        if headers.get("Nats-Rollup") == "sub" and rolls_up:
            most = 1
        if most > 0:
            for old in of_subject[:-most]:
                self.remove(old)
        return stored

    def remove(self, sequence: int) -> Stored | None:
        stored = self.messages.pop(sequence, None)
        if stored is None:
            return None
        self.mortal.pop(sequence, None)
        self.size -= stored.size
        left = self.by_subject[stored.subject]
        left.remove(sequence)
        if not left:
            del self.by_subject[stored.subject]
        return stored

    def purge(self, pattern: str | None, below: int | None, keep: int | None) -> int:
        """How many messages are gone."""
        chosen = [m.sequence for m in self.messages.values() if pattern is None or matches(pattern, m.subject)]
        if below:
            chosen = [sequence for sequence in chosen if sequence < below]
        if keep:
            chosen = chosen[:-keep]
        for sequence in chosen:
            self.remove(sequence)
        return len(chosen)

    def expire(self) -> list[str]:
        """Removes what is over; subjects whose last message that was."""
        now = self.clock()
        ended = []
        for stored in [m for m in self.mortal.values() if m.expires is not None and m.expires <= now]:
            newest = self.last_of(stored.subject) == stored.sequence
            self.remove(stored.sequence)
            if newest and self.shows_value(stored.subject):
                self.revived.append(stored.subject)
            if newest and not any(name in stored.headers for name in ("Nats-Marker-Reason", "KV-Operation")):
                ended.append(stored.subject)
        return ended

    def shows_value(self, subject: str) -> bool:
        """Whether the newest message of a key is a value that stays."""
        newest = self.messages.get(self.last_of(subject))
        return newest is not None and newest.expires is None and "KV-Operation" not in newest.headers

    def mark_expired(self, subject: str) -> Stored | None:
        """Says that a key has expired, where the stream is asked to."""
        life = self.config.get("subject_delete_marker_ttl")
        if not life:
            return None
        headers = {"Nats-Marker-Reason": "MaxAge", "Nats-TTL": f"{int(life) // 10**9}s"}
        return self.append(Pending(subject, encode_headers(headers), b""))

    # -- reading ---------------------------------------------------------------------------------------------------

    def last_of(self, subject: str) -> int:
        """Sequence of the newest message of a subject; 0 for none."""
        found = self.by_subject.get(subject)
        return found[-1] if found else 0

    def last_matching(self, pattern: str) -> Stored | None:
        if "*" not in pattern and ">" not in pattern:
            found = self.last_of(pattern)
        else:
            found = max((ids[-1] for subject, ids in self.by_subject.items() if matches(pattern, subject)), default=0)
        return self.messages.get(found)

    def next_matching(self, patterns: Iterable[str], after: int) -> Stored | None:
        """The first message after a sequence whose subject is of one of the patterns; of any when there are none."""
        if after >= self.last:
            return None
        wanted = list(patterns)
        if wanted and all(self._is_plain(pattern) for pattern in wanted):
            found = min((i for pattern in wanted for i in self.by_subject.get(pattern, ()) if i > after), default=None)
            return None if found is None else self.messages[found]
        for sequence in range(max(after + 1, self.first), self.last + 1):
            stored = self.messages.get(sequence)
            if stored is not None and (not wanted or any(matches(p, stored.subject) for p in wanted)):
                return stored
        return None

    def count_matching(self, patterns: Iterable[str], after: int) -> int:
        if after >= self.last:
            return 0
        wanted = list(patterns)
        return sum(
            sum(i > after for i in ids)
            for subject, ids in self.by_subject.items()
            if not wanted or any(matches(pattern, subject) for pattern in wanted)
        )

    @staticmethod
    def _is_plain(pattern: str) -> bool:
        return "*" not in pattern and ">" not in pattern

    def info(self, consumers: int, subjects_filter: str | None) -> dict[str, Any]:
        first, last = self.messages.get(self.first), self.messages.get(self.last)
        state: dict[str, Any] = {
            "messages": len(self.messages),
            "bytes": self.size,
            "first_seq": self.first,
            "first_ts": iso(first.at if first else 0.0),
            "last_seq": self.last,
            "last_ts": iso(last.at if last else 0.0),
            "num_subjects": len(self.by_subject),
            "consumer_count": consumers,
        }
        if subjects_filter:
            state["subjects"] = {s: len(i) for s, i in self.by_subject.items() if matches(subjects_filter, s)}
        return {"config": self.config, "created": iso(self.created), "state": state, "ts": iso(self.clock())}


def seconds(life: str) -> float:
    """Of a TTL header: a number of seconds, or with its unit."""
    for unit, factor in (("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)):
        if life.endswith(unit):
            return float(life.removesuffix(unit)) * factor
    return float(life)


@lru_cache(maxsize=4096)
def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"
