"""Decides from a process's answers to health checks when it must be restarted. Pure: the supervisor asks and acts.

A process that answers is alive, even if it is not ready: it waits for another process, and a restart would not help. A
process is ended if it does not answer at all, or if it reports being ill and depends on no other process.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

BUSY_SHARE = 0.02
"""A silent process that uses more of one processor than this is working and gets more time."""
BUSY_FACTOR = 4
"""Factors on the patience: for silent processes that work, for those that start, and for those that are ill."""
MOST_STEP_S = 5.0
"""A longer time between two checks counts as this much: the launcher itself may have been stopped."""
DISK_PATIENCE_S = 2.0
DISK_SILENCE_S = 5.0
"""The patience, from the moment of room, with a process that a full disk has silenced."""
MOST_DISK_DOUBLINGS = 3
"""Up to 16 s, so that processes that a full disk stopped continue within half a minute of room."""
STEADY_S = 120.0
"""After this long in good health, earlier restarts are forgotten."""
MOST_DOUBLINGS = 6


class State(Enum):
    """How a process answered one check."""

    WELL = "well"
    WAITING = "waiting"
    """It answers that it is not ready."""
    ILL = "ill"
    """It answers that it is broken."""
    NO_ROOM = "no room"
    """It answers that a write failed, mostly for lack of disk space. NATS keeps this error after the space is back."""
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a process must be ended. A `frozen` process cannot end on its own and is killed."""

    reason: str
    frozen: bool


class Pulse:
    """One process over all of its lives. `patience_s` is how long an idle process may be silent."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._doublings = self._disk_doublings = 0
        self.begin()

    def begin(self) -> None:
        """A new life begins."""
        self._answered = self._was_well = False
        self._since_s = self._well_s = self._room_s = 0.0
        self._state = State.SILENT
        self._cpu_s = 0.0
        self._lacked_room = False

    def check(self, state: State, elapsed_s: float, cpu_s: float, *, room: bool) -> Verdict | None:
        """Takes the answer to one check.

        `elapsed_s` is the time since the last check, `cpu_s` the processor time used in it; `room` says whether the
        disk has room again. Returns a verdict when the process must be ended.
        """
        step = min(elapsed_s, MOST_STEP_S)
        if state is not self._state:
            self._state, self._since_s, self._cpu_s, self._lacked_room = state, 0.0, 0.0, False
        self._since_s += step
        self._lacked_room |= not room
        self._room_s = self._room_s + step if room else 0.0
        self._cpu_s += cpu_s
        self._answered |= state is not State.SILENT
        self._was_well |= state is State.WELL
        if state is State.WELL:
            self._well_s += step
            if self._well_s >= STEADY_S:
                self._doublings = self._disk_doublings = 0
        if not room:
            self._disk_doublings = 0  # The disk filled again: the earlier restarts do not count.
        verdict = self._verdict(room)
        if verdict is not None and state is State.NO_ROOM:
            self._disk_doublings = min(self._disk_doublings + 1, MOST_DISK_DOUBLINGS)
        elif verdict is not None:
            self._doublings = min(self._doublings + 1, MOST_DOUBLINGS)
        return verdict

    def _verdict(self, room: bool) -> Verdict | None:
        more = 2**self._doublings
        busy = self._cpu_s > BUSY_SHARE * self._since_s
        long_s = BUSY_FACTOR * self._patience_s
        match self._state:
            case State.SILENT:
                if busy and not self._answered:
                    return None  # It may be migrating its database, which may take any time.
                patience = self._patience_s if self._answered and not busy else long_s
                silenced = self._lacked_room and self._answered and not busy
                if self._since_s >= patience * more or (silenced and self._room_s >= DISK_SILENCE_S * more):
                    return Verdict(f"has not answered for {self._since_s:.0f} s", frozen=True)
            case State.ILL:
                if busy and not self._was_well:
                    return None  # It may still read its store.
                if self._since_s >= long_s * more:
                    return Verdict(f"has been unhealthy for {self._since_s:.0f} s", frozen=False)
            case State.NO_ROOM:
                if room and self._since_s >= DISK_PATIENCE_S * 2**self._disk_doublings:
                    return Verdict("could not write to the disk, which has room again", frozen=False)
        return None
