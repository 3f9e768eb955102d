"""Turns the answers of an endpoint into results, between its calls."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

from services.evaluator import item_result
from services.evaluator.endpoint_calls import ItemCall, UnitCalls
from services.evaluator.items.task import Response
from touchstone.v1 import item_result_pb2

MOST_WAITING = 32
"""Answers. Where they come faster than they can be scored, calls wait for them: a kill would lose what waits."""


class Scoring:
    """Adds results to the packers of their units. `fail` gets a call whose answer could not be scored, and why.

    An answer waits until the slot's next call has gone out, and for those that came before it. One is scored in each
    turn of the event loop, so that many answers at once do not hold up the calls that follow them."""

    def __init__(self, fail: Callable[[ItemCall, Exception], None]) -> None:
        self._fail = fail
        self._waiting: deque[tuple[ItemCall, Response]] = deque()

    async def add(self, call: ItemCall, response: Response) -> None:
        """Scores soon. A scorer in a process of its own answers before this returns. Raises what it raises."""
        task = call.unit.task
        if task.executor is not None:
            call.unit.packer.add(await item_result.called(task, partial(_result, call, response)))
            return
        # What is built in is scored in this thread: another one for each answer would cost more than the scoring.
        self._waiting.append((call, response))
        if len(self._waiting) > MOST_WAITING:
            self._score_one()
        elif len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._turn)

    def score(self) -> None:
        """Scores all that wait."""
        while self._waiting:
            self._score_one()

    def _turn(self) -> None:
        if self._waiting:
            self._score_one()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._turn)

    def _score_one(self) -> None:
        call, response = self._waiting.popleft()
        try:
            call.unit.packer.add(_result(call, response))
        except Exception as error:
            self._fail(call, error)


def _result(call: ItemCall, response: Response) -> item_result_pb2.ItemResult:
    unit: UnitCalls = call.unit
    identity = unit.identify(call.item, call.repeat)
    return item_result.answered(unit.task, call.item, call.position, call.repeat, response, call.tries.calls, identity)
