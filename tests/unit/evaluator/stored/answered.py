"""Stored answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from services.evaluator.items.task import Item, Message, Response, Scored, Task
from services.evaluator.units.units_in_hand import Held
from touchstone.v1 import item_result_pb2, job_pb2, unit_pb2

ANSWERED = item_result_pb2.OUTCOME_ANSWERED
TRUNCATED = item_result_pb2.OUTCOME_OUTPUT_TRUNCATED
REFUSED = item_result_pb2.OUTCOME_REFUSED


class Echo:
    """A task whose scorer of version 2 reads the whole response; version 1 read only its first letter."""

    scorer_version = "2"
    plugin = ""
    executor = None

    def score(self, item: Item, response: Response) -> Scored:
        if response.refused:
            return Scored(REFUSED, "", {"correct": 0.0}, "none")
        if response.finish_reason == "length":
            return Scored(TRUNCATED, "", {"correct": 0.0}, "none")
        return Scored(ANSWERED, response.text, {"correct": float(response.text == item.reference)}, "whole")


TASK = cast(Task, Echo())
ITEMS = [
    Item(10 + place, (Message("user", f"question {place}"),), "yes", f"hash-{place}", f"prompt-{place}")
    for place in range(4)
]


def held(reuse: job_pb2.Reuse | None = None, delivery: int = 1, digest: str = "sha256:a", begun: bool = False) -> Held:
    spec = job_pb2.JobSpec(endpoint="stub", model="m", reuse=reuse)
    unit = unit_pb2.Unit(job_id="this", task="t", spec=spec, model_digest=digest, start=0, stop=4, begun=begun)
    return cast(Held, SimpleNamespace(unit=unit, delivery=delivery))


NEWEST = 17
"""The position on RESULTS of the newest message about any unit."""


async def newest(unit: unit_pb2.Unit) -> int:
    assert unit.job_id == "this"
    return NEWEST
