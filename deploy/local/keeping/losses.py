"""What NATS has lost of its streams. A server that starts on a damaged file cuts off what it cannot read, and goes on
as if it had never been there. So the launcher notes how far each stream goes, and compares after the next start.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import nats.errors

from deploy.local.state import StateDir
from services import bus
from services.bus.contract import info_of_stream, object_stream
from services.errors import TouchstoneError

Say = Callable[[str], None]

RECORD = "streams.json"
"""How far the streams went when the launcher last looked."""
NOTE = "lost-in-streams"
"""What was lost, a line each, until a restore: the streams themselves do not show it any more."""
_HOLDS = {
    f"KV_{bus.JOBS}": "jobs and schedules",
    f"KV_{bus.TOKENS}": "users' tokens",
    f"KV_{bus.WEBHOOKS}": "webhooks",
    f"KV_{bus.DELIVERIES}": "calls of webhooks",
    f"KV_{bus.PROVIDER_BATCHES}": "batches at providers",
    bus.RESULTS: "answers",
    bus.AUDIT: "changes of jobs",
    bus.KEPT: "marks, annotations and names",
    object_stream(bus.DATASETS): "datasets",
    bus.DLQ: "messages that were set aside",
    bus.LOGS: "logs of jobs",
}


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a stream goes. `created` tells it from a later one of the same name. `emptied` says that all of its
    messages are younger than that. `lost` is in bytes, and counts since the server's start."""

    created: str
    last: int
    messages: int
    emptied: bool = False
    lost: int = 0


def _reach(told: Mapping[str, Any]) -> Reach:
    state = told["state"]
    began, first = datetime.fromisoformat(told["created"]), datetime.fromisoformat(state["first_ts"])
    lost = (state.get("lost") or {}).get("bytes", 0)
    return Reach(told["created"], state["last_seq"], state["messages"], first >= began, lost)


async def reaches(connection: bus.Bus) -> dict[str, Reach]:
    """By name, of those streams of a backup that are there. Raises NATS's errors."""
    found = {}
    for stream in bus.BACKED_UP:
        # Without the details, the server tells nothing of damaged blocks.
        told = json.loads(
            (await connection.client.request(info_of_stream(stream), b'{"deleted_details": true}', timeout=30)).data
        )
        if "error" not in told:
            found[stream] = _reach(told)
    return found


def losses(before: Mapping[str, Reach], now: Mapping[str, Reach]) -> list[tuple[str, str]]:
    """(stream, what it has lost in words), by what the streams were before."""
    found = []
    for stream in bus.BACKED_UP:
        old, new = before.get(stream), now.get(stream)
        fault = ""
        if new is not None and new.lost:
            fault = f"has lost {new.lost:,} bytes in a damaged block"
        elif old is None or not old.messages:
            continue
        elif new is None or (old.created != new.created and (new.emptied or new.last < old.last)):
            fault = "was lost"
        elif new.last < old.last:
            fault = f"has lost its end: its last position is {new.last:,}, and was {old.last:,}"
        if fault:
            found.append((stream, f"The stream {stream} ({_HOLDS[stream]}) {fault}."))
    return found


async def say_losses(state: StateDir, url: str, say: Say) -> None:
    """Compares the streams with the record, then says and notes what was lost. Says nothing when NATS does not
    answer."""
    before = read(state.path)
    with suppress(nats.errors.Error, TouchstoneError, OSError):
        connection = await bus.connect(url, "launcher", timeout_s=30)
        try:
            now = await reaches(connection)
        finally:
            await connection.close()
        if found := losses(before, now):
            _note(state.path, [fault for _, fault in found])
            for _, fault in found:
                say(fault)
            say(
                "Touchstone goes on without what was lost. To have it back, stop Touchstone, then run "
                f"`touchstone restore BACKUP --state-dir {state.path}`."
            )
        write(state, now)


async def keep_record(state: StateDir, monitor_url: str) -> None:
    """Brings the record up to date, as far as NATS answers. A stream that went back keeps its entry: what it lost is
    said after the next start."""
    before = read(state.path)
    now = dict(before)
    for stream, reach in (await _monitored(monitor_url)).items():
        old = before.get(stream)
        if old is None or old.created != reach.created or old.last <= reach.last:
            now[stream] = reach
    if now != before:
        write(state, now)


async def _monitored(monitor_url: str) -> dict[str, Reach]:
    """What NATS tells of its streams without a connection: all but what it lost. Empty when it does not answer."""
    try:
        async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
            told = (await client.get(f"{monitor_url}/jsz", params={"streams": "true"})).json()
        streams = (each for account in told["account_details"] for each in account["stream_detail"])
        return {each["name"]: _reach(each) for each in streams if each["name"] in bus.BACKED_UP}
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return {}


def write(state: StateDir, now: Mapping[str, Reach]) -> None:
    """A disk without room keeps the old record."""
    with suppress(OSError):
        state.write_private(RECORD, json.dumps({stream: asdict(reach) for stream, reach in now.items()}, indent=1))


def read(state_dir: Path) -> dict[str, Reach]:
    """The record; empty where there is none, or none that can be read."""
    try:
        told = json.loads((state_dir / RECORD).read_text())
        return {stream: Reach(**each) for stream, each in told.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def noted(state_dir: Path) -> list[str]:
    """What was lost since the last restore, a sentence each."""
    try:
        return (state_dir / NOTE).read_text().splitlines()
    except (OSError, ValueError):
        return []


def forget(state_dir: Path) -> None:
    """For streams that were restored."""
    for name in (NOTE, RECORD):
        (state_dir / name).unlink(missing_ok=True)


def _note(state_dir: Path, found: list[str]) -> None:
    with suppress(OSError), (state_dir / NOTE).open("a") as file:
        (state_dir / NOTE).chmod(0o600)
        file.writelines(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC: {fault}\n" for fault in found)
