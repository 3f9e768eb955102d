"""Turns the answers of an endpoint into results, several at a time while many come in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from services.evaluator import item_result
from services.evaluator.endpoint_calls import ItemCall, UnitCalls
from services.evaluator.items.task import Response
from services.evaluator.pacing.pace import Rate
from services.evaluator.units.packer import RUSH_PER_S
from touchstone.v1 import item_result_pb2

MOST_WAITING = 32
LINGER_S = 0.01
"""How long an answer may wait for others. Several right after each other find code and data in the processor's caches:
5,000 judgements, 64 at once, took 3 % less time."""


class Scoring:
    """Adds results to the packers of their units. `fail` gets a call whose answer could not be scored, and why."""

    def __init__(self, rate: Rate, fail: Callable[[ItemCall, Exception], None]) -> None:
        """`rate` is that of the endpoint's calls."""
        self._rate, self._fail = rate, fail
        self._waiting: list[tuple[ItemCall, Response]] = []

    async def add(self, call: ItemCall, response: Response) -> None:
        """Scores at once, or within 10 ms while `rate` is high. A scorer in a process of its own answers before this
        returns. Raises what scoring raises."""
        task = call.unit.task
        if task.executor is not None or self._rate.per_second <= RUSH_PER_S:
            # What is built in is scored here: a thread for each answer would cost more than the scoring.
            call.unit.packer.add(await item_result.called(task, partial(_result, call, response)))
            return
        self._waiting.append((call, response))
        if len(self._waiting) >= MOST_WAITING:
            self.score()
        elif len(self._waiting) == 1:
            asyncio.get_running_loop().call_later(LINGER_S, self.score)

    def score(self) -> None:
        """Scores what waits."""
        waiting, self._waiting = self._waiting, []
        for call, response in waiting:
            try:
                call.unit.packer.add(_result(call, response))
            except Exception as error:
                self._fail(call, error)


def _result(call: ItemCall, response: Response) -> item_result_pb2.ItemResult:
    unit: UnitCalls = call.unit
    identity = unit.identify(call.item, call.repeat)
    return item_result.answered(unit.task, call.item, call.position, call.repeat, response, call.tries.calls, identity)
