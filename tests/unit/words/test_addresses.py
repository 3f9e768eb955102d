"""The way of a call through several addresses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest

from services.words.addresses import NOT_LEADING, Search, leader_of, split

DETAILS = "grpc-status-details-bin"
CUT_OFF = "Socket closed"


@dataclass
class Failed:
    """As gRPC's error of a call."""

    text: str = CUT_OFF
    status: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE
    trailing: dict[str, Any] = field(default_factory=dict)

    def code(self) -> grpc.StatusCode:
        return self.status

    def details(self) -> str:
        return self.text

    def trailing_metadata(self) -> list[tuple[str, Any]]:
        return list(self.trailing.items())


STANDBY = Failed("a standby", trailing={DETAILS: b"..." + NOT_LEADING.encode()})


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_call_goes_round_with_growing_pauses_until_its_deadline() -> None:
    clock = Clock()
    search = Search(["a", "b"], 1.0, once=True, clock=clock)
    seen, pauses = [], []
    while (pause_s := search.pause_s(search.current, STANDBY)) is not None:
        seen.append(search.current)
        pauses.append(pause_s)
        clock.now += pause_s
    assert seen == ["b", "a", "b", "a", "b", "a", "b"]
    assert pauses == pytest.approx([0, 0.1, 0, 0.2, 0, 0.4, 0])
    assert search.left_s == pytest.approx(0.3)


def test_later_calls_begin_where_the_last_one_was_answered() -> None:
    order = ["a", "b", "c"]
    search = Search(order, 5.0, once=False)
    assert search.pause_s("a", STANDBY) == 0
    assert search.current == "b"
    assert search.pause_s("b", STANDBY) == 0
    assert Search(order, 5.0, once=False).current == "c"
    late = Search(order, 5.0, once=False)
    assert late.pause_s("c", Failed(status=grpc.StatusCode.DEADLINE_EXCEEDED)) is None
    assert order[0] == "a", "a host that is cut off is not asked first again"


@pytest.mark.parametrize(
    ("error", "once", "again"),
    [
        (STANDBY, True, True),
        (Failed("failed to connect to all addresses"), True, True),
        (Failed("DNS resolution failed for a"), True, True),
        (Failed(CUT_OFF), False, True),
        (Failed(CUT_OFF), True, False),
        (Failed("NATS does not answer.", trailing={DETAILS: b"retry"}), False, True),
        (Failed("NATS does not answer.", trailing={DETAILS: b"retry"}), True, False),
        (Failed("no room", trailing={"grpc-retry-pushback-ms": "-1"}), False, False),
        (Failed("wrong", grpc.StatusCode.INVALID_ARGUMENT), False, False),
        (Failed("late", grpc.StatusCode.DEADLINE_EXCEEDED), False, False),
    ],
)
def test_what_may_have_been_done_is_not_sent_again(error: Failed, once: bool, again: bool) -> None:
    assert (Search(["a", "b"], 5.0, once=once).pause_s("a", error) is not None) is again


def test_one_address_is_left_to_grpc() -> None:
    order = ["a"]
    assert Search(order, 5.0, once=False).pause_s("a", STANDBY) is None
    assert order == ["a"]


def test_a_stream_without_a_deadline_looks_for_a_while() -> None:
    clock = Clock()
    search = Search(["a", "b"], None, once=False, clock=clock)
    assert search.left_s is None
    while (pause_s := search.pause_s(search.current, STANDBY)) is not None:
        clock.now += pause_s
    assert 113 < clock.now < 115


def test_settings_list_addresses_and_names() -> None:
    assert split("a:1, b:2,dns:///c:3") == ["a:1", "b:2", "dns:///c:3"]
    assert leader_of("a:1", "x.Y") == {}
    assert leader_of("dns:///a:1", "x.Y")["healthCheckConfig"] == {"serviceName": "x.Y"}
