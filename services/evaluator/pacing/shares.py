"""The calls of a limited endpoint, cluster-wide: when the next may go out, and whose turn it is. Pure.

Calls are spaced evenly (generic cell rate algorithm, ITU-T I.371): each has its own moment, so that no window of the
provider, whatever its length, has more than the limit. Whose call takes a moment is decided by start-time fair queueing
(Goyal, Vin and Cheng, 1997) on two levels: the user with the fewest calls so far goes first, and so does the job with
the fewest among a user's jobs. A flow is a user's job.

Nobody sees all the waiting calls: each evaluator takes moments for the flows of its own calls. So a flow may take a
future moment only while it is not ahead of the others. Any waiting flow may take a moment that has come, as it would be
lost otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

EVEN = 0.99
"""Share of the limit that is used: the network brings two calls closer together than they were sent."""
AHEAD_S = 0.5
"""Moments are taken at most this long in advance. A crash loses them."""
LATE_S = 0.1
"""A moment that nobody took is lost after this long, or at once if moments are further apart."""
ACTIVE_S = 1.5
"""A flow that nobody asked for within this time does not hold others back."""
FORGET_S = 10.0
"""A flow that nobody asked for within this time starts again."""
CREDIT_S = 2.0
"""A flow that was away for less makes up for at most this many seconds of the limit."""


class Flow(NamedTuple):
    """The calls of one job, which belongs to one user."""

    owner: str
    job_id: str


class Permit(NamedTuple):
    """One call of `flow` may go out at `at`, in seconds of the record's clock."""

    at: float
    flow: Flow


@dataclass(slots=True)
class _Count:
    """Calls given so far, on a scale where only differences matter, and the time of the last request for one."""

    given: float
    asked: float


@dataclass(slots=True)
class _User(_Count):
    jobs: dict[str, _Count] = field(default_factory=dict)


class Shares:
    """The bucket's record of one endpoint. All times are in seconds of one clock, which callers bring."""

    def __init__(self) -> None:
        self.next = 0.0
        """The first moment that is still free."""
        self._users: dict[str, _User] = {}

    @classmethod
    def decode(cls, data: bytes) -> Shares:
        """Raises ValueError or KeyError for data that `encode` did not write."""
        shares = cls()
        record = json.loads(data)
        shares.next = float(record["next"])
        for owner, user in record["users"].items():
            given, asked = user["count"]
            jobs = {job: _Count(*counted) for job, counted in user["jobs"].items()}
            shares._users[owner] = _User(given, asked, jobs)
        return shares

    def encode(self) -> bytes:
        users = {
            owner: {
                "count": [round(user.given, 3), round(user.asked, 3)],
                "jobs": {job: [round(count.given, 3), round(count.asked, 3)] for job, count in user.jobs.items()},
            }
            for owner, user in self._users.items()
        }
        return json.dumps({"next": round(self.next, 6), "users": users}, separators=(",", ":")).encode()

    def take(self, wanted: Mapping[Flow, int], most: int, requests_per_minute: int, now: float) -> list[Permit]:
        """Moments for up to `wanted` calls of each flow and `most` in all, in order of time; fewer if the limit or
        others' turns do not leave more.
        """
        per_second = EVEN * requests_per_minute / 60
        self._note(wanted, per_second, now)
        lead = max(1.0, per_second * AHEAD_S / 5)
        left = {flow: count for flow, count in wanted.items() if count > 0}
        permits: list[Permit] = []
        while left and len(permits) < most:
            at = max(self.next, now - max(0.0, LATE_S - 1 / per_second))
            if at > now + AHEAD_S:
                break
            flow = self._turn(left, now, lead if at > now else None)
            if flow is None:
                break
            user = self._users[flow.owner]
            user.given += 1
            user.jobs[flow.job_id].given += 1
            permits.append(Permit(at, flow))
            self.next = at + 1 / per_second
            left[flow] -= 1
            if not left[flow]:
                del left[flow]
        return permits

    def _turn(self, left: Mapping[Flow, int], now: float, lead: float | None) -> Flow | None:
        """The flow with the fewest calls given. With `lead`, None when all are further than that ahead of the last."""
        ranked = sorted(left, key=lambda flow: (self._users[flow.owner].given, self._given(flow), flow))
        if lead is None:
            return ranked[0]
        last = min(user.given for user in self._users.values() if now - user.asked <= ACTIVE_S)
        for flow in ranked:
            user = self._users[flow.owner]
            last_job = min(job.given for job in user.jobs.values() if now - job.asked <= ACTIVE_S)
            if user.given < last + lead and self._given(flow) < last_job + lead:
                return flow
        return None

    def _given(self, flow: Flow) -> float:
        return self._users[flow.owner].jobs[flow.job_id].given

    def _note(self, wanted: Mapping[Flow, int], per_second: float, now: float) -> None:
        """Drops flows that are gone, and lets new ones begin level with the last of the others."""
        self._users = {owner: user for owner, user in self._users.items() if now - user.asked <= FORGET_S}
        for user in self._users.values():
            user.jobs = {job: count for job, count in user.jobs.items() if now - count.asked <= FORGET_S}
        credit = per_second * CREDIT_S
        start = _start(self._users.values(), now)
        begin = {owner: _start(user.jobs.values(), now) for owner, user in self._users.items()}
        for flow in wanted:
            user = self._users.setdefault(flow.owner, _User(start, now))
            user.given, user.asked = max(user.given, start - credit), now
            first = begin.get(flow.owner, 0.0)
            job = user.jobs.setdefault(flow.job_id, _Count(first, now))
            job.given, job.asked = max(job.given, first - credit), now


def _start(counts: Collection[_Count], now: float) -> float:
    """Where a newcomer begins: level with the last active flow, else with the last of all."""
    active = [count.given for count in counts if now - count.asked <= ACTIVE_S]
    return min(active or [count.given for count in counts], default=0.0)
