"""Wrong tokens are slowed where they come from and logged without themselves; right ones elsewhere notice nothing."""

from __future__ import annotations

import logging

import pytest

from services import rpc
from services.errors import LimitReachedError, UnauthenticatedError
from services.rpc.caller import Failures
from touchstone.v1 import token_pb2

FREE = 30
RIGHT, WRONG = "ts_right-one", "ts_wrong-secret"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def waits(failures: Failures, address: str, token: str) -> int:
    try:
        failures.require(address, token)
    except LimitReachedError as refused:
        return refused.retry_after_s
    return 0


def test_waits_grow_and_end_and_a_wait_is_one_addresss() -> None:
    clock = Clock()
    failures = Failures(FREE, clock)
    told = []
    for _ in range(14):
        failures.failed("10.0.0.7", WRONG)
        told.append(waits(failures, "10.0.0.7", WRONG))
    assert told == [0] * 5 + [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert waits(failures, "10.0.0.7", RIGHT) == 0, "another prefix is not slowed yet"
    assert waits(failures, "10.0.0.8", WRONG) == 0
    clock.now += 61
    assert waits(failures, "10.0.0.7", WRONG) == 0
    clock.now += 700
    failures.failed("10.0.0.7", WRONG)
    assert waits(failures, "10.0.0.7", WRONG) == 0, "the count is forgotten"


def test_tokens_of_many_prefixes_slow_their_address_but_no_token_that_was_right_there() -> None:
    failures = Failures(FREE, Clock())
    failures.succeeded(RIGHT)
    for n in range(40):
        failures.failed("2001:db8::1", f"{n:08d}-guess")
    assert waits(failures, "2001:db8::2", "another"), "one host has a whole network of addresses"
    assert waits(failures, "2001:db8::1", RIGHT) == 0
    assert waits(failures, "2001:db8:1::1", "another") == 0


def test_a_line_is_logged_now_and_then_and_never_the_token(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    failures = Failures(FREE, clock)
    with caplog.at_level(logging.WARNING):
        for _ in range(1000):
            failures.failed("10.0.0.7", WRONG)
        clock.now += 61
        failures.failed("10.0.0.7", WRONG)
        for n in range(1000):
            failures.failed(f"10.1.{n // 250}.{n % 250}", WRONG)
    lines = [record.getMessage() for record in caplog.records]
    assert lines[:2] == [
        "wrong token from 10.0.0.7, 1 since the last such line",
        "wrong token from 10.0.0.7, 1000 since the last such line",
    ]
    assert len(lines) < 40
    assert "ts_" not in "".join(lines)


def test_memory_is_bounded() -> None:
    failures = Failures(FREE, Clock())
    for n in range(12_000):
        failures.failed(f"10.{n // 65536}.{n // 256 % 256}.{n % 256}", f"{n}")
        failures.succeeded(f"token {n}")
    assert len(failures._tries) <= 10_000
    assert len(failures._right) <= 10_000
    assert len(failures._logged) <= 10_000


async def test_the_authenticator_slows_wrong_tokens_only() -> None:
    asked = 0

    async def lookup(digest: str) -> token_pb2.Token | None:
        nonlocal asked
        asked += 1
        right = digest == rpc.token_digest(RIGHT)
        return token_pb2.Token(user="alice", role=token_pb2.ROLE_USER) if right else None

    authenticate = rpc.Authenticator(lookup, "service-secret")
    outcomes = []
    for _ in range(20):
        with pytest.raises((UnauthenticatedError, LimitReachedError)) as refused:
            await authenticate(WRONG, "10.0.0.7")
        outcomes.append(refused.type)
    assert outcomes == [UnauthenticatedError] * 6 + [LimitReachedError] * 14
    assert asked == 6, "who has to wait costs no look-up"
    for address in ("10.0.0.7", "10.0.0.8"):
        assert (await authenticate(RIGHT, address)).user == "alice"
    for token in ("", "\udcff\udcfe", "x" * 1_000_000):
        with pytest.raises(UnauthenticatedError):
            await authenticate(token, "10.0.0.9")
