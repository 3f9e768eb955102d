"""Whether NATS can be used, by what the leader of a stream says of its nodes."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import nats.errors
import pytest

from services import bus

NEAR, FAR = {"active": 70_000_000}, {"active": 6_000_000_000}


class Client:
    """A connection on which every request gets the same answer."""

    def __init__(self, told: dict[str, Any] | None, connected: bool = True) -> None:
        self._told, self.is_connected = told, connected

    def jetstream(self, timeout: float) -> None:
        """Not used here."""

    async def request(self, subject: str, timeout: float) -> Any:  # noqa: ASYNC109 - nats-py's signature
        if self._told is None:
            raise nats.errors.TimeoutError
        return SimpleNamespace(data=json.dumps(self._told).encode())


@pytest.mark.parametrize(
    ("told", "answers"),
    [
        ({"state": {}}, True),
        ({"cluster": {"leader": "n1"}}, True),
        ({"cluster": {"leader": "n1", "replicas": [NEAR, NEAR]}}, True),
        ({"cluster": {"leader": "n1", "replicas": [NEAR, FAR]}}, True),
        ({"cluster": {"leader": "n1", "replicas": [FAR, FAR]}}, False),
        ({"cluster": {"replicas": [NEAR, NEAR]}}, False),
        ({"error": {"code": 503}}, False),
        (None, False),
    ],
)
async def test_nats_answers_while_a_stream_has_a_leader_and_a_majority(
    told: dict[str, Any] | None, answers: bool
) -> None:
    assert await bus.Bus(Client(told)).answers(1) is answers  # type: ignore[arg-type]


async def test_nats_does_not_answer_without_a_connection() -> None:
    assert await bus.Bus(Client({}, connected=False)).answers(1) is False  # type: ignore[arg-type]
