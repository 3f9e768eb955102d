"""What NATS has lost of its streams. A server that starts on a damaged file cuts off what it cannot read, and continues
without reporting it. So the launcher notes how far each stream goes, and compares after the next start.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import nats.errors

from deploy.local import health
from deploy.local.recovery.streams import GAPLESS, stream_faults
from deploy.local.state import StateDir
from services import bus
from services.bus.contract import info_of_stream, object_stream, stream_configs
from services.errors import TouchstoneError
from services.words.refusals import counted

Say = Callable[[str], None]

RECORD = "streams.json"
"""How far the streams went when the launcher last looked."""
NOTE = "lost-in-streams"
"""What was lost, one line each, until a restore: the streams themselves no longer show it."""
_HOLDS = {
    f"KV_{bus.JOBS}": "jobs and schedules",
    f"KV_{bus.TOKENS}": "users' tokens",
    f"KV_{bus.WEBHOOKS}": "webhooks",
    f"KV_{bus.DELIVERIES}": "calls of webhooks",
    f"KV_{bus.PROVIDER_BATCHES}": "batches at providers",
    bus.RESULTS: "answers",
    bus.AUDIT: "changes of jobs",
    bus.KEPT: "marks, annotations and names",
    bus.USAGE: "calls through /v1",
    object_stream(bus.DATASETS): "datasets",
    bus.DLQ: "messages that were set aside",
    bus.LOGS: "logs of jobs",
}
_AGEING = frozenset(config.name for config in stream_configs(1) if config.max_age)
"""Streams whose messages all expire."""
_ANSWER_S = 5.0
_DAY = timedelta(days=1)
"""Shorter than the life of their messages."""
_SETTLED = timedelta(minutes=3)
"""Longer than the marker of a deleted key stays: an older first message disappears only when a later one replaces
it."""
_QUICKLY_READ = 16_000_000
"""Most bytes of a stream that is read through after each start."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a stream goes. `created` distinguishes it from a later one of the same name. `emptied` says that all of
    its messages are younger than that. `lost` is in bytes since the server's start. `missing` counts messages that are
    absent without having been removed; None in records of earlier versions. `settled` says that its first message
    disappears only by age, if at all. `newest` is the time of the last message."""

    created: str
    last: int
    messages: int
    emptied: bool = False
    lost: int = 0
    missing: int | None = None
    settled: bool = False
    newest: str = ""

    @property
    def numbers(self) -> tuple[object, ...]:
        return self.last, self.messages, self.lost, self.missing or 0


def _reach(stream: str, told: Mapping[str, Any], floor: int | None = None) -> Reach:
    state = told["state"]
    began, first = datetime.fromisoformat(told["created"]), datetime.fromisoformat(state["first_ts"])
    return Reach(
        told["created"],
        state["last_seq"],
        state["messages"],
        first >= began,
        (state.get("lost") or {}).get("bytes", 0),
        _missing(stream, state, floor),
        bool(state["messages"]) and datetime.now(UTC) - first > _SETTLED,
        state["last_ts"],
    )


def _missing(stream: str, state: Mapping[str, Any], floor: int | None) -> int:
    """`floor`: the last position of RESULTS that may have been removed, if it is known."""
    first, last, there = state["first_seq"], state["last_seq"], state["messages"]
    if stream in GAPLESS:
        return int(last - there)
    if stream == bus.RESULTS:
        return int(max(last - first + 1 if there else 0, 0 if floor is None else last - floor, there) - there)
    return 0


async def reaches(connection: bus.Bus) -> dict[str, Reach]:
    """The state of a backup's existing streams, by name. Raises NATS's errors."""
    found = {}
    floor = await _floor(connection)
    for stream in bus.BACKED_UP:
        # Without the details, the server does not report damaged blocks.
        told = json.loads(
            (await connection.client.request(info_of_stream(stream), b'{"deleted_details": true}', timeout=30)).data
        )
        if "error" not in told:
            found[stream] = _reach(stream, told, floor)
    return found


async def _floor(connection: bus.Bus) -> int | None:
    with suppress(nats.js.errors.Error, ValueError):
        entry = await connection.kv_get(bus.JOBS, bus.FLOOR_KEY)
        return int(entry.data or b"0") if entry is not None else None
    return None


def losses(before: Mapping[str, Reach], now: Mapping[str, Reach]) -> list[tuple[str, str]]:
    """(stream, its loss in words), compared with the earlier state of the streams."""
    found = []
    for stream in bus.BACKED_UP:
        old, new = before.get(stream), now.get(stream)
        fault = ""
        damaged = f"{counted(new.lost, 'byte')} in a damaged block" if new is not None and new.lost else ""
        if old is None or not old.messages:
            fault = f"has lost {damaged}" if damaged else ""
        elif new is None or (old.created != new.created and (new.emptied or new.last < old.last)):
            fault = "was lost"
        elif new.last < old.last:
            # NATS counts the bytes of the block at which it stopped, not those after it.
            end = f"its end and {damaged}" if damaged else "its end"
            fault = f"has lost {end}: its last position is {new.last:,}, and was {old.last:,}"
        elif damaged:
            fault = f"has lost {damaged}"
        elif gone := _gone(old, new):
            fault = f"has lost {gone:,} of {counted(new.last, 'message')}"
        elif old.settled and not new.messages and not _aged(stream, new):
            fault = f"has lost all of its {counted(old.messages, 'message')}"
        if fault:
            found.append((stream, f"The stream {stream} ({_HOLDS[stream]}) {fault}."))
    return found


def _gone(old: Reach, new: Reach) -> int:
    """How many messages disappeared without being removed."""
    if old.missing is None or new.missing is None or new.messages - old.messages >= new.last - old.last:
        return 0
    return max(new.missing - old.missing, 0)


def _aged(stream: str, now: Reach) -> bool:
    """Whether the messages of an empty stream may have expired."""
    return stream in _AGEING and datetime.now(UTC) - datetime.fromisoformat(now.newest) > _DAY


async def opened(url: str) -> dict[str, Reach]:
    """The streams as the server found them, before anything is written; empty when NATS does not answer."""
    with suppress(nats.errors.Error, TouchstoneError, OSError):
        connection = await bus.connect(url, "launcher", timeout_s=30)
        try:
            return await reaches(connection)
        finally:
            await connection.close()
    return {}


async def say_losses(state: StateDir, url: str, say: Say, first: Mapping[str, Reach] | None = None) -> None:
    """Compares the streams with the record, then reports and notes what was lost. `first` is the result of `opened`.
    Does nothing when NATS does not answer."""
    before = read(state.path)
    say_unread(state.path, say)
    with suppress(nats.errors.Error, TouchstoneError, OSError):
        connection = await bus.connect(url, "launcher", timeout_s=30)
        try:
            now = await reaches(connection)
        finally:
            await connection.close()
        as_found = {
            stream: reach
            for stream, reach in (first or {}).items()
            if stream in now and now[stream].created == reach.created
        }
        if found := losses(before, {**now, **as_found}):
            _note(state.path, [fault for _, fault in found])
            _say_all([fault for _, fault in found], state, say)
        write(state, now)


async def say_unreadable(state: StateDir, url: str, say: Say) -> None:
    """Reads the smaller streams through, and reports messages that cannot be read; `check` reads all streams."""
    with suppress(nats.errors.Error, TouchstoneError, OSError):
        connection = await bus.connect(url, "launcher", timeout_s=30)
        try:
            faults = await stream_faults(connection, most_bytes=_QUICKLY_READ)
        finally:
            await connection.close()
        noted_already = "\n".join(noted(state.path))
        if found := [
            f"The stream {stream} ({_HOLDS[stream]}) {fault}."
            for stream, fault in faults
            if f"The stream {stream} " not in noted_already
        ]:
            _say_all(found, state, say)


def _say_all(faults: list[str], state: StateDir, say: Say) -> None:
    for fault in faults:
        say(fault)
    say(
        "Touchstone continues without the lost data. To get it back, stop Touchstone, then run `touchstone restore "
        f"BACKUP --state-dir {state.path}`."
    )


async def keep_record(state: StateDir, monitor_url: str) -> None:
    """Brings the record up to date, as far as NATS answers. A stream that is shorter than before keeps its entry: the
    next start reports the loss."""
    before = read(state.path)
    now = dict(before)
    for stream, reach in (await _monitored(monitor_url)).items():
        old = before.get(stream)
        if old is None or old.created != reach.created:
            now[stream] = reach
        elif old.last <= reach.last:
            # Missing messages were already reported.
            now[stream] = replace(reach, missing=max(old.missing or 0, reach.missing or 0))
    if now != before:
        write(state, now)


async def _monitored(monitor_url: str) -> dict[str, Reach]:
    """What NATS reports of its streams without a connection: everything except losses. Empty when it does not
    answer."""
    try:
        async with health.client(_ANSWER_S) as client:
            told = (await client.get(f"{monitor_url}/jsz", params={"streams": "true"})).json()
        streams = (each for account in told["account_details"] for each in account["stream_detail"])
        return {each["name"]: _reach(each["name"], each) for each in streams if each["name"] in bus.BACKED_UP}
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return {}


def write(state: StateDir, now: Mapping[str, Reach]) -> None:
    """A disk without room keeps the old record."""
    with suppress(OSError):
        state.write_private(RECORD, json.dumps({stream: asdict(reach) for stream, reach in now.items()}, indent=1))


def read(state_dir: Path) -> dict[str, Reach]:
    """The record; empty if it is missing or cannot be read."""
    try:
        told = json.loads((state_dir / RECORD).read_text())
        found = {stream: Reach(**each) for stream, each in told.items()}
        # Values that are not numbers or texts cannot be compared.
        return {
            stream: reach
            for stream, reach in found.items()
            if isinstance(reach.created, str) and {type(each) for each in reach.numbers} <= {int}
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def say_unread(state_dir: Path, say: Say) -> None:
    """Reports a record that cannot be read."""
    if os.path.lexists(record := state_dir / RECORD) and not read(state_dir):
        again = "Move it away." if record.is_dir() else "Touchstone writes it again."
        say(
            f"The record of the streams {record} cannot be read, so what they lost before this start is unknown. "
            f"{again}"
        )


def noted(state_dir: Path) -> list[str]:
    """What was lost since the last restore, one sentence each."""
    try:
        return (state_dir / NOTE).read_text().splitlines()
    except (OSError, ValueError):
        return []


def forget(state_dir: Path) -> None:
    """Forgets the record, for streams that were restored."""
    for name in (NOTE, RECORD):
        (state_dir / name).unlink(missing_ok=True)


def _note(state_dir: Path, found: list[str]) -> None:
    with suppress(OSError), (state_dir / NOTE).open("a") as file:
        (state_dir / NOTE).chmod(0o600)
        file.writelines(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC: {fault}\n" for fault in found)
