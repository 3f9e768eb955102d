"""Receivers of webhooks in the simulated world: some say yes, some sometimes, some never. They note who was called."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from random import Random
from typing import Any

from services.scheduler.webhooks.deliveries import Answer

Told = tuple[str, str]
"""A job and what became of it, in words."""
URLS = [f"http://127.0.0.1:9/{name}" for name in ("good", "good", "moody", "never", "gone")]


class Receivers:
    """Outside of all processes. What a receiver has said yes to is in `heard`, by job and event the deliveries."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self.calls: Counter[str] = Counter()
        """By delivery, how often it was called."""
        self.heard: dict[Told, set[str]] = defaultdict(set)

    def caller(self, *_: object) -> Caller:
        """In place of the scheduler's HTTP client."""
        return Caller(self)

    async def post(self, url: str, body: bytes) -> Answer:
        told: dict[str, Any] = json.loads(body)
        number = told["delivery_id"]
        await asyncio.sleep(self._chance.uniform(0.001, 0.2))
        self.calls[number] += 1
        name = url.rpartition("/")[2]
        if name == "gone":
            return Answer(status=410)
        if name == "never" or (name == "moody" and self._chance.random() < 0.6):
            return self._chance.choice([Answer(status=503), Answer(problem="no connection")])
        self.heard[told["job"]["job_id"], told["job"]["status"]].add(number)
        await asyncio.sleep(self._chance.uniform(0.001, 0.2))
        if name == "moody" and self._chance.random() < 0.3:
            return Answer(problem="the answer was lost")
        return Answer(status=200)


class Caller:
    """One process's way to them."""

    def __init__(self, receivers: Receivers) -> None:
        self._receivers = receivers

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        return await self._receivers.post(url, body)

    async def aclose(self) -> None:
        """There is nothing to close."""
