"""Numbers of a job's description: whatever comes over gRPC, a job has finite ones in range, or is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from services.errors import TouchstoneError
from tests.unit.scheduler.fakes import ALICE, World, evaluator, spec
from touchstone.v1 import job_pb2

REALS = (math.nan, math.inf, -math.inf, -1.0, -1e-300, 1e308, -1e308)
INTEGERS = {FieldDescriptor.TYPE_INT32: 2**31 - 1, FieldDescriptor.TYPE_INT64: 2**63 - 1}


def numbers(message: Message, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], list[float]]]:
    """Every numeric field of a description, with values that nobody should ask for."""
    for field in message.DESCRIPTOR.fields:
        here = (*path, field.name)
        if field.type in (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT):
            yield here, list(REALS)
        elif field.type in INTEGERS:
            most = INTEGERS[field.type]
            yield here, [-1, -most - 1, most]
        elif field.message_type is not None and field.name in ("sampling", "suite"):
            yield from numbers(getattr(message, field.name), here)


def place(message: Message, path: tuple[str, ...]) -> Message:
    for name in path[:-1]:
        message = getattr(message, name)
    return message


@pytest.mark.parametrize("path", [".".join(path) for path, _ in numbers(job_pb2.JobSpec())])
async def test_a_job_has_finite_numbers_in_range_or_is_refused(path: str) -> None:
    world = World()
    world.fleet.hear(evaluator(), world.time)
    await world.start()
    try:
        names = tuple(path.split("."))
        for value in dict(numbers(job_pb2.JobSpec()))[names]:
            wanted = spec()
            setattr(place(wanted, names), names[-1], value)
            try:
                checked = await world.desk.check(ALICE, wanted)
            except TouchstoneError:
                continue
            kept = getattr(place(checked, names), names[-1])
            assert math.isfinite(kept)
            assert kept >= 0 or names[-1] == "seed", f"{path} = {value} was taken as {kept}"
    finally:
        await world.stop()
