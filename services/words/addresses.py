"""Several addresses of one service: which of them a call goes to next, and whether it may be sent again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

C = TypeVar("C")

NOT_LEADING = "not_leading"
"""The reason in the ErrorInfo of a scheduler that does not lead: it has done nothing."""
DNS = "dns:///"
"""Before an address whose name may be that of several servers."""
LOOK = "/grpc.health.v1.Health/Check"
"""What the servers of a list are asked, with an empty request, before a call whose requests are a stream: it cannot be
sent again. Any answer will do."""
LOOK_S = 3.0
"""Most seconds for that answer."""

AS_OF = "touchstone-as-of"
"""A header of the answers of a copy of the results: when these were so, as ISO 8601."""

_FIRST_PAUSE_S, _MOST_PAUSE_S = 0.1, 1.0
_STREAM_S = 15.0
"""How long a stream without a deadline looks for a server."""
_PUSHBACK = "grpc-retry-pushback-ms"
"""With it, a server says when to call again, or never."""
_NOT_SENT = ("failed to connect", "DNS resolution failed", "connections to all backends failing")
"""What gRPC says of a call that no server has seen."""


def split(listed: str) -> list[str]:
    """The addresses in a setting: host:port, dns:///host:port, or several of both, separated by commas."""
    return [one.strip() for one in listed.split(",")]


def leader_of(address: str, service: str) -> dict[str, Any]:
    """What a channel's service config needs in addition, so that calls to a name of several servers go to
    the one that says that `service` answers."""
    if not address.startswith("dns:"):
        return {}
    return {"loadBalancingConfig": [{"round_robin": {}}], "healthCheckConfig": {"serviceName": service}}


def silent(error: Any) -> bool:
    """Whether gRPC's error may be that of a server that is away."""
    return error.code().name in ("UNAVAILABLE", "DEADLINE_EXCEEDED")


class Search(Generic[C]):
    """One call's way through the channels of a service. `order` is shared by all calls: what answers comes first.

    A call that a server refuses because it does not lead, or that cannot be sent, goes to the next address, round and
    round until its deadline. So does a call that was cut off, unless it is sent `once`.
    """

    def __init__(
        self, order: list[C], timeout_s: float | None, *, once: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._order, self._once, self._clock = order, once, clock
        self._deadline = None if timeout_s is None else clock() + timeout_s
        self._until = clock() + (_STREAM_S if timeout_s is None else timeout_s)
        self._passed: list[C] = []
        self._pause_s = _FIRST_PAUSE_S
        self.current = order[0]

    @property
    def left_s(self) -> float | None:
        """Seconds until the call's deadline; None without one."""
        return None if self._deadline is None else max(0.0, self._deadline - self._clock())

    def pause_s(self, channel: C, error: Any) -> float | None:
        """Seconds to wait before the call is sent to `current`; None if it must not be sent again. `error` is gRPC's,
        of a call over `channel`."""
        if silent(error) and len(self._order) > 1 and self._order[0] is channel:
            # In one step: other threads read it.
            self._order[:] = [*self._order[1:], channel]
        if len(self._order) == 1 or not self._may_go_on(error):
            return None
        self._passed.append(channel)
        left = [one for one in self._order if one not in self._passed]
        if left:
            self.current = left[0]
            return 0.0
        pause_s, self._pause_s = self._pause_s, min(2 * self._pause_s, _MOST_PAUSE_S)
        self._passed, self.current = [], self._order[0]
        return pause_s if self._clock() + pause_s < self._until else None

    def _may_go_on(self, error: Any) -> bool:
        trailing: Sequence[tuple[str, Any]] = error.trailing_metadata() or ()
        told = dict(trailing)
        if error.code().name != "UNAVAILABLE" or _PUSHBACK in told:
            return False
        refused = NOT_LEADING.encode() in told.get("grpc-status-details-bin", b"")
        return refused or not self._once or any(words in (error.details() or "") for words in _NOT_SENT)
